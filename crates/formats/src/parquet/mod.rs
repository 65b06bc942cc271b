// SPDX-License-Identifier: Apache-2.0
//! Parquet: row groups of about a million records, zstd, types that other tools understand.
//!
//! | column | Parquet type |
//! |---|---|
//! | address, MAC address | `BYTE_ARRAY (STRING)`, dictionary; addresses while it pays |
//! | text | `BYTE_ARRAY (STRING)`, dictionary while it is small |
//! | unsigned, 8 to 32 bits | `INT32 (INTEGER(bits, unsigned))`, dictionary while it pays |
//! | unsigned, 64 bits | `INT64 (INTEGER(64, unsigned))`, dictionary while it pays |
//! | time | `INT64 (TIMESTAMP(NANOS, UTC))`, delta |
//! | float | `DOUBLE` |
//! | list | three-level `LIST` of `INT64 (INTEGER(64, unsigned))` |
//!
//! With the types of table formats ([`ParquetTypes::Lake`]):
//!
//! | column | Parquet type |
//! |---|---|
//! | unsigned, 8 and 16 bits | `INT32` |
//! | unsigned, 32 and 64 bits; time | `INT64` |
//! | a time once more, at the end | `INT64 (TIMESTAMP(MICROS, UTC))` |
//! | an address once more, at the end, by choice | `FIXED_LEN_BYTE_ARRAY(16)` |
//! | list | three-level `LIST` of `INT64` |
//!
//! Columns are encoded as batches arrive, all columns of a row group together. So memory holds
//! compressed pages rather than records.
//!
//! Numbers, times and addresses have encoders of our own: they take half the time of the parquet
//! crate's writer for the same records, including its conversion to Arrow
//! (`bench/runs/2026-11-28-intel-xeon-parquet`, by `bench/parquet`). The other kinds use the crate.

mod chunk;
mod dictionary;
mod encode;
mod encoders;
mod flat;
mod library;
mod page;
pub(crate) mod schema;
mod texts;
mod types;
mod writer;

pub use types::ParquetTypes;
pub(crate) use writer::writer;
