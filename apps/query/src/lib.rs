// SPDX-License-Identifier: Apache-2.0
//! The questions a person asks of flow records every day: who talks most, on which ports, when.
//!
//! [`Input`] makes several files one, [`Query`] says what is asked ([`Filter`] is its
//! `--where`), [`run`] goes through the records once and gives an [`Answer`], which prints as a
//! table, CSV or JSON lines. Nothing here reads a clock or writes a file.

mod answer;
mod compare;
mod error;
mod field;
mod filter;
mod fold;
mod group;
mod grouping;
mod groups;
mod input;
mod literal;
mod names;
mod query;
mod record_shape;
mod render;
mod run;
mod span;
mod token;

pub use answer::{Answer, AnswerColumn, Cell, Counts, Show, Totals};
pub use error::QueryError;
pub use filter::Filter;
pub use input::Input;
pub use literal::time_text;
pub use names::protocol_name;
pub use query::{Query, Question};
pub use record_shape::RecordShape;
pub use render::TableStyle;
pub use run::run;
