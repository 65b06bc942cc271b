// SPDX-License-Identifier: Apache-2.0
//! A port belongs to one bridge at a time.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use super::{Port, PortError};

/// Reserves ports: no other bridge can take them while this value lives.
///
/// Each reservation is a socket with an abstract name. Such names belong to the network namespace,
/// as the ports do, and the kernel removes them when the process ends in any way.
#[derive(Debug)]
pub struct HeldPorts {
    _sockets: [UnixDatagram; 2],
}

impl HeldPorts {
    /// Reserves both ports.
    ///
    /// # Errors
    /// If another running bridge uses one of them.
    pub fn hold(ports: &[Port; 2]) -> Result<Self, PortError> {
        let [first, second] = ports;
        Ok(Self {
            _sockets: [hold(first)?, hold(second)?],
        })
    }
}

fn hold(port: &Port) -> Result<UnixDatagram, PortError> {
    let name = format!("turboflow-bridge-{}", port.link.index);
    let bound =
        SocketAddr::from_abstract_name(name).and_then(|name| UnixDatagram::bind_addr(&name));
    bound.map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => PortError::Bridged { name: port.name() },
        _ => PortError::Io {
            name: port.name(),
            source,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use turboflow_netlink::Link;

    #[test]
    fn a_port_has_one_bridge_at_a_time() {
        // Indices that no interface has.
        let port = |index| Port {
            link: Link {
                index,
                name: format!("port {index}"),
                ..Link::default()
            },
            ..Port::default()
        };
        let base = 0x7000_0000 + std::process::id() % 0x10_0000;
        let ports = [base, base + 1, base + 2].map(port);
        let [first, second, third] = ports;
        let held = HeldPorts::hold(&[first.clone(), second.clone()]).unwrap();
        for taken in [[third.clone(), first.clone()], [second, third]] {
            let said = HeldPorts::hold(&taken).unwrap_err().to_string();
            assert!(said.contains("stop it first"), "{said}");
        }
        drop(held);
        HeldPorts::hold(&[first, port(base + 2)]).unwrap();
    }
}
