// SPDX-License-Identifier: Apache-2.0
//! Runs blocking work on a thread of its own. Name servers and collectors may not answer for
//! seconds, and the sending thread must keep emptying its queue and meet its deadline.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

/// Work on a thread of its own. If this is dropped, the thread still ends, because its work has
/// timeouts.
pub(super) struct Pending<T>(Receiver<io::Result<T>>);

impl<T: Send + 'static> Pending<T> {
    pub(super) fn start(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<Self> {
        let (done, outcome) = sync_channel(1);
        let run = move || {
            // The receiver may have been dropped.
            let _ = done.send(work());
        };
        let thread = std::thread::Builder::new().name("turboflow-dial".to_owned());
        thread.spawn(run)?;
        Ok(Self(outcome))
    }

    /// The outcome; `None` if the work takes longer than `timeout`.
    pub(super) fn outcome(&self, timeout: Duration) -> Option<io::Result<T>> {
        match self.0.recv_timeout(timeout) {
            Ok(outcome) => Some(outcome),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Err(io::Error::other("a panic"))),
        }
    }
}
