// SPDX-License-Identifier: Apache-2.0
//! A running collector. It is started on a UDP port, and ended once it has processed everything
//! sent to it.

use std::fs;
use std::process::{Child, Command, Stdio};

use turboflow_testing::{is_idle, until};

use crate::support::{Folder, signal};

pub(crate) struct Daemon {
    child: Child,
    pub(crate) folder: Folder,
    pub(crate) port: u16,
}

impl Daemon {
    /// Starts a program in a folder, and waits until it listens. Its output is in `talk`.
    pub(crate) fn start(command: &mut Command, folder: Folder, port: u16) -> Self {
        let talk = fs::File::create(folder.path().join("talk")).unwrap();
        let child = command
            .stdin(Stdio::null())
            .stdout(talk.try_clone().unwrap())
            .stderr(talk)
            .spawn()
            .unwrap();
        let daemon = Self {
            child,
            folder,
            port,
        };
        until("it listens", || daemon.socket().is_some());
        daemon
    }

    /// Waits until the collector has read and processed every datagram, and checks that its socket
    /// dropped none. A signal right after the last read could lose a datagram, because nfcapd
    /// checks for signals before it processes what it has read.
    pub(crate) fn wait_until_handled(&self) {
        until("it has handled everything", || {
            self.waiting() == 0 && is_idle(self.child.id())
        });
        let (_, dropped) = self.socket().unwrap();
        assert_eq!(dropped, 0, "the socket was full: send slower");
    }

    fn waiting(&self) -> u64 {
        self.socket().unwrap().0
    }

    /// Octets in the socket's receive buffer, and dropped datagrams (/proc/net/udp).
    fn socket(&self) -> Option<(u64, u64)> {
        let table = fs::read_to_string("/proc/net/udp").unwrap();
        table.lines().skip(1).find_map(|line| {
            let fields: Vec<_> = line.split_whitespace().collect();
            let port = u16::from_str_radix(fields[1].split_once(':')?.1, 16).ok()?;
            let waiting = u64::from_str_radix(fields[4].split_once(':')?.1, 16).ok()?;
            (port == self.port).then(|| (waiting, fields[12].parse().unwrap()))
        })
    }

    /// Ends it with a signal, and returns its folder.
    pub(crate) fn end(mut self, name: &str) -> Folder {
        signal(&self.child, name);
        self.child.wait().unwrap();
        std::mem::replace(&mut self.folder, Folder::new())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // After a failed test it may still run. Otherwise it has exited, and the error is ignored.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
