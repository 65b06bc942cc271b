// SPDX-License-Identifier: Apache-2.0
//! Notifies systemd (`man sd_notify`) when metering starts, that it is alive, and when it ends.
//! Does nothing if systemd did not start this process.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::{Duration, Instant};

use crate::signals::STOP;

/// The socket of the service manager.
struct Manager {
    socket: UnixDatagram,
    address: SocketAddr,
    /// Interval of watchdog notifications.
    watchdog: Option<Duration>,
}

impl Manager {
    /// The service manager that started this process, if there is one.
    fn from_environment() -> Option<Self> {
        let name = std::env::var_os("NOTIFY_SOCKET")?;
        let number = |name| std::env::var(name).ok()?.parse::<u64>().ok();
        // The variables may be meant for another process of this service.
        let is_ours = number("WATCHDOG_PID").is_none_or(|id| id == u64::from(std::process::id()));
        let interval_us = number("WATCHDOG_USEC").filter(|_| is_ours);
        Some(Self {
            socket: UnixDatagram::unbound().ok()?,
            address: address_of(&name).ok()?,
            // Half the timeout, as sd_watchdog_enabled(3) advises.
            watchdog: interval_us.map(|us| Duration::from_micros(us) / 2),
        })
    }

    /// Sends a notification. Errors are ignored, because there is no other place to report them.
    fn tell(&self, state: &str) {
        let _ = self.socket.send_to_addr(state.as_bytes(), &self.address);
    }
}

/// Sends watchdog notifications from the metering thread, so that they stop if it hangs.
pub(crate) struct Heartbeat {
    manager: Option<Manager>,
    beaten: Instant,
    stopping: bool,
}

impl Heartbeat {
    /// Notifies that metering has started.
    pub(crate) fn start() -> Self {
        let manager = Manager::from_environment();
        if let Some(manager) = &manager {
            manager.tell("READY=1");
        }
        Self {
            manager,
            beaten: now(),
            stopping: false,
        }
    }

    /// Sends a watchdog notification if one is due. Called many times a second.
    pub(crate) fn beat(&mut self) {
        let Some(manager) = &self.manager else { return };
        if STOP.asked() && !self.stopping {
            self.stopping = true;
            manager.tell("STOPPING=1");
        }
        if let Some(watchdog) = manager.watchdog {
            let now = now();
            if now - self.beaten >= watchdog {
                self.beaten = now;
                manager.tell("WATCHDOG=1");
            }
        }
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "a watchdog goes by time that passes"
)]
fn now() -> Instant {
    Instant::now()
}

/// A path, or after `@` a name in Linux's abstract namespace.
fn address_of(name: &OsStr) -> io::Result<SocketAddr> {
    match name.as_bytes() {
        #[cfg(target_os = "linux")]
        [b'@', abstract_name @ ..] => {
            use std::os::linux::net::SocketAddrExt;
            SocketAddr::from_abstract_name(abstract_name)
        }
        _ => SocketAddr::from_pathname(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(listener: &UnixDatagram, name: &str) -> String {
        let manager = Manager {
            socket: UnixDatagram::unbound().unwrap(),
            address: address_of(OsStr::new(name)).unwrap(),
            watchdog: None,
        };
        manager.tell("READY=1");
        let mut bytes = [0; 64];
        let length = listener.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }

    #[test]
    fn notifies_by_path_and_by_abstract_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let listener = UnixDatagram::bind(&path).unwrap();
        assert_eq!(told(&listener, path.to_str().unwrap()), "READY=1");
        #[cfg(target_os = "linux")]
        {
            let name = format!("@turboflow-test-{}", std::process::id());
            let listener = UnixDatagram::bind_addr(&address_of(OsStr::new(&name)).unwrap());
            assert_eq!(told(&listener.unwrap(), &name), "READY=1");
        }
    }
}
