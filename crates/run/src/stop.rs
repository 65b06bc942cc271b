// SPDX-License-Identifier: Apache-2.0
//! How a run is asked to end.

use std::sync::atomic::{AtomicBool, Ordering};

/// Asks a run to stop reading, flush and finish. A signal handler may set it.
#[derive(Debug, Default)]
pub struct Stop(AtomicBool);

impl Stop {
    /// Not asked yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Asks.
    pub fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was asked.
    #[must_use]
    pub fn asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
