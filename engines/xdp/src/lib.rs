// SPDX-License-Identifier: Apache-2.0
//! The forwarding engine in the kernel: an XDP program keeps the microflow table where packets arrive and
//! hands user space the evicted records alone (TurboFlow, section 4; `docs/engines.md`).
//!
//! A record definition other than the default one is constants of a second program (`bpf/plan.h`).
//!
//! ```text
//!  frame ─▶ parse.h ─▶ table.h: private tables, or one ─▶ ring buffer ─▶ inbox ─┐
//!             └─▶ ledger, by reason   └─▶ ledger: evicted, dropped             ├─▶ MicroflowBatch ─▶ aggregator
//!                         └─ at the end of a cell: the half that was turned from ┘
//! ```
//!
//! The program is C (`bpf/`), compiled when the crate is built with the feature `kernel`. Without it the crate is
//! empty, and needs nothing.
#![cfg(feature = "kernel")]

#[cfg(not(target_endian = "little"))]
compile_error!("the program writes keys as little-endian words, which only such a machine reads");

mod abilities;
mod attach;
mod clock;
mod collect;
mod config;
mod counters;
mod driver;
mod engine;
mod error;
mod grace;
mod in_use;
mod inbox;
mod layout;
mod link;
mod memory;
mod plan;
mod planned;
mod remote;
mod ring;
mod short;
mod tested;
mod ticks;
mod unparsed;

pub use abilities::ABILITIES;
pub use counters::KernelCounters;
pub use layout::{INTERFACES, KEY_HALVES};

pub use attach::{XdpMode, interface_index};
pub use config::{Clock, KernelConfig, Tables, Tested};
pub use driver::DriverKnows;
pub use engine::KernelEngine;
pub use error::KernelError;
pub use link::Attachment;
pub use plan::check_layout;
pub use tested::{TestRun, TestedProgram, Tester};
pub use unparsed::HandUp;
