// SPDX-License-Identifier: Apache-2.0
//! What a flow record is: key fields, features, their ops, the layout of microflow and flow
//! records, and the algebra that merges them. Everything else in TurboFlow is derived from here.
//!
//! No I/O, no clock, no thread: a record is a value.

mod columns;
mod definition;
mod input;
mod key;
mod microflow;
mod packet;

pub use columns::{Column, ColumnKind, FlowBatch, Schema, Value, ValueData, Values};
pub use definition::{Definition, Feature, KeyField, Op};
pub use input::{Input, InputSet};
pub use key::{Family, FiveTuple, WORDS_V4, WORDS_V6, transport_word};
pub use microflow::{Base, EndReason, Marks, MicroflowRecord};
pub use packet::{InputValues, Packet, TCP_ACK, TCP_FIN, TCP_RST, TCP_SYN};
