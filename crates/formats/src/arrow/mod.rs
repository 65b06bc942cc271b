// SPDX-License-Identifier: Apache-2.0
//! Apache Arrow IPC: the columns as they are laid out in memory, preceded by the schema.
//!
//! A file has the *file* format, whose footer contains the positions of the record batches, so that
//! readers can map it into memory. A stream (standard output, a pipe, a message) has the *stream*
//! format, which needs no end. The types are those of our Parquet files; texts have no dictionary,
//! because few of them repeat within a batch and every reader supports plain texts.
//!
//! # Source
//! Arrow Columnar Format 1.5, "Serialization and Interprocess Communication".

mod arrays;
mod columns;
mod encoder;
mod message;
mod schema;
mod writer;

pub use columns::{arrow_column, arrow_schema};
pub use message::ArrowMessages;
pub(crate) use writer::writer;
