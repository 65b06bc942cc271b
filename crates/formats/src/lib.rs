// SPDX-License-Identifier: Apache-2.0
//! Writes and reads flow records: CSV, JSON lines, Parquet and IPFIX files, tables for people, and
//! IPFIX and NetFlow messages for collectors ([`wire`]).
//!
//! A [`FlowWriter`] takes batches of columns and hides the format. A file gets its name only when
//! it is complete; see [`create`]. A [`FlowReader`] reads the batches back.

mod create;
mod csv;
mod error;
mod format;
mod gauge;
mod json;
mod lines;
mod name_pattern;
mod output;
mod parquet;
mod read;
mod rotate;
pub mod table;
mod text;
pub mod wire;
mod writer;

pub use create::{create, to_writer};
pub use csv::quoted as csv_field;
pub use error::ExportError;
pub use format::Format;
pub use gauge::{SendGauge, SendSnapshot};
pub use json::quoted as json_string;
pub use name_pattern::NamePattern;
pub use output::create_beside;
pub use parquet::schema::DEFINITION_KEY;
pub use read::{FlowReader, ReadError, from_stream, read, read_again};
pub use rotate::{RotateEvent, RotateOptions, rotate};
pub use writer::{Compression, FlowWriter, WriteOptions, WriteProgress, WriteSummary};
