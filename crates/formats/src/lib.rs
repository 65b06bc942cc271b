// SPDX-License-Identifier: Apache-2.0
//! Flow records out, and in again: CSV, JSON lines, Parquet and IPFIX files, tables for people, and
//! IPFIX and NetFlow to collectors ([`wire`]).
//!
//! A [`FlowWriter`] takes batches of columns and hides the format. Files appear under their name
//! only when they are complete; see [`create`]. A [`FlowReader`] gives the batches back.

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
pub use writer::{
    Compression, FlowWriter, WriteOptions, WriteProgress, WriteSummary, create, to_writer,
};
