// SPDX-License-Identifier: Apache-2.0
//! Promiscuous mode for engines that receive frames without a ring.

use super::InterfaceError;
use super::interface::{find, packet_socket};
use super::socket::PacketSocket;

/// Keeps an interface promiscuous until it is dropped. Its socket receives no packets.
pub struct Promiscuous(#[expect(dead_code, reason = "it is held")] PacketSocket);

impl Promiscuous {
    /// Makes an interface promiscuous.
    ///
    /// # Errors
    /// If there is no such interface, or permission is denied.
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
