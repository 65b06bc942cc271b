// SPDX-License-Identifier: Apache-2.0
//! Writes and reads flow records: CSV, JSON lines, Parquet, Arrow and IPFIX files, tables for
//! people, messages for message queues, and IPFIX and NetFlow messages for collectors ([`wire`]).
//!
//! A [`FlowWriter`] takes batches of columns and hides the format. A file gets its final name only
//! when it is complete; see [`create`]. A [`FlowReader`] reads the batches back.

mod anonymize;
mod arrow;
mod create;
mod csv;
mod destination;
mod error;
mod format;
mod gauge;
mod goflow2;
mod identity;
mod json;
mod lines;
mod mapped;
mod name_pattern;
mod names;
mod parquet;
mod quotes;
mod read;
mod retention;
mod rotate;
mod storable;
pub mod table;
mod text;
mod text_options;
mod time;
mod unfinished;
pub mod wire;
mod writer;

pub use anonymize::{CryptoPan, anonymize, refused_column, tells_more};
pub use arrow::{ArrowMessages, arrow_column, arrow_schema};
pub use create::{create, to_writer};
pub use error::{ExportError, Unexportable};
pub use format::Format;
pub use gauge::{SendGauge, SendSnapshot};
pub use goflow2::Goflow2Messages;
pub use identity::{EXPORTER_COLUMN, Identity, RUN_COLUMN, SEQUENCE_COLUMN, identify};
pub use json::JsonMessages;
pub use name_pattern::NamePattern;
pub use names::{end_reason_name, end_reason_number};
pub use parquet::ParquetTypes;
pub use parquet::schema::DEFINITION_KEY;
pub use quotes::{csv_field, json_string};
pub use read::{FlowReader, ReadError, from_stream, read, read_again};
pub use retention::{Retention, left_over_of};
pub use rotate::{RotateBy, RotateEvent, RotateOptions, rotate};
pub use text_options::{TextOptions, TimeForm};
pub use time::{iso_time_ns, time_text, whole_time_text};
pub use turboflow_record::{protocol_name, protocol_number};
pub use unfinished::{FileOptions, UnfinishedFile, left_over, refuse_link, remove_unfinished};
pub use writer::{Compression, FlowWriter, Passed, WriteOptions, WriteProgress, WriteSummary};
