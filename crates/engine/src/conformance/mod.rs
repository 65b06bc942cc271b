// SPDX-License-Identifier: Apache-2.0
//! A conformance suite for engines. An engine is given packets or frames. Its output is compared,
//! record by record and counter by counter, with a golden model and with a meter that keeps every
//! packet.
//!
//! A [`Subject`] is an engine under test. [`InProcess`] turns any packet engine into a subject, and
//! [`Elsewhere`] any remote engine that can be sent frames. A trial is one sequence of packets
//! under one [`Setup`]. Its output is a value ([`Observed`]), and every [`Check`] is a function of
//! such values. Aspects that cannot be tested on a subject are listed with the reason
//! ([`LeftOut`]).
//!
//! ```text
//! Sequence ─┬─▶ Subject ─▶ Observed ─┬─▶ Check ─▶ Outcome
//!           ├─▶ golden model ────────┤
//!           └─▶ reference meter ─────┘
//! ```

/// Evaluates an expression with `N` as a constant number of state words.
macro_rules! with_state_words {
    ($words:expr, $n:ident => $body:expr) => {
        with_state_words!(@one $words, $n, $body; 0 8 24 56 120 504)
    };
    (@one $words:expr, $n:ident, $body:expr; $($count:literal)*) => {
        match $words {
            $($count => {
                const $n: usize = $count;
                $body
            })*
            other => unreachable!("{other} is not a number of state words"),
        }
    };
}

mod cells;
mod definitions;
mod elsewhere;
mod golden;
mod in_process;
mod laws;
mod lossy;
mod plain;
mod reference;
mod report;
mod runs;
mod sequences;
mod setup;
mod subject;
mod suite;
#[cfg(test)]
mod tests;
mod times;

pub use definitions::each_op_alone;
pub use elsewhere::{Elsewhere, OpenRemote};
pub use in_process::InProcess;
pub use lossy::{Loss, Lossy};
pub use plain::{PlainEngine, PlainEngines, plain};
pub use report::{Check, Outcome, Report};
pub use sequences::{Sequence, hand_made};
pub use setup::{Setup, TABLES};
pub use subject::{Arrival, Aspect, Event, Lane, LeftOut, Observed, Record, Subject, Told};
pub use suite::{Reference, Suite};
