// SPDX-License-Identifier: Apache-2.0
//! The parts of an application-aware bridge that are outside its data path.
//!
//! - [`Rules`]: which flows pass and which are dropped, read from a file. Values in, decisions out:
//!   no clock, no thread, no socket.
//! - [`Policy`]: the open flows, what is known about them, and the decision for each.
//! - `ports` (Linux): whether two interfaces can be bridged, and what to change if not.
//! - `fail` (Linux): what forwards frames after the process has ended.
//!
//! Operators find the documentation in `docs/bridge.md`.

#[cfg(target_os = "linux")]
pub mod fail;
#[cfg(target_os = "linux")]
pub mod ports;

mod policy;
mod rules;

pub use policy::{Learned, Policy};
pub use rules::{
    Action, Application, Decision, Facts, FailMode, MAX_NAME_BYTES, MAX_RULES, Rule, RuleId, Rules,
    RulesError, RulesFault, RulesWarning, Why,
};
