// SPDX-License-Identifier: Apache-2.0
//! The Linux bridge below the program: what it forwards, and how long it stays.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use turboflow_bridge::fail::{LinuxBridge, firewalls, left_pins, pin_folder};
use turboflow_bridge::ports::Port;
use turboflow_capture::live::Sender;
use turboflow_netlink::{Link, Netlink};
use turboflow_testing::{Need, is_missing};

use crate::frames::{Ear, end, frames, pause};
use crate::namespace::{HOSTS, Namespace, PORTS};

/// Number of frames sent in a test.
const FRAMES: usize = 500;

fn over_ports() -> LinuxBridge {
    let [first, second] = PORTS.map(|name| Port::look(name).unwrap().link);
    LinuxBridge::over(&first, &second).unwrap()
}

fn is_there(name: &str) -> bool {
    let mut socket = Netlink::route().unwrap();
    Link::named(&mut socket, name).unwrap().is_some()
}

/// The frames that come out on the other side.
fn passed(from: &str, to: &str, sent: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut ear = Ear::at(to);
    let mut from = Sender::open(from).unwrap();
    ear.send(&mut from, sent);
    end(&mut from);
    ear.heard()
}

#[test]
fn all_frames_pass_in_both_directions_and_after_the_process() {
    let Some(namespace) = Namespace::new() else {
        return;
    };
    namespace.inside(|| {
        // The value is dropped, as when the process ends.
        assert!(over_ports().is_own());
        let sent = frames(FRAMES);
        let [near, far] = HOSTS;
        assert_eq!(passed(near, far, &sent), sent);
        // Addresses seen as sources on one side are still forwarded to that side.
        assert_eq!(passed(far, near, &sent), sent);
        // IEEE 802.1D forbids forwarding pause frames, and the kernel complies.
        assert_eq!(passed(near, far, &[pause()]), Vec::<Vec<u8>>::new());
    });
}

#[test]
fn a_process_that_starts_again_finds_the_bridge_and_may_take_it_down() {
    let Some(namespace) = Namespace::new() else {
        return;
    };
    namespace.inside(|| {
        let first = over_ports();
        let name = first.name().to_owned();
        drop(first);
        let [second, first] = PORTS.map(|name| Port::look(name).unwrap().link);
        // The order of the ports does not matter.
        let again = LinuxBridge::over(&first, &second).unwrap();
        assert!(again.is_own() && again.name() == name, "{again:?}");
        let sent = frames(FRAMES);
        assert_eq!(passed(HOSTS[0], HOSTS[1], &sent), sent);
        again.take_down().unwrap();
        assert!(!is_there(&name));
        let mut ear = Ear::at(HOSTS[1]);
        ear.send(&mut Sender::open(HOSTS[0]).unwrap(), &sent);
        // Sent from the port itself, because nothing is forwarded any more.
        end(&mut Sender::open(PORTS[1]).unwrap());
        assert_eq!(ear.heard(), Vec::<Vec<u8>>::new());
    });
}

/// Settings that affect bridged frames are reported, and not changed.
#[test]
fn firewalls_that_see_bridged_frames_are_told() {
    let Some(namespace) = Namespace::new() else {
        return;
    };
    namespace.inside(|| {
        assert_eq!(firewalls(), Vec::<&str>::new());
        let setting = "/proc/sys/net/bridge/bridge-nf-call-iptables";
        // The setting exists only in kernels with `br_netfilter`.
        if std::fs::write(setting, "1").is_ok() {
            assert_eq!(firewalls(), ["bridge-nf-call-iptables"]);
            over_ports();
            assert_eq!(firewalls(), ["bridge-nf-call-iptables"]);
        }
    });
}

/// A process that was killed halfway leaves a bridge without its ports.
#[test]
fn half_a_bridge_is_made_whole() {
    let Some(namespace) = Namespace::new() else {
        return;
    };
    let name = namespace.inside(|| over_ports().name().to_owned());
    namespace.ip("link set pb nomaster");
    namespace.ip(&format!("link set {name} type bridge stp_state 1"));
    namespace.inside(move || {
        assert_eq!(over_ports().name(), name);
        let sent = frames(FRAMES);
        assert_eq!(passed(HOSTS[0], HOSTS[1], &sent), sent);
    });
}

#[test]
fn a_bridge_of_the_operator_stays_as_it_is() {
    let Some(namespace) = Namespace::new() else {
        return;
    };
    namespace.ip("link add br0 type bridge");
    for port in PORTS {
        namespace.ip(&format!("link set {port} master br0"));
    }
    namespace.inside(|| {
        let bridge = over_ports();
        assert!(!bridge.is_own() && bridge.name() == "br0", "{bridge:?}");
        bridge.take_down().unwrap();
        assert!(is_there("br0"));
    });
}

#[test]
fn another_interface_of_the_name_is_left_alone() {
    let Some(namespace) = Namespace::new() else {
        return;
    };
    let index = namespace.inside(|| {
        let indexes = PORTS.map(|name| Port::look(name).unwrap().link.index);
        indexes.into_iter().min().unwrap()
    });
    namespace.ip(&format!("link add tfbr{index} type bridge"));
    namespace.inside(move || {
        let [first, second] = PORTS.map(|name| Port::look(name).unwrap().link);
        let said = LinuxBridge::over(&first, &second).unwrap_err().to_string();
        assert!(
            said.contains(&format!("`ip link del dev tfbr{index}`")),
            "{said}"
        );
        let [first, second] = PORTS.map(|name| Port::look(name).unwrap().link);
        assert_eq!((first.master, second.master), (None, None));
    });
}

/// A bridge that cannot be completed is removed.
#[test]
fn no_half_of_a_bridge_is_left() {
    let Some(namespace) = Namespace::new() else {
        return;
    };
    namespace.ip("link add br0 type bridge");
    namespace.inside(|| {
        let first = Port::look("pa").unwrap().link;
        // A bridge cannot be a port of another bridge.
        let second = Port::look("br0").unwrap().link;
        let said = LinuxBridge::over(&first, &second).unwrap_err().to_string();
        assert!(said.contains("adding br0 to the bridge tfbr"), "{said}");
        assert!(!is_there(&format!("tfbr{}", first.index)));
        assert_eq!(Port::look("pa").unwrap().link.master, None);
    });
}

/// A private BPF file system.
struct BpfFiles(PathBuf);

impl BpfFiles {
    fn mount() -> Self {
        let folder = std::env::temp_dir().join(format!("turboflow-bpf-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "bpf", "bpf"]).arg(&folder);
        assert!(mount.status().unwrap().success(), "{mount:?}");
        Self(folder)
    }
}

impl Drop for BpfFiles {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn pins_have_a_folder_that_only_their_owner_enters() {
    if is_missing(&[Need::Root, Need::Tool("mount")]) {
        return;
    }
    let files = BpfFiles::mount();
    let link = |name: &str| Link {
        name: name.to_owned(),
        ..Link::default()
    };
    let (first, second) = (link("eth0.10"), link("eth1"));
    let folder = pin_folder(&files.0, &first, &second).unwrap();
    let name = folder.file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with("eth0%2e10:eth1:"), "{name}");
    assert!(folder.starts_with(files.0.join("turboflow")));
    let mode = std::fs::metadata(&folder).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    // A restarted process finds the folder, whichever port is given first.
    assert_eq!(pin_folder(&files.0, &second, &first).unwrap(), folder);
    assert_eq!(left_pins(&files.0, &first, &second), None);
    std::fs::create_dir(folder.join("2")).unwrap();
    assert_eq!(left_pins(&files.0, &second, &first), Some(folder));
}
