// SPDX-License-Identifier: Apache-2.0
//! The request to end a run.

use std::sync::atomic::{AtomicBool, Ordering};

/// Asks a run to stop reading, flush and finish. A signal handler may set it.
#[derive(Debug, Default)]
pub struct Stop(AtomicBool);

impl Stop {
    /// A request that has not been made.
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Makes the request.
    pub fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the request was made.
    #[must_use]
    pub fn asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
