// SPDX-License-Identifier: Apache-2.0
//! Apache Arrow IPC: the columns as they lie in memory, with the schema before them.
//!
//! A file has the *file* format, whose footer says where each record batch lies, so that readers
//! map it. A stream (standard output, a pipe, a message) has the *stream* format, which needs no
//! end. Types are those of our Parquet files; texts are plain, because few of them repeat within a
//! batch and every reader takes them.
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
