// SPDX-License-Identifier: Apache-2.0
//! Addresses to listen at: `udp://[HOST]:PORT`, `tcp://[HOST]:PORT`, `tls://[HOST]:PORT`.

use std::net::{SocketAddr, ToSocketAddrs};

use anyhow::{Context, bail};

/// The transport of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Carrier {
    Udp,
    Tcp,
    Tls,
}

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
}
