// SPDX-License-Identifier: Apache-2.0
//! Everyday questions about flow records: top talkers, ports, and traffic over time.
//!
//! [`Input`] reads several files as one. [`Query`] is a parsed question, with a [`Filter`]. [`run`]
//! makes one pass over the records and returns an [`Answer`], which can be written as a table, CSV
//! or JSON lines. This crate reads no clock and writes no file.

mod amounts;
mod answer;
mod compare;
mod drill;
mod enrichment_files;
mod error;
mod field;
mod files;
mod filter;
mod fold;
mod group;
mod group_keys;
mod group_rows;
mod group_table;
mod grouping;
mod groups;
mod input;
mod literal;
mod meant;
mod names;
mod numbers;
mod query;
mod record_shape;
mod records;
mod render;
mod run;
mod source;
mod span;
mod token;
mod within;

pub use answer::{Answer, AnswerColumn, Cell, Counts, Shares, Show, Totals};
pub use drill::{FieldName, fields};
pub use enrichment_files::EnrichmentFiles;
pub use error::{Misread, Part, QueryError};
pub use files::{FoundFiles, IsMeant, files_of, flow_files, flow_files_so_far};
pub use filter::Filter;
pub use input::Input;
pub use literal::{time_ns, time_text};
pub use names::{end_reason_name, protocol_name};
pub use query::{Query, Question};
pub use record_shape::RecordShape;
pub use render::{PlainStyle, TableStyle, TableText, column_rank};
pub use run::{
    LastPacket, answer, answers, choose, last_packet_ns, last_packet_until, run, run_with,
};
pub use turboflow_enrich::{EnrichError, Enrichment};
pub use turboflow_formats::TimeForm;
