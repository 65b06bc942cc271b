// SPDX-License-Identifier: Apache-2.0
//! Frames for other stations, for whoever reads them elsewhere than from a ring.

use super::InterfaceError;
use super::interface::{find, packet_socket};
use super::socket::PacketSocket;

/// Keeps an interface promiscuous while it lives. No packet comes to its socket.
pub struct Promiscuous(#[expect(dead_code, reason = "it is held")] PacketSocket);

impl Promiscuous {
    /// Makes an interface take frames for other stations too.
    ///
    /// # Errors
    /// Where there is no such interface, or this is not allowed.
    pub fn hold(name: &str) -> Result<Self, InterfaceError> {
        let (_, index) = find(name)?;
        let socket = packet_socket(name)?;
        socket
            .make_promiscuous(index)
            .map_err(|source| InterfaceError::Io {
                name: name.to_owned(),
                what: "not promiscuous (try `source.promiscuous=false`)",
                source,
            })?;
        Ok(Self(socket))
    }
}
