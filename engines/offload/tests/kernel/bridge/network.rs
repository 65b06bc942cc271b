// SPDX-License-Identifier: Apache-2.0
//! The network namespace of a test, with two veth pairs `ha - pa` and `pb - hb`. The ends `pa` and
//! `pb` are the ports of a bridge.

use std::process::Command;

use rustix::thread::{UnshareFlags, unshare_unsafe};
use turboflow_engine_xdp::{KernelConfig, KernelEngine, Tester, XdpMode};
use turboflow_testing::{Need, is_missing};

use crate::support::{config, load_for_all_cpus};

pub(super) const PORTS: [&str; 2] = ["pa", "pb"];
pub(super) const HOSTS: [&str; 2] = ["ha", "hb"];

/// The test's thread stays in the namespace while it lives.
pub(super) struct Network {
    /// Programs on the hosts' ends. A veth interface takes redirected frames only if its peer has a
    /// program, or merges received frames.
    ears: Option<KernelEngine>,
}

impl Network {
    /// Creates the namespace; `None` if that is not possible, and the test is skipped.
    pub(super) fn new() -> Option<Self> {
        Self::with(|| config(8))
    }

    /// As `new`, with another program on the hosts' ends. It is configured once the interfaces
    /// exist.
    pub(super) fn with(ears: impl FnOnce() -> KernelConfig) -> Option<Self> {
        // SAFETY: only the test's thread changes its namespace, and it has no network descriptors.
        let unshared = unsafe { unshare_unsafe(UnshareFlags::NEWNET) };
        let rights = Need::Right("make network namespaces", unshared.is_ok());
        if is_missing(&[Need::Root, Need::Tool("ip"), rights]) {
            return None;
        }
        std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1").unwrap();
        for (port, host) in PORTS.into_iter().zip(HOSTS) {
            ip(&format!("link add {port} type veth peer name {host}"));
            ip(&format!("link set {port} up promisc on"));
            ip(&format!("link set {host} up"));
        }
        let listening = KernelConfig {
            interfaces: HOSTS.map(str::to_owned).to_vec(),
            ..ears()
        };
        let mut ears = load_for_all_cpus(&listening)?;
        ears.attach(XdpMode::Native, false).unwrap();
        Some(Self { ears: Some(ears) })
    }

    /// A tester that runs the programs of the hosts' ends.
    pub(super) fn tester(&self) -> Tester {
        self.ears.as_ref().expect("they listen").tester()
    }

    /// Detaches the hosts' programs: from now on these ends take no redirected frames.
    pub(super) fn deafen(&mut self) {
        let ears = self.ears.take().expect("they listen");
        drop(ears);
    }
}

/// Runs `ip` in the test's namespace.
#[track_caller]
pub(super) fn ip(words: &str) {
    let output = Command::new("ip").args(words.split(' ')).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {words}: {said}");
}
