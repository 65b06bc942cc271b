// SPDX-License-Identifier: Apache-2.0
//! The table of verdicts beside the microflow table: `bpf/verdict.h`, `tap.h` and `orders.h`.
//!
//! ```text
//!  packet ─▶ microflow table (counts) ─▶ verdict? ─ yes ─▶ pass, drop
//!                                           │ no: a copy of the first packets
//!                                           ▼
//!                    TapRing ◀── ring buffer      VerdictTable ── orders ──▶ rows
//!                       └──────────▶ user space decides ──────────┘
//! ```
//!
//! This module is the kernel's side. The crate of the offload engine decides, and manages the rows.

mod counters;
mod table;
mod taps;

use std::sync::Arc;

use crate::{KernelEngine, KernelError};

pub use counters::OffloadCounters;
pub use table::{RowOrder, RowOrderKind, RowResult, VerdictTable, VerdictTimes};
pub use taps::{Tap, TapKind, TapRing};

/// The key of both directions of a flow as in the kernel. For an IPv4 flow: two words, then zeros.
pub type FlowWords = [u64; 5];

/// Access to the table of verdicts and to its taps.
pub struct Offload {
    /// Writes rows.
    pub table: VerdictTable,
    /// Reads the first packets of flows without a row.
    pub taps: TapRing,
}

impl KernelEngine {
    /// Opens the table of verdicts and its taps. Each may have only one user.
    /// `KernelConfig::offload` must have been set.
    ///
    /// # Errors
    /// Where there is no table, or its memory cannot be mapped.
    pub fn open_offload(&self) -> Result<Offload, KernelError> {
        Ok(Offload {
            table: VerdictTable::open(Arc::clone(&self.object))?,
            taps: TapRing::open(&self.object)?,
        })
    }

    /// The counters of verdicts and taps, over all CPUs.
    ///
    /// # Errors
    /// Where there is no table, or the kernel does not return the counters.
    pub fn offload_counters(&self) -> Result<OffloadCounters, KernelError> {
        OffloadCounters::read(&self.object)
    }
}
