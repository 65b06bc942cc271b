// SPDX-License-Identifier: Apache-2.0
//! Captures that an engine reads itself: what they have besides frames. A run that reads the files
//! counts this on its own.

use std::sync::{Arc, Mutex};

use turboflow_capture::{OpenError, ReadError};
use turboflow_run::FileCounters;

/// The captures of an engine.
#[derive(Default)]
pub(crate) struct CapturesOfEngine {
    /// Files that were skipped because they cannot be metered.
    pub(crate) passed_over: Vec<OpenError>,
    /// What has been read so far; complete when the run has ended.
    pub(crate) read: Arc<Mutex<CapturesRead>>,
}

/// Counters and damages of the files that were read.
#[derive(Default)]
pub(crate) struct CapturesRead {
    pub(crate) counters: FileCounters,
    pub(crate) damaged: Vec<ReadError>,
}
