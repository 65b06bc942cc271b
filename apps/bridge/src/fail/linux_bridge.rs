// SPDX-License-Identifier: Apache-2.0
//! A Linux bridge of two ports that forwards every frame it is allowed to. It does not learn
//! addresses, so every frame leaves through the other port.

use std::io;

use turboflow_netlink::{Link, LinkRequest, Netlink, Request};

use super::FailError;
use crate::ports::OUR_ALIAS;

// From include/uapi/linux/rtnetlink.h, if_link.h and netlink.h.
const NEW_LINK: u16 = 16;
const DELETE_LINK: u16 = 17;
const SET_LINK: u16 = 19;
const CREATE: u16 = 0x400;
const EXCLUSIVE: u16 = 0x200;
const IFLA_IFNAME: u16 = 3;
const IFLA_MASTER: u16 = 10;
const IFLA_LINKINFO: u16 = 18;
const IFLA_IFALIAS: u16 = 20;
const IFLA_AF_SPEC: u16 = 26;
const INFO_KIND: u16 = 1;
const INFO_DATA: u16 = 2;
const INFO_PORT_KIND: u16 = 4;
const INFO_PORT_DATA: u16 = 5;
const UP: u32 = 1;
const INET6: u16 = 10;
const INET6_ADDRESS_MODE: u16 = 8;
/// `IN6_ADDR_GEN_MODE_NONE`.
const NO_ADDRESS: u8 = 1;

// Attributes of a bridge.
const BR_AGEING_TIME: u16 = 4;
const BR_STP_STATE: u16 = 5;
const BR_MULTICAST_SNOOPING: u16 = 23;

// Attributes of a bridge port.
const PORT_LEARNING: u16 = 8;
const PORT_UNICAST_FLOOD: u16 = 9;
const PORT_MULTICAST_FLOOD: u16 = 27;
const PORT_BROADCAST_FLOOD: u16 = 30;
const PORT_GROUP_FORWARD_MASK: u16 = 31;

/// Mask of the groups 01:80:c2:00:00:0X that a port forwards: all (spanning tree, LACP, LLDP, ...)
/// except pause frames (X = 1), which the kernel never forwards.
const ALL_GROUPS: u16 = !(1 << 1);

/// `EPERM`.
const NOT_PERMITTED: i32 = 1;
/// `EOPNOTSUPP`: the kernel was built without bridge support.
const NOT_SUPPORTED: i32 = 95;

/// A Linux bridge of two ports. It deliberately outlives this value and the process, however the
/// process ends.
#[derive(Debug)]
pub struct LinuxBridge {
    index: u32,
    name: String,
    is_own: bool,
}

impl LinuxBridge {
    /// Uses the bridge that both ports are already in, or creates one. The ports must have been
    /// [checked](crate::ports::check). An operator's bridge is used as it is. A bridge that this
    /// function created earlier is configured again, in case the process was killed halfway.
    ///
    /// # Errors
    /// If the kernel refuses. No half-configured bridge is left behind.
    pub fn over(first: &Link, second: &Link) -> Result<Self, FailError> {
        let mut socket = Netlink::route().map_err(|source| refused("opening a socket", source))?;
        // The order of the ports does not matter.
        let [first, second] = match first.index < second.index {
            true => [first, second],
            false => [second, first],
        };
        let alias = format!("{OUR_ALIAS}{} and {}", first.name, second.name);
        if let Some(index) = first.master
            && second.master == Some(index)
        {
            let below = Link::at(&mut socket, index);
            let below =
                below.map_err(|source| refused("reading the bridge of the ports", source))?;
            let below = below.unwrap_or_default();
            if below.alias.as_deref() != Some(alias.as_str()) {
                return Ok(Self {
                    index,
                    name: below.name,
                    is_own: false,
                });
            }
        }
        let bridge = Self::made(&mut socket, &alias, [first, second])?;
        for port in [first, second] {
            if let Err(error) = bridge.take_in(&mut socket, port) {
                bridge.delete(&mut socket)?;
                return Err(error);
            }
        }
        Ok(bridge)
    }

    /// Finds or creates the bridge with our name.
    fn made(socket: &mut Netlink, alias: &str, ports: [&Link; 2]) -> Result<Self, FailError> {
        let name = format!("tfbr{}", ports[0].index);
        let failed = |source| refused(&format!("creating the bridge {name}"), source);
        let there = Link::named(socket, &name).map_err(failed)?;
        if let Some(there) = &there
            && there.alias.as_deref() != Some(alias)
        {
            return Err(FailError::NameTaken {
                name,
                first: ports[0].name.clone(),
                second: ports[1].name.clone(),
            });
        }
        if there.is_none() {
            let new = LinkRequest::default().of_kind(NEW_LINK, CREATE | EXCLUSIVE);
            let new = new.put_text(IFLA_IFNAME, &name);
            socket.order(settings(new)).map_err(failed)?;
        }
        let made = Link::named(socket, &name).map_err(failed)?;
        let made = made.ok_or_else(|| failed(io::ErrorKind::NotFound.into()))?;
        let bridge = Self {
            index: made.index,
            name,
            is_own: true,
        };
        match bridge.set_up(socket, alias) {
            Ok(()) => Ok(bridge),
            Err(source) => {
                let what = format!("setting up the bridge {}", bridge.name);
                bridge.delete(socket)?;
                Err(refused(&what, source))
            }
        }
    }

    fn set_up(&self, socket: &mut Netlink, alias: &str) -> io::Result<()> {
        let about = LinkRequest {
            index: self.index,
            ..LinkRequest::default()
        };
        socket.order(settings(about.of_kind(NEW_LINK, 0)))?;
        socket.order(
            about
                .of_kind(SET_LINK, 0)
                .put(IFLA_IFALIAS, alias.as_bytes()),
        )?;
        // The bridge itself must not send anything. A kernel without IPv6 refuses this setting.
        let quiet = about.of_kind(SET_LINK, 0).nest(IFLA_AF_SPEC, |families| {
            families.nest(INET6, |inet6| inet6.put(INET6_ADDRESS_MODE, &[NO_ADDRESS]))
        });
        let _ = socket.order(quiet);
        let up = LinkRequest {
            flags: UP,
            changed_flags: UP,
            ..about
        };
        socket.order(up.of_kind(NEW_LINK, 0))
    }

    /// Makes an interface a port that forwards everything.
    fn take_in(&self, socket: &mut Netlink, port: &Link) -> Result<(), FailError> {
        let failed = |source| {
            let what = format!("adding {} to the bridge {}", port.name, self.name);
            refused(&what, source)
        };
        let about = LinkRequest {
            index: port.index,
            ..LinkRequest::default()
        };
        let taken = about
            .of_kind(SET_LINK, 0)
            .put(IFLA_MASTER, &self.index.to_ne_bytes());
        socket.order(taken).map_err(failed)?;
        let passing = about.of_kind(NEW_LINK, 0).nest(IFLA_LINKINFO, |info| {
            info.put_text(INFO_PORT_KIND, "bridge")
                .nest(INFO_PORT_DATA, |port| {
                    port.put(PORT_LEARNING, &[0])
                        .put(PORT_UNICAST_FLOOD, &[1])
                        .put(PORT_MULTICAST_FLOOD, &[1])
                        .put(PORT_BROADCAST_FLOOD, &[1])
                        .put(PORT_GROUP_FORWARD_MASK, &ALL_GROUPS.to_ne_bytes())
                })
        });
        socket.order(passing).map_err(failed)
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether both ports are still in the bridge, so that it would forward.
    ///
    /// # Errors
    /// If the kernel does not answer.
    pub fn holds(&self, ports: [&Link; 2]) -> io::Result<bool> {
        let mut socket = Netlink::route()?;
        for port in ports {
            let link = Link::at(&mut socket, port.index)?;
            if link.is_none_or(|link| link.master != Some(self.index)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether this program created it, in this process or an earlier one.
    #[must_use]
    pub const fn is_own(&self) -> bool {
        self.is_own
    }

    /// Removes the bridge if this program created it; an operator's bridge stays. From then on, no
    /// frame passes.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn take_down(&self) -> Result<(), FailError> {
        if !self.is_own {
            return Ok(());
        }
        let mut socket = Netlink::route().map_err(|source| refused("opening a socket", source))?;
        self.delete(&mut socket)
    }

    fn delete(&self, socket: &mut Netlink) -> Result<(), FailError> {
        let about = LinkRequest {
            index: self.index,
            ..LinkRequest::default()
        };
        let failed = |source| refused(&format!("removing the bridge {}", self.name), source);
        socket.order(about.of_kind(DELETE_LINK, 0)).map_err(failed)
    }
}

/// Settings of the bridge as a whole, so that it holds nothing back. VLAN filtering is not among
/// them: it is off in a new bridge, and kernels without it refuse the setting.
fn settings(request: Request) -> Request {
    request.nest(IFLA_LINKINFO, |info| {
        info.put_text(INFO_KIND, "bridge")
            .nest(INFO_DATA, |bridge| {
                bridge
                    .put(BR_STP_STATE, &0_u32.to_ne_bytes())
                    .put(BR_AGEING_TIME, &0_u32.to_ne_bytes())
                    .put(BR_MULTICAST_SNOOPING, &[0])
            })
    })
}

fn refused(what: &str, source: io::Error) -> FailError {
    let mend = match source.raw_os_error() {
        Some(NOT_PERMITTED) => "; it needs root or CAP_NET_ADMIN",
        Some(NOT_SUPPORTED) => {
            "; this kernel has no bridge (CONFIG_BRIDGE): write fail = \"closed\" or \"frozen\""
        }
        _ => "",
    };
    FailError::Refused {
        what: what.to_owned(),
        source,
        mend,
    }
}

/// Settings of `br_netfilter` that let the host's firewalls see bridged frames. It also drops
/// malformed IP packets. They apply to the whole namespace, so they are reported but not changed.
const FIREWALLS: [&str; 3] = [
    "bridge-nf-call-arptables",
    "bridge-nf-call-ip6tables",
    "bridge-nf-call-iptables",
];

/// The settings that are on and let a firewall drop frames that a Linux bridge forwards. Each is
/// switched off by `sysctl net.bridge.NAME=0`.
#[must_use]
pub fn firewalls() -> Vec<&'static str> {
    let is_on = |name: &&str| {
        let value = std::fs::read_to_string(format!("/proc/sys/net/bridge/{name}"));
        value.is_ok_and(|value| value.trim() != "0")
    };
    FIREWALLS.into_iter().filter(is_on).collect()
}
