// SPDX-License-Identifier: Apache-2.0
//! A network namespace with two veth pairs, and code that runs in it.

use std::os::fd::AsFd;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use turboflow_bridge::fail::firewalls;
use turboflow_testing::{Need, is_missing};

/// The ports of the bridge.
pub(crate) const PORTS: [&str; 2] = ["pa", "pb"];
/// The other ends of their cables.
pub(crate) const HOSTS: [&str; 2] = ["ha", "hb"];

static NAMESPACES: AtomicU32 = AtomicU32::new(0);

/// Two veth pairs that are up and send nothing themselves, `ha - pa` and `pb - hb`. No firewall
/// sees bridged frames.
pub(crate) struct Namespace {
    name: String,
}

impl Namespace {
    /// Creates the namespace; `None` if that is not possible and the test is skipped.
    pub(crate) fn new() -> Option<Self> {
        let needs = [Need::Root, Need::Tool("ip"), Need::Tool("ethtool")];
        let namespaces = || Need::Right("make network namespaces", may_make_namespaces());
        if is_missing(&needs) || is_missing(&[namespaces()]) {
            return None;
        }
        let number = NAMESPACES.fetch_add(1, Ordering::Relaxed);
        let name = format!("turboflow-bridge-{}-{number}", std::process::id());
        let namespace = Self { name };
        run("ip", &format!("netns add {}", namespace.name));
        namespace.write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
        namespace.inside(|| {
            for setting in firewalls() {
                std::fs::write(format!("/proc/sys/net/bridge/{setting}"), "0").unwrap();
            }
        });
        for (port, host) in PORTS.into_iter().zip(HOSTS) {
            namespace.ip(&format!("link add {port} type veth peer name {host}"));
            namespace.ip(&format!("link set {port} up"));
            namespace.ip(&format!("link set {host} up"));
        }
        Some(namespace)
    }

    #[track_caller]
    pub(crate) fn ip(&self, words: &str) {
        run("ip", &format!("-n {} {words}", self.name));
    }

    /// Runs a command in the namespace.
    #[track_caller]
    pub(crate) fn command(&self, words: &str) {
        run("ip", &format!("netns exec {} {words}", self.name));
    }

    fn write(&self, path: &'static str, value: &'static str) {
        self.inside(move || std::fs::write(path, value).unwrap());
    }

    /// Runs code in the namespace.
    #[track_caller]
    pub(crate) fn inside<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let path = format!("/run/netns/{}", self.name);
        let working = thread::spawn(move || {
            let namespace = std::fs::File::open(path).unwrap();
            let kind = Some(LinkNameSpaceType::Network);
            move_into_link_name_space(namespace.as_fd(), kind).unwrap();
            work()
        });
        match working.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = Command::new("ip")
            .args(["netns", "del", &self.name])
            .status();
    }
}

/// In a container, root may lack the right.
fn may_make_namespaces() -> bool {
    static MAY: OnceLock<bool> = OnceLock::new();
    *MAY.get_or_init(|| {
        let output = Command::new("unshare")
            .args(["--net", "--mount", "true"])
            .output();
        output.is_ok_and(|output| output.status.success())
    })
}

#[track_caller]
fn run(program: &str, words: &str) {
    let output = Command::new(program)
        .args(words.split(' '))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {words}: {said}");
}
