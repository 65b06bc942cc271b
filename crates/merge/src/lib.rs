// SPDX-License-Identifier: Apache-2.0
//! The memory layout of records and how they merge: layouts compiled from a definition, microflow
//! records, the merge algebra, and its vector code.
//!
//! No I/O, no clock, no thread: a record is a value.

mod fnv;
mod hash;
mod lane_hash;
mod layout;
mod microflow;
mod pairs;
mod prefetch;
mod vectors;

pub use fnv::fnv_1a;
pub use hash::{KeyHash, KeyHasher};
pub use lane_hash::{LaneHash, LaneHasher};
pub use layout::{
    Annotation, Initiator, InspectedValues, KeySlot, KeySteps, KeyWidths, Layout, MOST_STATE_WORDS,
    Plan, STATE_WORDS, StateContent, StateStep, Steps, TWO_WAY_WORDS, WORDS_WIDE,
};
pub use microflow::{Base, Complement, Marks, MicroflowRecord};
pub use pairs::PendingStates;
pub use prefetch::{prefetch, prefetch_far};
#[cfg(target_arch = "x86_64")]
pub use vectors::{Avx2, Avx512, LineGate, Words512};
pub use vectors::{LANES, Machine, MergeGate, Plain, PlainWords, Vectors, WithVectors, Words};
