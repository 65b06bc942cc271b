// SPDX-License-Identifier: Apache-2.0
//! The forwarding engine in the kernel: an XDP program keeps the microflow table where packets arrive and
//! hands user space the evicted records alone (TurboFlow, section 4; `docs/engines.md`).
//!
//! ```text
//!  frame ─▶ parse.h ─▶ table.h, one table a CPU ─▶ ring buffer ─▶ Batch ─▶ aggregator
//!             └─▶ ledger, by reason   └─▶ ledger: evicted, dropped
//! ```
//!
//! The program is C (`bpf/`), compiled when the crate is built with the feature `kernel`. Without it there
//! are only the layouts that the two sides share.

#[cfg(not(target_endian = "little"))]
compile_error!("the program writes keys as little-endian words, which only such a machine reads");

mod batch;
#[cfg(feature = "kernel")]
mod config;
mod counters;
#[cfg(feature = "kernel")]
mod engine;
#[cfg(feature = "kernel")]
mod error;
mod layout;

pub use batch::Batch;
pub use counters::KernelCounters;
pub use layout::KEY_HALVES;

#[cfg(feature = "kernel")]
pub use config::{Clock, KernelConfig};
#[cfg(feature = "kernel")]
pub use engine::{Finished, KernelEngine, TestRun, TestedProgram};
#[cfg(feature = "kernel")]
pub use error::KernelError;
