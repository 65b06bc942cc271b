// SPDX-License-Identifier: Apache-2.0
//! What a flow record is: key fields, features, their ops, the layout of microflow and flow
//! records, and the algebra that merges them. Everything else in TurboFlow is derived from here.
//!
//! No I/O, no clock, no thread: a record is a value.

mod check;
mod columns;
mod definition;
mod elements;
mod fault;
mod hash;
mod input;
mod key;
mod lane_hash;
mod layout;
mod microflow;
mod packet;
mod pairs;
mod prefetch;
mod text;
mod vectors;
mod vocabulary;

pub use columns::{Column, ColumnKind, FlowBatch, Schema, Value, ValueData, Values};
pub use definition::{Definition, Feature, KeyField, Op};
pub use elements::{
    BASIC_LIST, ColumnElement, DOCUMENTATION_ENTERPRISE, DataType, Element, ElementOptions,
    REVERSE_ENTERPRISE, Semantics, TimeUnit, Units,
};
pub use fault::{Fault, InvalidDefinition, MAX_EDGES, MAX_LIST, MAX_NAME_BYTES, NamedInput, Place};
pub use hash::{KeyHash, KeyHasher};
pub use input::{Input, InputSet};
pub use key::{Family, FiveTuple, WORDS_V4, WORDS_V6, transport_word};
pub use lane_hash::{LANES, LaneHash, LaneHasher};
pub use layout::{
    KeySteps, Lanes, Layout, Plan, STATE_WORDS, Spot, StateStep, Steps, WORDS_WIDE, What,
};
pub use microflow::{Base, EndReason, Least, Marks, MicroflowRecord};
pub use packet::{InputValues, LAST_TIME_NS, Packet, TCP_ACK, TCP_FIN, TCP_RST, TCP_SYN};
pub use pairs::PendingStates;
pub use prefetch::{prefetch, prefetch_far};
pub use text::{DefinitionError, Places};
#[cfg(target_arch = "x86_64")]
pub use vectors::{Avx2, Avx512, LineGate, Words512};
pub use vectors::{FEW_WORDS, Machine, MergeGate, Plain, PlainWords, Vectors, WithVectors, Words};
