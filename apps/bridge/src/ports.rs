// SPDX-License-Identifier: Apache-2.0
//! Whether two interfaces can be the ports of a bridge.
//!
//! [`Port::look`] asks the kernel, and [`check`] decides from what it said, so that every refusal
//! is tested without such a card.

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

/// Features by which a frame that comes in is not the frame of the wire: the kernel's name, and
/// that of `ethtool -K`.
const MERGING: [(&str, &str); 2] = [("rx-lro", "lro"), ("rx-gro-hw", "rx-gro-hw")];
const TAKING_TAGS_OUT: [(&str, &str); 2] = [
    ("rx-vlan-hw-parse", "rxvlan"),
    ("rx-vlan-stag-hw-parse", "rx-vlan-stag-hw-parse"),
];

/// An interface that is to be a port, as the kernel describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Port {
    /// What it is.
    pub link: Link,
    /// Its features that are on.
    pub features: Features,
}

/// Why two interfaces cannot be the ports of a bridge. Messages have the command that helps.
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
    #[error("interface {name}: the kernel does not say what it is: {source}")]
    Io {
        /// The name as given.
        name: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// One interface, twice.
    #[error("both ports are interface {name}: a bridge has two; name the other one")]
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
        /// The kernel's number of the type (ARPHRD).
        number: u16,
    },
    /// The two ends of one veth pair.
    #[error(
        "interfaces {name} and {other} are the two ends of one veth pair, so each frame would come \
         back at once: name the ends that lead elsewhere"
    )]
    Peers {
        /// One end.
        name: String,
        /// The other end.
        other: String,
    },
    /// One interface stands on the other one, as a VLAN or a bond does.
    #[error(
        "interface {upper} stands on {lower}, so a frame would pass both and come back: name two \
         interfaces of which none stands on the other"
    )]
    Stacked {
        /// The upper interface.
        upper: String,
        /// The lower interface.
        lower: String,
    },
    /// Both are ports of one bond.
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
    /// A port of another interface.
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
        /// What else helps, with a comma behind it.
        or: String,
    },
    /// A bridge that is running has it.
    #[error("interface {name} is a port of a bridge of turboflow that is running: stop it first")]
    Bridged {
        /// The port.
        name: String,
    },
    /// Both are in a Linux bridge, which is not to forward.
    #[error(
        "interfaces {name} and {other} are in the Linux bridge {bridge}, which forwards when the \
         process is gone, and fail = \"{fail}\" in the rules says otherwise: {mend}, or write fail \
         = \"open\""
    )]
    BridgeBelow {
        /// One port.
        name: String,
        /// The other port.
        other: String,
        /// The Linux bridge.
        bridge: String,
        /// What the rules say.
        fail: FailMode,
        /// How to take it down.
        mend: String,
    },
    /// The Linux bridge of both has further ports.
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
    /// The card merges frames that come in.
    #[error(
        "interface {name} merges frames that come in, so longer ones would go out than came: \
         `ethtool -K {name} {mend}`"
    )]
    MergesFrames {
        /// The port.
        name: String,
        /// What to switch off, as arguments of `ethtool -K`.
        mend: String,
    },
    /// The card takes VLAN tags out of frames.
    #[error(
        "interface {name} takes VLAN tags out of frames, so they would go out without: `ethtool -K \
         {name} {mend}`"
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
    /// Asks the kernel about the interface of that name or alternative name.
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

    /// What of these is on, as arguments of `ethtool -K` that switch it off.
    fn switched_off(&self, features: &[(&str, &str)]) -> Option<String> {
        let on = features.iter().filter(|(name, _)| self.features.has(name));
        let off: Vec<_> = on.map(|(_, argument)| format!("{argument} off")).collect();
        (!off.is_empty()).then(|| off.join(" "))
    }
}

/// Checks two interfaces by name, and gives them.
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

/// Decides whether two interfaces can be the ports of a bridge. `all` are the interfaces of the
/// namespace.
///
/// # Errors
/// The first reason why not.
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

/// Whether the first stands on the second, or is its other end.
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

/// What the ports are ports of already.
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
            // Of a bond the whole can be a port; of a bridge or a VRF it cannot.
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

/// What concerns one port alone.
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

/// How the alias of a Linux bridge begins that a bridge of ours stands on.
pub(crate) const OUR_ALIAS: &str = "turboflow: ";

#[cfg(test)]
mod tests;
