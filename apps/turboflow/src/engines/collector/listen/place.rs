// SPDX-License-Identifier: Apache-2.0
//! Addresses to listen at: `udp://[HOST]:PORT`, `tcp://[HOST]:PORT`, `tls://[HOST]:PORT`.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs, UdpSocket};

use anyhow::{Context, bail};
use turboflow_transport::{Carrier, Target};

/// A transport and an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) carrier: Carrier,
    pub(super) address: SocketAddr,
}

impl Place {
    pub(super) fn parse(text: &str) -> anyhow::Result<Self> {
        let (scheme, address) = text.split_once("://").unwrap_or(("", text));
        let carrier = match scheme {
            "udp" => Carrier::Udp,
            "tcp" => Carrier::Tcp,
            "tls" => Carrier::Tls,
            _ => bail!(
                "{text}: exporters send to udp://[HOST]:PORT, tcp://[HOST]:PORT or \
                 tls://[HOST]:PORT"
            ),
        };
        // A dual-stack socket receives IPv4 as well.
        let address = match address.strip_prefix(':') {
            Some(port) => format!("[::]:{port}"),
            None => address.to_owned(),
        };
        let found = address.to_socket_addrs();
        let mut found = found.with_context(|| format!("{text}: there is no such address"))?;
        let Some(address) = found.next() else {
            bail!("{text}: there is no such address");
        };
        Ok(Self { carrier, address })
    }

    /// Whether what is sent to a target arrives here. A host without an address is reported later.
    pub(super) fn receives(&self, target: &Target) -> bool {
        if self.carrier != target.carrier || self.address.port() != target.port {
            return false;
        }
        let found = (target.host.as_str(), target.port).to_socket_addrs();
        found.is_ok_and(|mut found| found.any(|address| self.is_at(address.ip().to_canonical())))
    }

    fn is_at(&self, ip: IpAddr) -> bool {
        let here = self.address.ip().to_canonical();
        match here.is_unspecified() {
            true => (here.is_ipv6() || ip.is_ipv4()) && (ip.is_unspecified() || is_own(ip)),
            // Datagrams to the unspecified address go to this machine.
            false => here == ip || ip.is_unspecified() && here.is_loopback(),
        }
    }
}

/// Whether an address belongs to this machine: the system then chooses it as the source of what is
/// sent there.
fn is_own(ip: IpAddr) -> bool {
    let any: IpAddr = match ip.is_ipv4() {
        true => [0; 4].into(),
        false => [0; 16].into(),
    };
    let socket = UdpSocket::bind((any, 0));
    let asked = socket.and_then(|socket| socket.connect((ip, 9)).and(socket.local_addr()));
    ip.is_loopback() || asked.is_ok_and(|source| source.ip() == ip)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_to_this_machine_arrives_at_all_its_addresses() {
        for (listen, to, is_here) in [
            ("udp://127.0.0.1:4739", "ipfix+udp://127.0.0.1:4739", true),
            ("udp://127.0.0.1:4739", "ipfix+udp://127.0.0.1:4740", false),
            ("udp://127.0.0.1:4739", "ipfix+tcp://127.0.0.1:4739", false),
            ("udp://127.0.0.1:4739", "ipfix+udp://127.0.0.2:4739", false),
            ("udp://:2055", "netflow9+udp://localhost:2055", true),
            ("udp://:2055", "netflow5+udp://127.0.0.1", true),
            ("udp://:2055", "netflow5+udp://127.3.2.1", true),
            ("tcp://0.0.0.0:4739", "ipfix+tcp://127.0.0.1", true),
            ("tls://:4740", "microflows+tls://0.0.0.0:4740", true),
            ("udp://:2055", "netflow9+udp://192.0.2.1:2055", false),
        ] {
            let place = Place::parse(listen).unwrap();
            assert_eq!(place.receives(&to.parse().unwrap()), is_here, "{to}");
        }
    }
}
