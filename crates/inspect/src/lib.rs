// SPDX-License-Identifier: Apache-2.0
//! Determines the application of flows: deep packet inspection of the first packets of each flow.
//!
//! ```text
//! meter                                            process without rights
//! Inspection: which packets ── taps, a batch ──▶ Worker: flows ─▶ Inspector (nDPI), client hellos
//! Verdicts ◀── what is known ─────────────────────┘
//! ```
//!
//! At an interface, the meter never waits for the process, and the process can do nothing but
//! answer. If the process is slow, overloaded or dead, records lack names, but packets and counts
//! are never affected. `docs/applications.md` describes the limits and what they cost.

mod admission;
mod config;
mod flow_key;
mod flow_table;
mod inspection;
mod inspector;
mod inspector_process;
mod message;
#[cfg(feature = "dpi")]
mod ndpi;
pub mod tls;
mod verdict;
#[cfg(any(feature = "dpi", test))]
mod worker;

pub use config::{InspectConfig, InspectCounters, InspectError, PacketLimits};
pub use flow_key::FlowKey;
pub use inspection::{Inspection, TextSink};
pub use inspector::{Confidence, Facts, Inspector, MAX_TEXT_BYTES, Progress, Sight, Text};
pub use inspector_process::{child_main, is_child};
#[cfg(feature = "dpi")]
pub use ndpi::{NdpiFlow, NdpiInspector};
pub use verdict::{LockedVerdicts, Verdict, Verdicts};

/// The message of a program that was built without an inspector.
pub const NOT_BUILT: &str = "this program was built without inspection of applications: \
    install libndpi-dev and build with the feature `dpi`";

#[cfg(feature = "dpi")]
const NOT_THIS_LIBRARY: &str = "the library nDPI is of another version than the one that the \
    program was built with: build it again";
