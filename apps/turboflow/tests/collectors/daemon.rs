// SPDX-License-Identifier: Apache-2.0
//! A collector that runs: started on a port of UDP, ended once it has taken in what it was sent.

use std::fs;
use std::process::{Child, Command, Stdio};

use turboflow_testing::until;

use crate::support::{Folder, signal};

pub(crate) struct Daemon {
    child: Child,
    pub(crate) folder: Folder,
    pub(crate) port: u16,
}

impl Daemon {
    /// Starts a program in a folder and waits until it listens. What it says is in `talk`.
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

    /// Waits until it has read every datagram, and sees that its socket dropped none.
    pub(crate) fn has_read(&self) {
        until("it has read everything", || self.waiting() == 0);
        let (_, dropped) = self.socket().unwrap();
        assert_eq!(dropped, 0, "its socket had no room: send slower");
    }

    fn waiting(&self) -> u64 {
        self.socket().unwrap().0
    }

    /// Octets that wait in its socket, and datagrams that found no room (/proc/net/udp).
    fn socket(&self) -> Option<(u64, u64)> {
        let table = fs::read_to_string("/proc/net/udp").unwrap();
        table.lines().skip(1).find_map(|line| {
            let fields: Vec<_> = line.split_whitespace().collect();
            let port = u16::from_str_radix(fields[1].split_once(':')?.1, 16).ok()?;
            let waiting = u64::from_str_radix(fields[4].split_once(':')?.1, 16).ok()?;
            (port == self.port).then(|| (waiting, fields[12].parse().unwrap()))
        })
    }

    /// Ends it with a signal, and gives its folder.
    pub(crate) fn end(mut self, name: &str) -> Folder {
        signal(&self.child, name);
        self.child.wait().unwrap();
        std::mem::replace(&mut self.folder, Folder::new())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // After a test that failed; one that ended has gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
