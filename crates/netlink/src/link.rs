// SPDX-License-Identifier: Apache-2.0
//! What the kernel reports about an interface (`man 7 rtnetlink`), and the form of requests about
//! it.

use std::io;

use crate::message::{Attributes, Request, text_of, u32_of};
use crate::socket::Netlink;

// From include/uapi/linux/rtnetlink.h and if_link.h.
const GET_LINK: u16 = 18;
const NAME: u16 = 3;
const MTU: u16 = 4;
const LOWER: u16 = 5;
const MASTER: u16 = 10;
const LINK_INFO: u16 = 18;
const INFO_KIND: u16 = 1;
const ALIAS: u16 = 20;
const LOWER_NAMESPACE: u16 = 37;
const ALTERNATIVE_NAME: u16 = 53;
/// Maximum bytes of an interface name; alternative names may be longer.
const NAME_BYTES: usize = 15;
const LONGEST_NAME_BYTES: usize = 127;
/// Bytes of `ifinfomsg`.
const INTERFACE_BYTES: usize = 16;
const UP: u32 = 1;
/// `ENODEV`: there is no such interface.
const ABSENT: i32 = 19;

/// An interface, as the kernel describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// The kernel's index of the interface.
    pub index: u32,
    /// The kernel's own name.
    pub name: String,
    /// The kind of virtual interface, such as `veth`, `bond` or `bridge`; empty for hardware.
    pub kind: String,
    /// The type of its frames (`ARPHRD_...`): 1 is Ethernet.
    pub hardware_type: u16,
    /// The MTU: the longest packet, in bytes.
    pub mtu_bytes: u32,
    /// Whether it is administratively up.
    pub is_up: bool,
    /// The index of the interface of which this one is a port: a bridge or a bond.
    pub master: Option<u32>,
    /// The index of the underlying interface, or of the other end of a veth pair, if it is in this
    /// namespace.
    pub lower: Option<u32>,
    /// The alias that the administrator gave to it.
    pub alias: Option<String>,
}

/// The header of a request about one interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkRequest {
    /// Index of the interface; 0 if attributes name it, or if it does not exist yet.
    pub index: u32,
    /// Values of the interface flags selected by `changed_flags`.
    pub flags: u32,
    /// Which interface flags to change.
    pub changed_flags: u32,
    /// The address family: 0, or the one to which the attributes belong.
    pub address_family: u8,
}

impl LinkRequest {
    /// A request of a type (`RTM_...`), with flags of the message.
    #[must_use]
    pub fn of_kind(self, kind: u16, message_flags: u16) -> Request {
        let mut header = [0; INTERFACE_BYTES];
        header[0] = self.address_family;
        header[4..8].copy_from_slice(&self.index.to_ne_bytes());
        header[8..12].copy_from_slice(&self.flags.to_ne_bytes());
        header[12..].copy_from_slice(&self.changed_flags.to_ne_bytes());
        Request::new(kind, message_flags, &header)
    }
}

impl Link {
    /// The interface with that name or alternative name; `None` if there is none.
    ///
    /// # Errors
    /// If the kernel does not answer.
    pub fn named(socket: &mut Netlink, name: &str) -> io::Result<Option<Self>> {
        if name.is_empty() || name.len() > LONGEST_NAME_BYTES || name.contains('\0') {
            return Ok(None);
        }
        let kind = match name.len() <= NAME_BYTES {
            true => NAME,
            false => ALTERNATIVE_NAME,
        };
        let request = LinkRequest::default().of_kind(GET_LINK, 0);
        Self::asked(socket, request.put_text(kind, name))
    }

    /// The interface with that index; `None` if there is none.
    ///
    /// # Errors
    /// If the kernel does not answer.
    pub fn at(socket: &mut Netlink, index: u32) -> io::Result<Option<Self>> {
        let about = LinkRequest {
            index,
            ..LinkRequest::default()
        };
        Self::asked(socket, about.of_kind(GET_LINK, 0))
    }

    /// All interfaces of the namespace.
    ///
    /// # Errors
    /// If the kernel does not answer.
    pub fn all(socket: &mut Netlink) -> io::Result<Vec<Self>> {
        let mut links = Vec::new();
        let request = LinkRequest::default().of_kind(GET_LINK, 0);
        socket.ask_all(request, |part| links.extend(Self::read(part)))?;
        Ok(links)
    }

    fn asked(socket: &mut Netlink, request: Request) -> io::Result<Option<Self>> {
        match socket.ask(request) {
            Ok(answer) => Ok(Self::read(&answer)),
            Err(error) if error.raw_os_error() == Some(ABSENT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn read(answer: &[u8]) -> Option<Self> {
        let header = answer.first_chunk::<INTERFACE_BYTES>()?;
        let attributes = Attributes::new(&answer[INTERFACE_BYTES..]);
        let number = |kind| attributes.get(kind).and_then(u32_of);
        let text = |kind| attributes.get(kind).map(text_of);
        let is_elsewhere = attributes.get(LOWER_NAMESPACE).is_some();
        Some(Self {
            index: u32_of(&header[4..])?,
            name: text(NAME)?,
            kind: attributes
                .nested(LINK_INFO)
                .get(INFO_KIND)
                .map(text_of)
                .unwrap_or_default(),
            hardware_type: u16::from_ne_bytes([header[2], header[3]]),
            mtu_bytes: number(MTU)?,
            is_up: u32_of(&header[8..])? & UP != 0,
            master: number(MASTER),
            // Indices of interfaces are only valid in their own namespace.
            lower: number(LOWER).filter(|_| !is_elsewhere),
            alias: text(ALIAS),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_is_described() {
        let mut socket = Netlink::route().unwrap();
        let lo = Link::named(&mut socket, "lo").unwrap().unwrap();
        assert_eq!((lo.name.as_str(), lo.hardware_type), ("lo", 772));
        assert_eq!((lo.master, lo.lower), (None, None));
        assert!(lo.mtu_bytes > 1500, "{lo:?}");
        assert_eq!(Link::at(&mut socket, lo.index).unwrap(), Some(lo.clone()));
        assert!(Link::all(&mut socket).unwrap().contains(&lo));
    }

    #[test]
    fn there_are_no_other_interfaces() {
        let mut socket = Netlink::route().unwrap();
        let long = "x".repeat(100);
        let longest = "x".repeat(500);
        for absent in ["", "no-such-port", &long, &longest, "l\0o"] {
            assert_eq!(
                Link::named(&mut socket, absent).unwrap(),
                None,
                "{absent:?}"
            );
        }
        assert_eq!(Link::at(&mut socket, u32::MAX >> 1).unwrap(), None);
    }
}
