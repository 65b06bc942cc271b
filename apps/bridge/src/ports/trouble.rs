// SPDX-License-Identifier: Apache-2.0
//! Problems with ports that arise after they were checked.

use turboflow_netlink::{Link, Netlink};

use super::Port;

/// Why packets are being lost between two ports, if the current state of the interfaces explains
/// it.
#[must_use]
pub fn trouble(ports: &[Port; 2]) -> Option<String> {
    let mut socket = Netlink::route().ok()?;
    let [first, second] = ports
        .each_ref()
        .map(|port| Link::at(&mut socket, port.link.index));
    trouble_of(ports, [first.ok()?, second.ok()?])
}

fn trouble_of(ports: &[Port; 2], links: [Option<Link>; 2]) -> Option<String> {
    let is_down = |link: &Option<Link>| link.as_ref().is_none_or(|link| !link.is_up);
    if let Some(place) = links.iter().position(is_down) {
        let name = &ports[place].link.name;
        return Some(format!("{name} is down or gone: nothing passes"));
    }
    let [Some(first), Some(second)] = links else {
        return None;
    };
    (first.mtu_bytes != second.mtu_bytes).then(|| {
        format!(
            "{} has an MTU of {} and {} of {}: longer packets are lost",
            first.name, first.mtu_bytes, second.name, second.mtu_bytes
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_that_are_down_or_differ_in_mtu_are_named() {
        let link = |name: &str, mtu_bytes, is_up| Link {
            name: name.to_owned(),
            mtu_bytes,
            is_up,
            ..Link::default()
        };
        let ports = ["a", "b"].map(|name| Port {
            link: link(name, 1_500, true),
            ..Port::default()
        });
        let said = |first, second| trouble_of(&ports, [first, second]);
        let well = Some(link("a", 1_500, true));
        assert_eq!(said(well.clone(), Some(link("b", 1_500, true))), None);
        let down = said(well.clone(), Some(link("b", 1_500, false)));
        assert!(down.unwrap().starts_with("b is down"));
        assert!(said(None, well.clone()).unwrap().starts_with("a is down"));
        let short = said(well, Some(link("b", 1_400, true))).unwrap();
        assert!(short.contains("1500 and b of 1400"), "{short}");
    }
}
