// SPDX-License-Identifier: Apache-2.0
//! Notifies systemd (`man sd_notify`) when metering starts, that it is alive, and when it ends.
//! Does nothing if systemd did not start this process.

use std::time::{Duration, Instant};

use sd_notify::NotifyState;

use crate::signals::STOP;

/// Watchdog notifications, sent by the metering thread, so that they stop if it hangs.
pub(crate) struct Heartbeat {
    /// Interval of watchdog notifications.
    watchdog: Option<Duration>,
    beaten: Instant,
    stopping: bool,
}

impl Heartbeat {
    /// Notifies that metering has started.
    pub(crate) fn start() -> Self {
        tell(NotifyState::Ready);
        Self {
            // Half the timeout, as sd_watchdog_enabled(3) advises.
            watchdog: sd_notify::watchdog_enabled().map(|timeout| timeout / 2),
            beaten: now(),
            stopping: false,
        }
    }

    /// Sends a watchdog notification if one is due. Called many times a second.
    pub(crate) fn beat(&mut self) {
        if STOP.asked() && !self.stopping {
            self.stopping = true;
            tell(NotifyState::Stopping);
        }
        if let Some(watchdog) = self.watchdog {
            let now = now();
            if now - self.beaten >= watchdog {
                self.beaten = now;
                tell(NotifyState::Watchdog);
            }
        }
    }
}

/// Errors are ignored, because there is no other place to report them.
fn tell(state: NotifyState<'_>) {
    let _ = sd_notify::notify(&[state]);
}

#[allow(
    clippy::disallowed_methods,
    reason = "a watchdog goes by time that passes"
)]
fn now() -> Instant {
    Instant::now()
}
