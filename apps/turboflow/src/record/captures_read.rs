// SPDX-License-Identifier: Apache-2.0
//! Captures that an engine reads itself: what they have besides frames. A run that reads the files
//! counts this on its own.

use std::sync::{Arc, Mutex, PoisonError};

use turboflow_capture::{CaptureFile, OpenError, ReadError};
use turboflow_run::FileCounters;

/// The captures of an engine.
#[derive(Default)]
pub(crate) struct CapturesOfEngine {
    /// Files that were skipped because they cannot be metered.
    pub(crate) passed_over: Vec<OpenError>,
    /// What has been read so far; complete when the run has ended.
    pub(crate) read: CapturesRead,
}

/// Counters and damages of the files that were read. A clone shares them.
#[derive(Clone, Default)]
pub(crate) struct CapturesRead {
    pub(crate) counters: Arc<Mutex<FileCounters>>,
    damaged: Arc<Mutex<Vec<ReadError>>>,
}

impl CapturesRead {
    /// Counts what a file that has been read has besides frames.
    pub(crate) fn count(&self, file: &CaptureFile) {
        let mut counters = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        counters.add(&file.counters());
    }

    /// Notes that a file could be read only in part.
    pub(crate) fn note(&self, damage: ReadError) {
        self.damages().push(damage);
    }

    /// Takes the damages out.
    pub(super) fn take_damages(&self) -> Vec<ReadError> {
        std::mem::take(&mut *self.damages())
    }

    fn damages(&self) -> std::sync::MutexGuard<'_, Vec<ReadError>> {
        self.damaged.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
