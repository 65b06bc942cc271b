// SPDX-License-Identifier: Apache-2.0
//! Names of interfaces. The kernel has one of at most 15 bytes for each, and any number of
//! alternative names of up to 127 bytes (`ip link property add dev eth0 altname ...`), which only
//! rtnetlink understands.

use std::ffi::{CString, c_int};
use std::io;
use std::mem::size_of;

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};

use super::socket;

/// An alternative name in messages of rtnetlink (`if_link.h`).
const IFLA_ALT_IFNAME: u16 = 53;
/// Longest alternative name, with the null byte (`if.h`).
const ALTIFNAMSIZ: usize = 128;
/// Bytes of a message header, and of what follows it in messages about interfaces.
const HEADER_BYTES: usize = size_of::<libc::nlmsghdr>();
const INTERFACE_BYTES: usize = size_of::<libc::ifinfomsg>();
/// The index's place in it.
const INDEX_AT: usize = HEADER_BYTES + 4;
/// More than an answer about one interface has.
const ANSWER_BYTES: usize = 64 << 10;

/// The kernel's own name and the index of the interface that has this name or alternative name.
pub(super) fn find(name: &str) -> Option<(CString, c_int)> {
    if let Some(own) = socket::kernel_name(name) {
        let index = socket::index_of(&own)?;
        let own = socket::control_socket()
            .ok()
            .and_then(|socket| socket::name_of(&socket, index));
        return own.map(|own| (own, index));
    }
    if name.is_empty() || name.len() >= ALTIFNAMSIZ || name.contains('\0') {
        return None;
    }
    let index = ask(name).ok()?;
    let control = socket::control_socket().ok()?;
    Some((socket::name_of(&control, index)?, index))
}

/// The kernel's own name of the interface that has this name or alternative name.
#[must_use]
pub fn kernel_name(name: &str) -> Option<String> {
    let (own, _) = find(name)?;
    own.into_string().ok()
}

/// The index of the interface that has this name or alternative name.
#[must_use]
pub fn index(name: &str) -> Option<u32> {
    find(name).map(|(_, index)| index.cast_unsigned())
}

/// Asks rtnetlink for the index.
fn ask(name: &str) -> io::Result<c_int> {
    let netlink = socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        // NETLINK_ROUTE is protocol 0.
        None,
    )?;
    send(&netlink, &request(name), SendFlags::empty())?;
    let mut answer = vec![0; ANSWER_BYTES];
    let (_, length) = recv(&netlink, &mut answer[..], RecvFlags::empty())?;
    index_in(&answer[..length])
}

/// `nlmsghdr`, `ifinfomsg`, and the name as an attribute (`man 7 rtnetlink`).
fn request(name: &str) -> Vec<u8> {
    let attribute_bytes = 4 + name.len() + 1;
    let length = HEADER_BYTES + INTERFACE_BYTES + attribute_bytes.next_multiple_of(4);
    let mut bytes = Vec::with_capacity(length);
    bytes.extend_from_slice(&(length as u32).to_ne_bytes());
    bytes.extend_from_slice(&libc::RTM_GETLINK.to_ne_bytes());
    bytes.extend_from_slice(&(libc::NLM_F_REQUEST as u16).to_ne_bytes());
    // Sequence number, port, and an empty `ifinfomsg`.
    bytes.resize(HEADER_BYTES + INTERFACE_BYTES, 0);
    bytes.extend_from_slice(&(attribute_bytes as u16).to_ne_bytes());
    bytes.extend_from_slice(&IFLA_ALT_IFNAME.to_ne_bytes());
    bytes.extend_from_slice(name.as_bytes());
    bytes.resize(length, 0);
    bytes
}

fn index_in(answer: &[u8]) -> io::Result<c_int> {
    let kind = answer.get(4..6).and_then(|bytes| bytes.try_into().ok());
    let index = answer.get(INDEX_AT..INDEX_AT + 4);
    let index = index.and_then(|bytes| bytes.try_into().ok());
    match (
        kind.map(u16::from_ne_bytes),
        index.map(c_int::from_ne_bytes),
    ) {
        (Some(libc::RTM_NEWLINK), Some(index)) => Ok(index),
        _ => Err(io::ErrorKind::NotFound.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_has_its_own_name() {
        assert_eq!(kernel_name("lo").as_deref(), Some("lo"));
        for absent in [
            "",
            "no-such-interface",
            &"x".repeat(100),
            &"x".repeat(500),
            "l\0o",
        ] {
            assert_eq!(kernel_name(absent), None, "{absent:?}");
        }
    }

    #[test]
    fn a_request_is_padded_and_says_its_length() {
        let bytes = request("a-name-of-19-bytes.");
        assert_eq!(bytes.len(), 16 + 16 + 24);
        assert_eq!(bytes[..4], 56_u32.to_ne_bytes());
        assert_eq!(bytes[32..34], 24_u16.to_ne_bytes());
        assert_eq!(&bytes[36..], b"a-name-of-19-bytes.\0");
    }
}
