// SPDX-License-Identifier: Apache-2.0
//! What a bridge that polices by application knows beside its data path.
//!
//! - [`Rules`]: which flows pass and which are dropped, from a file. Values in, decisions out: no
//!   clock, no thread, no socket.
//! - [`Policy`]: the flows that are open, what is known of them, and the decision about each.
//! - `ports` (Linux): whether two interfaces can be bridged, and what to change where not.
//! - `fail` (Linux): what forwards when the process is gone.
//!
//! `docs/bridge.md` is for who runs one.

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
