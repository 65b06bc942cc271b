// SPDX-License-Identifier: Apache-2.0
//! The engine that offloads flows: copies of the first packets of a flow go to user space, which
//! decides about the flow. From then on, a table of flows handles its packets without user space
//! (`docs/engines.md`).
//!
//! ```text
//!              first packets                decisions           orders
//!  [taps] ───────────────────▶ [Learner] ◀──▶ [Decider]   ──────────────▶ [FlowTable]
//!                                   └──────────────────────────────────▶  the kernel, a model card
//! ```
//!
//! No packet waits for user space: packets without a verdict go on and are counted like all others.
//! A full table, a full ring, or a decider that is gone costs decisions, never counts.
//!
//! The table in the kernel belongs to the engine in the kernel, whose microflow table counts. It
//! needs the feature `kernel`.

mod abilities;
mod counts;
mod decider;
mod flow;
#[cfg(feature = "kernel")]
mod kernel;
mod learner;
pub mod model;
mod table;
mod verdict;

pub use abilities::{ABILITIES, BRIDGE_ABILITIES};
pub use counts::LearnerCounts;
pub use decider::{Decider, DeciderGone, Decision, FirstPacket, Tapped};
pub use flow::FlowKey;
#[cfg(feature = "kernel")]
pub use kernel::{KernelTable, OffloadEngine};
pub use learner::{Learner, LearnerConfig};
pub use table::{
    EndCause, EndedRow, FlowTable, Limits, Order, OrderKind, Outcome, TableError, Times,
};
pub use verdict::{Action, Verdict};
