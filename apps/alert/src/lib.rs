// SPDX-License-Identifier: Apache-2.0
//! Alerts from flow records.
//!
//! A [`Rule`] is a question in the language of `turboflow show`, with a limit. [`find`] evaluates
//! it on records and returns an [`Alert`] for each group beyond the limit. [`State`] holds what
//! rules about change remember from one file to the next. This crate uses no clock and no sockets:
//! times are those of the records, and alerts are texts.

mod find;
mod form;
mod rule;
mod state;

pub use find::{Alert, Found, find};
pub use form::{alertmanager, json, syslog};
pub use rule::{Rule, RuleError, Severity, rules};
pub use state::State;
