// SPDX-License-Identifier: Apache-2.0
//! Interfaces as the kernel describes them, and the refusals that follow.

use turboflow_bridge::FailMode;
use turboflow_bridge::ports::{Port, checked};

use crate::namespace::{Namespace, PORTS};

/// The refusal of two interfaces; empty if there is none.
#[track_caller]
fn refusal(namespace: &Namespace, first: &'static str, second: &'static str) -> String {
    let outcome = namespace.inside(move || checked(first, second, FailMode::Open));
    outcome.map_or_else(|error| error.to_string(), |_| String::new())
}

#[track_caller]
fn says(namespace: &Namespace, ports: [&'static str; 2], words: &[&str]) {
    let said = refusal(namespace, ports[0], ports[1]);
    for words in words {
        assert!(said.contains(words), "{words:?} is missing in {said:?}");
    }
    assert_eq!(said.lines().count(), 1, "{said}");
}

/// Runs the command in backticks at the end of a refusal.
#[track_caller]
fn obey(namespace: &Namespace, refusal: &str) {
    let command = refusal
        .split('`')
        .nth(1)
        .unwrap_or_else(|| panic!("no command: {refusal}"));
    namespace.command(command);
}

/// Every refusal names a command, and after running the commands the ports are accepted.
#[test]
fn the_commands_of_refusals_help() {
    let Some(namespace) = Namespace::new() else {
        return;
    };
    namespace.ip("link set pb mtu 1400");
    namespace.ip("link set pa down");
    let mut obeyed = Vec::new();
    loop {
        let said = refusal(&namespace, "pa", "pb");
        if said.is_empty() {
            break;
        }
        assert!(!obeyed.contains(&said), "it did not help: {said}");
        obey(&namespace, &said);
        obeyed.push(said);
    }
    let all = obeyed.join("\n");
    for words in [
        "pa carries packets of 1500 bytes and pb of 1400",
        "pa removes VLAN tags",
        "pb removes VLAN tags",
        "pa is down",
    ] {
        assert!(all.contains(words), "{words:?} is missing in {all}");
    }
    // Each of these problems can be reintroduced.
    namespace.command("ethtool -K pb rxvlan on");
    says(&namespace, PORTS, &["`ethtool -K pb rxvlan off`"]);
}

#[test]
fn two_names_of_one_interface_and_two_ends_of_one_pair_are_refused() {
    let Some(namespace) = Namespace::new() else {
        return;
    };
    namespace.ip("link property add dev pa altname a-name-longer-than-others");
    let twice = ["pa", "a-name-longer-than-others"];
    says(&namespace, twice, &["both ports are interface pa"]);
    says(
        &namespace,
        ["pa", "ha"],
        &["pa and ha are the two ends of one veth pair"],
    );
    says(&namespace, ["lo", "pa"], &["lo is of hardware type 772"]);
    says(
        &namespace,
        ["pa", "px"],
        &["there is no interface px; there are: lo, "],
    );
    let long = "x".repeat(200);
    let outcome = namespace.inside(move || Port::look(&long).unwrap_err().to_string());
    assert!(outcome.contains("there is no interface xxx"), "{outcome}");
}

#[test]
fn interfaces_that_stand_on_each_other_or_belong_to_others_are_refused() {
    let Some(namespace) = Namespace::new() else {
        return;
    };
    namespace.ip("link add br0 type bridge");
    namespace.ip("link set pa master br0");
    says(
        &namespace,
        PORTS,
        &["pa is a port of br0 (bridge)", "nomaster"],
    );
    says(&namespace, ["br0", "pa"], &["br0 is stacked on pa"]);
    namespace.ip("link set pb master br0");
    let open = refusal(&namespace, "pa", "pb");
    assert!(
        open.contains("VLAN tags"),
        "a bridge of both alone is none to refuse: {open}"
    );
    let closed = namespace.inside(|| checked("pa", "pb", FailMode::Closed).unwrap_err());
    let closed = closed.to_string();
    assert!(closed.contains("nomaster"), "{closed}");
    namespace.ip("link set ha master br0");
    says(&namespace, PORTS, &["other ports (ha)"]);
}

#[test]
fn features_of_a_veth_end_are_told() {
    let Some(namespace) = Namespace::new() else {
        return;
    };
    namespace.command("ethtool -K pa gro on");
    let port = namespace.inside(|| Port::look("pa").unwrap());
    assert_eq!(
        (port.link.kind.as_str(), port.link.hardware_type),
        ("veth", 1)
    );
    assert!(port.link.is_up && port.link.mtu_bytes == 1500, "{port:?}");
    assert!(
        port.features.has("rx-gro") && !port.features.has("rx-lro"),
        "{port:?}"
    );
    namespace.command("ethtool -K pa gro off");
    let port = namespace.inside(|| Port::look("pa").unwrap());
    assert!(!port.features.has("rx-gro"), "{port:?}");
}
