// SPDX-License-Identifier: Apache-2.0
//! Families of generic netlink, whose numbers the kernel assigns at run time.

use std::io;

use crate::message::{Attributes, Request};
use crate::socket::Netlink;

/// Bytes of `genlmsghdr`, before the attributes of an answer.
pub const GENERIC_HEADER_BYTES: usize = 4;

// From include/uapi/linux/genetlink.h.
const CONTROL: Family = Family(0x10);
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;

/// A family, by the number that the running kernel has assigned to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family(u16);

impl Family {
    /// Looks up the family with that name.
    ///
    /// # Errors
    /// If the running kernel does not have it.
    pub fn find(socket: &mut Netlink, name: &str) -> io::Result<Self> {
        let answer = socket.ask(CONTROL.request(GET_FAMILY).put_text(FAMILY_NAME, name))?;
        let attributes = Self::attributes(&answer);
        let number = attributes.get(FAMILY_ID).and_then(<[u8]>::first_chunk);
        let number = number.ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self(u16::from_ne_bytes(*number)))
    }

    /// A request with one of the family's commands.
    #[must_use]
    pub fn request(self, command: u8) -> Request {
        const VERSION: u8 = 1;
        Request::new(self.0, 0, &[command, VERSION, 0, 0])
    }

    /// The attributes of an answer.
    #[must_use]
    pub fn attributes(answer: &[u8]) -> Attributes<'_> {
        Attributes::new(answer.get(GENERIC_HEADER_BYTES..).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_have_numbers() {
        let mut socket = Netlink::generic().unwrap();
        assert_eq!(Family::find(&mut socket, "nlctrl").unwrap(), CONTROL);
        let absent = Family::find(&mut socket, "no-such-family").unwrap_err();
        assert_eq!(absent.kind(), io::ErrorKind::NotFound);
        // The socket still works after an error.
        assert_eq!(Family::find(&mut socket, "nlctrl").unwrap(), CONTROL);
    }
}
