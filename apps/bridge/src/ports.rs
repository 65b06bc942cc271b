// SPDX-License-Identifier: Apache-2.0
//! Whether two interfaces can be the ports of a bridge.
//!
//! [`Port::look`] queries the kernel, and [`check`] decides from the result alone, so that every
//! refusal can be tested without special hardware.

mod held;
mod trouble;

use std::io;

use thiserror::Error;
use turboflow_netlink::{Features, Link, Netlink};

use crate::FailMode;
pub use held::HeldPorts;
pub use trouble::trouble;

/// `ARPHRD_ETHER`.
const ETHERNET: u16 = 1;

/// Features that change received frames before they can be forwarded: the kernel's name, and the
/// name for `ethtool -K`.
const MERGING: [(&str, &str); 2] = [("rx-lro", "lro"), ("rx-gro-hw", "rx-gro-hw")];
const TAKING_TAGS_OUT: [(&str, &str); 2] = [
    ("rx-vlan-hw-parse", "rxvlan"),
    ("rx-vlan-stag-hw-parse", "rx-vlan-stag-hw-parse"),
];

/// An interface that is to become a port, as the kernel describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Port {
    /// What it is.
    pub link: Link,
    /// Its features that are switched on.
    pub features: Features,
}

/// Why two interfaces cannot be the ports of a bridge. Messages contain the command that helps.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PortError {
    /// There is no such interface.
    #[error("there is no interface {name}; there are: {present}")]
    NotFound {
        /// The name as given.
        name: String,
        /// The names of existing interfaces.
        present: String,
    },
    /// The kernel does not answer.
    #[error("interface {name}: its properties cannot be read from the kernel: {source}")]
    Io {
        /// The name as given.
        name: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// One interface was given twice.
    #[error("both ports are interface {name}: a bridge needs two different interfaces")]
    SamePort {
        /// The kernel's name.
        name: String,
    },
    /// Not Ethernet.
    #[error(
        "interface {name} is of hardware type {number}, and a bridge forwards Ethernet frames \
         (type 1): name an Ethernet interface"
    )]
    NotEthernet {
        /// The port.
        name: String,
        /// The kernel's number of the hardware type (ARPHRD).
        number: u16,
    },
    /// The two ends of one veth pair.
    #[error(
        "interfaces {name} and {other} are the two ends of one veth pair, so each frame would come \
         back at once: name two interfaces that are not connected to each other"
    )]
    Peers {
        /// One end.
        name: String,
        /// The other end.
        other: String,
    },
    /// One interface is stacked on the other one, as a VLAN or a bond is.
    #[error(
        "interface {upper} is stacked on {lower}, so a frame would pass both and come back: name \
         two interfaces, neither of which is stacked on the other"
    )]
    Stacked {
        /// The upper interface.
        upper: String,
        /// The lower interface.
        lower: String,
    },
    /// Both are ports of the same bond.
    #[error(
        "interfaces {name} and {other} are ports of one {kind}, {master}, which is one link: \
         bridge {master} with the interface of another link"
    )]
    OneBond {
        /// One port.
        name: String,
        /// The other port.
        other: String,
        /// The bond.
        master: String,
        /// The kind of the bond: `bond` or `team`.
        kind: String,
    },
    /// It is a port of another interface.
    #[error(
        "interface {name} is a port of {master} ({kind}), which takes its frames: {or}take {name} \
         out with `ip link set dev {name} nomaster`"
    )]
    Taken {
        /// The port.
        name: String,
        /// The interface that it is a port of.
        master: String,
        /// Its kind.
        kind: String,
        /// An alternative remedy, ending in a comma.
        or: String,
    },
    /// Another running bridge uses it.
    #[error("interface {name} is a port of a bridge of turboflow that is running: stop it first")]
    Bridged {
        /// The port.
        name: String,
    },
    /// Both are in a Linux bridge, but the fail mode forbids forwarding by one.
    #[error(
        "interfaces {name} and {other} are in the Linux bridge {bridge}, which forwards when the \
         process is gone, but fail = \"{fail}\" in the rules forbids that: {mend}, or write fail = \
         \"open\""
    )]
    BridgeBelow {
        /// One port.
        name: String,
        /// The other port.
        other: String,
        /// The Linux bridge.
        bridge: String,
        /// The fail mode of the rules.
        fail: FailMode,
        /// How to remove the bridge.
        mend: String,
    },
    /// The Linux bridge of the two ports has further ports.
    #[error(
        "the Linux bridge {bridge} of {name} and {other} has other ports ({others}), which would \
         get frames when the process is gone: take each out with `ip link set dev PORT nomaster`"
    )]
    OtherPorts {
        /// One port.
        name: String,
        /// The other port.
        other: String,
        /// The Linux bridge.
        bridge: String,
        /// Its other ports.
        others: String,
    },
    /// Interfaces that carry packets of different lengths.
    #[error(
        "interface {long} carries packets of {long_bytes} bytes and {short} of {short_bytes}, so \
         longer ones would be lost: `ip link set dev {short} mtu {long_bytes}`, or `ip link set \
         dev {long} mtu {short_bytes}`"
    )]
    UnequalMtu {
        /// The port with the greater MTU.
        long: String,
        /// Its MTU in bytes.
        long_bytes: u32,
        /// The other port.
        short: String,
        /// Its MTU in bytes.
        short_bytes: u32,
    },
    /// The card merges received frames.
    #[error(
        "interface {name} merges received frames, so frames would leave longer than they came: \
         `ethtool -K {name} {mend}`"
    )]
    MergesFrames {
        /// The port.
        name: String,
        /// What to switch off, as arguments of `ethtool -K`.
        mend: String,
    },
    /// The card removes VLAN tags from received frames.
    #[error(
        "interface {name} removes VLAN tags from received frames, so the frames would leave \
         without their tags: `ethtool -K {name} {mend}`"
    )]
    TakesTagsOut {
        /// The port.
        name: String,
        /// What to switch off, as arguments of `ethtool -K`.
        mend: String,
    },
    /// It is not up.
    #[error("interface {name} is down: `ip link set dev {name} up`")]
    Down {
        /// The port.
        name: String,
    },
}

impl Port {
    /// Queries the kernel about the interface with that name or alternative name.
    ///
    /// # Errors
    /// If there is none, or the kernel does not answer.
    pub fn look(name: &str) -> Result<Self, PortError> {
        let io = |source| PortError::Io {
            name: name.to_owned(),
            source,
        };
        let mut route = Netlink::route().map_err(io)?;
        let Some(link) = Link::named(&mut route, name).map_err(io)? else {
            let present = Link::all(&mut route).map_err(io)?;
            let present: Vec<_> = present.into_iter().map(|link| link.name).collect();
            return Err(PortError::NotFound {
                name: name.to_owned(),
                present: present.join(", "),
            });
        };
        let mut generic = Netlink::generic().map_err(io)?;
        let features = Features::of(&mut generic, link.index).map_err(io)?;
        Ok(Self { link, features })
    }

    fn name(&self) -> String {
        self.link.name.clone()
    }

    /// Those of these features that are on, as arguments of `ethtool -K` that switch them off.
    fn switched_off(&self, features: &[(&str, &str)]) -> Option<String> {
        let on = features.iter().filter(|(name, _)| self.features.has(name));
        let off: Vec<_> = on.map(|(_, argument)| format!("{argument} off")).collect();
        (!off.is_empty()).then(|| off.join(" "))
    }
}

/// Looks up two interfaces by name, checks them, and returns them.
///
/// # Errors
/// The first reason why they cannot be the ports of a bridge.
pub fn checked(first: &str, second: &str, fail: FailMode) -> Result<[Port; 2], PortError> {
    let ports = [Port::look(first)?, Port::look(second)?];
    let all = Netlink::route().and_then(|mut route| Link::all(&mut route));
    let all = all.map_err(|source| PortError::Io {
        name: first.to_owned(),
        source,
    })?;
    check(&ports, fail, &all)?;
    Ok(ports)
}

/// Decides whether two interfaces can be the ports of a bridge. `all` must be all interfaces of the
/// namespace.
///
/// # Errors
/// The first reason why they cannot.
pub fn check(ports: &[Port; 2], fail: FailMode, all: &[Link]) -> Result<(), PortError> {
    let [first, second] = ports;
    if first.link.index == second.link.index {
        return Err(PortError::SamePort { name: first.name() });
    }
    for port in ports {
        let number = port.link.hardware_type;
        if number != ETHERNET {
            return Err(PortError::NotEthernet {
                name: port.name(),
                number,
            });
        }
    }
    check_stack(&first.link, &second.link)?;
    check_stack(&second.link, &first.link)?;
    check_masters(ports, fail, all)?;
    check_mtu(first, second)?;
    for port in ports {
        check_port(port)?;
    }
    Ok(())
}

/// Checks that neither interface is stacked on the other, and that they are not ends of one veth
/// pair.
fn check_stack(first: &Link, second: &Link) -> Result<(), PortError> {
    let (name, other) = (first.name.clone(), second.name.clone());
    if first.lower == Some(second.index) {
        return Err(match first.kind.as_str() {
            "veth" => PortError::Peers { name, other },
            _ => PortError::Stacked {
                upper: name,
                lower: other,
            },
        });
    }
    if second.master == Some(first.index) {
        return Err(PortError::Stacked {
            upper: name,
            lower: other,
        });
    }
    Ok(())
}

/// Checks the interfaces that the ports already belong to.
fn check_masters(ports: &[Port; 2], fail: FailMode, all: &[Link]) -> Result<(), PortError> {
    let master_of = |port: &Port| {
        let index = port.link.master?;
        let unnamed = || Link {
            index,
            name: format!("interface {index}"),
            ..Link::default()
        };
        let link = all.iter().find(|link| link.index == index);
        Some(link.cloned().unwrap_or_else(unnamed))
    };
    let (name, other) = (ports[0].name(), ports[1].name());
    let shared = match ports.each_ref().map(master_of) {
        [None, None] => return Ok(()),
        [Some(first), Some(second)] if first.index == second.index => first,
        [first, _] => {
            let place = usize::from(first.is_none());
            let master = master_of(&ports[place]).unwrap_or_default();
            // A whole bond can be a port instead; a bridge or a VRF cannot.
            let or = match master.kind.as_str() {
                "bond" | "team" => format!("name {}, or ", master.name),
                _ => String::new(),
            };
            return Err(PortError::Taken {
                name: ports[place].name(),
                master: master.name,
                kind: master.kind,
                or,
            });
        }
    };
    if shared.kind != "bridge" {
        return Err(PortError::OneBond {
            name,
            other,
            master: shared.name,
            kind: shared.kind,
        });
    }
    let own = ports.each_ref().map(|port| port.link.index);
    let others = all
        .iter()
        .filter(|link| link.master == Some(shared.index) && !own.contains(&link.index));
    let others: Vec<_> = others.map(|link| link.name.clone()).collect();
    match fail {
        FailMode::Open if others.is_empty() => Ok(()),
        FailMode::Open => Err(PortError::OtherPorts {
            name,
            other,
            bridge: shared.name,
            others: others.join(", "),
        }),
        FailMode::Frozen | FailMode::Closed => Err(PortError::BridgeBelow {
            mend: match shared.alias.as_deref().unwrap_or("").starts_with(OUR_ALIAS) {
                true => format!("take it down with `ip link del dev {}`", shared.name),
                false => format!(
                    "take both out of it with `ip link set dev {name} nomaster` and `ip link set dev \
                     {other} nomaster`"
                ),
            },
            name,
            other,
            bridge: shared.name,
            fail,
        }),
    }
}

fn check_mtu(first: &Port, second: &Port) -> Result<(), PortError> {
    let (long, short) = match first.link.mtu_bytes >= second.link.mtu_bytes {
        true => (first, second),
        false => (second, first),
    };
    if long.link.mtu_bytes == short.link.mtu_bytes {
        return Ok(());
    }
    Err(PortError::UnequalMtu {
        long: long.name(),
        long_bytes: long.link.mtu_bytes,
        short: short.name(),
        short_bytes: short.link.mtu_bytes,
    })
}

/// Checks the properties of a single port.
fn check_port(port: &Port) -> Result<(), PortError> {
    let name = port.name();
    if let Some(mend) = port.switched_off(&MERGING) {
        return Err(PortError::MergesFrames { name, mend });
    }
    if let Some(mend) = port.switched_off(&TAKING_TAGS_OUT) {
        return Err(PortError::TakesTagsOut { name, mend });
    }
    match port.link.is_up {
        true => Ok(()),
        false => Err(PortError::Down { name }),
    }
}

/// Prefix of the alias that marks a Linux bridge as created by this program.
pub(crate) const OUR_ALIAS: &str = "turboflow: ";

#[cfg(test)]
mod tests;
