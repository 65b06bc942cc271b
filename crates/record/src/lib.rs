// SPDX-License-Identifier: Apache-2.0
//! The vocabulary of flow records: key fields, inputs, features and their ops, definitions,
//! columns, and information elements. Every other crate builds on it.
//!
//! No I/O, no clock, no thread: a record is a value. Its texts are in a separate table ([`Texts`]).

mod application_names;
mod check;
mod columns;
mod community_id;
mod definition;
mod elements;
mod end_reason;
mod fault;
mod input;
mod key;
mod network;
mod packet;
mod protocol_names;
pub mod quantity;
mod rejected;
mod sha1;
mod text;
mod text_table;
mod verdicts;
mod vocabulary;

pub use application_names::{ApplicationNames, InspectedTexts, NameIndex, RISK_SEPARATOR};
pub use check::{END_REASON, REVERSE};
pub use columns::{Column, ColumnKind, FlowBatch, Schema, Value, ValueData, Values};
pub use community_id::{COMMUNITY_ID_BYTES, CommunityFlow};
pub use definition::{Definition, Feature, KeyField, Op};
pub use elements::{
    BASIC_LIST, ColumnElement, DOCUMENTATION_ENTERPRISE, DataType, Element, ElementOptions,
    REVERSE_ENTERPRISE, Semantics, TimeUnit, Units,
};
pub use end_reason::EndReason;
pub use fault::{
    Fault, InvalidDefinition, MAX_EDGES, MAX_LIST, MAX_NAME_BYTES, NamedInput, Place, did_you_mean,
    shorten,
};
pub use input::{INPUT_WORDS, Input, InputSet};
pub use key::{Family, FiveTuple, WORDS_V4, WORDS_V6, transport_word};
pub use network::{Network, masked};
pub use packet::{InputValues, LAST_TIME_NS, Packet, TCP_ACK, TCP_FIN, TCP_RST, TCP_SYN};
pub use protocol_names::{protocol_name, protocol_names, protocol_number};
pub use rejected::{RejectClass, Rejected};
pub use text::{DefinitionError, Places};
pub use text_table::{MAX_TEXT_BYTES, TextCounters, Texts, clean as clean_text};
pub use verdicts::{DROPPED, PASSED, RuleNames, UNDECIDED, WOULD_DROP, verdict_name};
pub use vocabulary::Operand;
