// SPDX-License-Identifier: Apache-2.0
//! What takes its time: name servers and collectors may be silent for seconds, and whoever sends has
//! a queue to empty and an end to keep.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

/// Work on a thread of its own. Dropped, it is left to itself: it has limits of its own.
pub(super) struct Pending<T>(Receiver<io::Result<T>>);

impl<T: Send + 'static> Pending<T> {
    pub(super) fn start(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<Self> {
        let (done, outcome) = sync_channel(1);
        let run = move || {
            // Nobody may want to know any more.
            let _ = done.send(work());
        };
        let thread = std::thread::Builder::new().name("turboflow-dial".to_owned());
        thread.spawn(run)?;
        Ok(Self(outcome))
    }

    /// How it ended; `None` where it goes on for longer than `timeout`.
    pub(super) fn outcome(&self, timeout: Duration) -> Option<io::Result<T>> {
        match self.0.recv_timeout(timeout) {
            Ok(outcome) => Some(outcome),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Err(io::Error::other("a panic"))),
        }
    }
}
