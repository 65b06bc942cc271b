// SPDX-License-Identifier: Apache-2.0
//! Tests every refusal with made-up interface descriptions.

use super::*;

fn link(index: u32, name: &str) -> Link {
    Link {
        index,
        name: name.to_owned(),
        hardware_type: ETHERNET,
        mtu_bytes: 1500,
        is_up: true,
        ..Link::default()
    }
}

fn ports() -> [Port; 2] {
    [link(2, "eth0"), link(3, "eth1")].map(|link| Port {
        link,
        features: ["rx-gro", "rx-checksum"].into_iter().collect(),
    })
}

fn master(kind: &str) -> Link {
    Link {
        kind: kind.to_owned(),
        ..link(9, "up0")
    }
}

/// The refusal after a change to two good ports.
fn refusal(fail: FailMode, all: &[Link], change: impl FnOnce(&mut [Port; 2])) -> String {
    let mut ports = ports();
    change(&mut ports);
    check(&ports, fail, all).unwrap_err().to_string()
}

#[track_caller]
fn says(refusal: &str, words: &[&str]) {
    for words in words {
        assert!(refusal.contains(words), "{words:?} is missing in {refusal}");
    }
}

#[test]
fn two_plain_interfaces_are_ports() {
    for fail in [FailMode::Open, FailMode::Frozen, FailMode::Closed] {
        check(&ports(), fail, &[]).unwrap();
    }
}

#[test]
fn one_port_twice_is_refused() {
    let said = refusal(FailMode::Open, &[], |ports| ports[1] = ports[0].clone());
    says(&said, &["both ports are interface eth0"]);
}

#[test]
fn ends_of_one_pair_and_interfaces_on_each_other_are_refused() {
    let said = refusal(FailMode::Open, &[], |ports| {
        ports[0].link.kind = "veth".to_owned();
        ports[0].link.lower = Some(3);
    });
    says(&said, &["eth0 and eth1", "one veth pair"]);
    let said = refusal(FailMode::Open, &[], |ports| {
        ports[1].link.kind = "vlan".to_owned();
        ports[1].link.lower = Some(2);
    });
    says(&said, &["eth1 is stacked on eth0"]);
    let said = refusal(FailMode::Open, &[], |ports| ports[1].link.master = Some(2));
    says(&said, &["eth0 is stacked on eth1"]);
}

#[test]
fn ports_of_a_bond_are_refused() {
    let said = refusal(FailMode::Open, &[master("bond")], |ports| {
        ports.iter_mut().for_each(|port| port.link.master = Some(9));
    });
    says(
        &said,
        &["eth0 and eth1 are ports of one bond, up0", "bridge up0"],
    );
    for place in [0, 1] {
        let name = ["eth0", "eth1"][place];
        for kind in ["bond", "bridge", "vrf"] {
            let said = refusal(FailMode::Open, &[master(kind)], |ports| {
                ports[place].link.master = Some(9);
            });
            let mend = format!("ip link set dev {name} nomaster");
            says(
                &said,
                &[&format!("{name} is a port of up0 ({kind})"), &mend],
            );
        }
    }
}

#[test]
fn a_linux_bridge_below_is_for_fail_open_alone() {
    let below = |ports: &mut [Port; 2]| {
        ports.iter_mut().for_each(|port| port.link.master = Some(9));
    };
    let mut open = ports();
    below(&mut open);
    check(&open, FailMode::Open, &[master("bridge")]).unwrap();
    for fail in [FailMode::Frozen, FailMode::Closed] {
        let said = refusal(fail, &[master("bridge")], below);
        let as_written = format!("fail = \"{fail}\"");
        says(
            &said,
            &["bridge up0", &as_written, "ip link set dev eth0 nomaster"],
        );
    }
    let third = Link {
        master: Some(9),
        ..link(4, "eth2")
    };
    let said = refusal(FailMode::Open, &[master("bridge"), third], below);
    says(&said, &["up0", "other ports (eth2)", "nomaster"]);
}

#[test]
fn unequal_mtus_are_refused_in_either_order() {
    for place in [0, 1] {
        let (long, short) = [("eth0", "eth1"), ("eth1", "eth0")][place];
        let said = refusal(FailMode::Open, &[], |ports| {
            ports[place].link.mtu_bytes = 9000;
        });
        says(
            &said,
            &[
                &format!("{long} carries packets of 9000 bytes and {short} of 1500"),
                &format!("ip link set dev {short} mtu 9000"),
                &format!("ip link set dev {long} mtu 1500"),
            ],
        );
    }
}

#[test]
fn offloads_that_change_frames_are_refused_with_the_command() {
    let with = |features: &[&'static str]| {
        refusal(FailMode::Open, &[], |ports| {
            ports[1].features = features.iter().copied().collect();
        })
    };
    says(
        &with(&["rx-lro"]),
        &["eth1 merges", "`ethtool -K eth1 lro off`"],
    );
    says(
        &with(&["rx-gro-hw", "rx-lro"]),
        &["`ethtool -K eth1 lro off rx-gro-hw off`"],
    );
    says(
        &with(&["rx-vlan-hw-parse"]),
        &["eth1 removes VLAN tags", "`ethtool -K eth1 rxvlan off`"],
    );
    says(
        &with(&["rx-vlan-stag-hw-parse"]),
        &["`ethtool -K eth1 rx-vlan-stag-hw-parse off`"],
    );
}

#[test]
fn ports_are_ethernet_and_up() {
    let said = refusal(FailMode::Open, &[], |ports| ports[1].link.is_up = false);
    says(&said, &["eth1 is down", "ip link set dev eth1 up"]);
    let said = refusal(FailMode::Open, &[], |ports| {
        ports[0].link.hardware_type = 772
    });
    says(&said, &["eth0 is of hardware type 772"]);
}

#[test]
fn an_absent_interface_is_named_with_those_that_there_are() {
    let said = Port::look("no-such-port").unwrap_err().to_string();
    says(&said, &["there is no interface no-such-port", "lo"]);
    // The loopback interface always exists, and cannot be a port.
    let said = checked("lo", "lo", FailMode::Open).unwrap_err().to_string();
    says(&said, &["both ports are interface lo"]);
}
