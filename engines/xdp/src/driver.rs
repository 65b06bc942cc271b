// SPDX-License-Identifier: Apache-2.0
//! Asks the driver of an interface which metadata it provides to programs: generic netlink, family
//! `netdev` (Linux, Documentation/netlink/specs/netdev.yaml).

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::netlink::{GENERIC, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, recv, sendto, socket};
use turboflow_merge::Layout;
use turboflow_record::Input;

use crate::KernelError;
use crate::interface::interface_index;

/// Metadata of frames that only a driver has: as needed by a definition, or as provided by a
/// driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriverKnows {
    /// The time at which the card received the frame.
    pub timestamps: bool,
    /// A VLAN tag that was removed from the frame. Most drivers leave it in place.
    pub tags: bool,
}

const OF_TAGS: [Input; 3] = [Input::Vlan, Input::InnerVlan, Input::VlanPriority];

impl DriverKnows {
    /// The metadata that records of a layout contain.
    #[must_use]
    pub fn asked_by(layout: &Layout) -> Self {
        let inputs = layout.needs();
        Self {
            timestamps: inputs.contains(Input::HardwareTimestamp),
            tags: OF_TAGS.iter().any(|input| inputs.contains(*input)),
        }
    }

    /// The metadata that an interface's driver provides. None where the kernel (before Linux 6.7)
    /// or the rights of this process do not allow the query.
    ///
    /// # Errors
    /// Where there is no such interface.
    pub fn told_by(interface: &str) -> Result<Self, KernelError> {
        const TIMESTAMP: u64 = 1;
        const VLAN_TAG: u64 = 4;
        let features = metadata_features(interface_index(interface)?).unwrap_or(0);
        Ok(Self {
            timestamps: features & TIMESTAMP != 0,
            tags: features & VLAN_TAG != 0,
        })
    }
}

/// `NETDEV_A_DEV_XDP_RX_METADATA_FEATURES` of an interface.
fn metadata_features(index: u32) -> Option<u64> {
    // From include/uapi/linux/netdev.h.
    const DEV_GET: u8 = 1;
    const IFINDEX: u16 = 1;
    const RX_METADATA_FEATURES: u16 = 5;
    let (socket, family) = family("netdev")?;
    let device = ask(&socket, family, DEV_GET, IFINDEX, &index.to_ne_bytes())?;
    let features = attribute(&device, RX_METADATA_FEATURES)?.first_chunk::<8>()?;
    Some(u64::from_ne_bytes(*features))
}

/// Whether the interface's driver may put a frame's headers and its data into separate buffers
/// (`ethtool -g`, TCP data split). True if that is not known.
pub(crate) fn splits_headers(name: &str, index: u32) -> bool {
    // From include/uapi/linux/ethtool_netlink.h.
    const RINGS_GET: u8 = 15;
    const RINGS_HEADER: u16 = 1 | NESTED;
    const TCP_DATA_SPLIT: u16 = 11;
    const ENABLED: u8 = 2;
    const NESTED: u16 = 1 << 15;
    // An attribute with the interface index.
    let [a, b, c, d] = index.to_ne_bytes();
    let [length_low, length_high] = 8u16.to_ne_bytes();
    let [kind_low, kind_high] = 1u16.to_ne_bytes();
    let header = [length_low, length_high, kind_low, kind_high, a, b, c, d];
    let asked = family("ethtool")
        .and_then(|(socket, family)| answer_to(&socket, family, RINGS_GET, RINGS_HEADER, &header));
    match asked {
        Some(Ok(rings)) => attribute(&rings, TCP_DATA_SPLIT) == Some(&[ENABLED]),
        // The driver has no rings, as with a veth pair; or it is a bond, whose lower devices have
        // them.
        Some(Err(errno)) => errno != Errno::OPNOTSUPP.raw_os_error() || has_lower_devices(name),
        None => true,
    }
}

/// Whether an interface is stacked on others. True if that is not known.
fn has_lower_devices(name: &str) -> bool {
    let is_lower = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.map_or(true, |entry| {
            entry.file_name().to_string_lossy().starts_with("lower_")
        })
    };
    std::fs::read_dir(format!("/sys/class/net/{name}"))
        .map_or(true, |mut entries| entries.any(is_lower))
}

/// Bytes of the netlink and generic netlink headers, before the attributes.
const HEADER_BYTES: usize = 20;

/// A socket, and the id of a generic netlink family.
fn family(name: &str) -> Option<(OwnedFd, u16)> {
    // From include/uapi/linux/genetlink.h.
    const CONTROL: u16 = 0x10;
    const GET_FAMILY: u8 = 3;
    const FAMILY_ID: u16 = 1;
    const FAMILY_NAME: u16 = 2;
    let socket = socket(AddressFamily::NETLINK, SocketType::RAW, Some(GENERIC)).ok()?;
    let name = format!("{name}\0");
    let told = ask(&socket, CONTROL, GET_FAMILY, FAMILY_NAME, name.as_bytes())?;
    let number = attribute(&told, FAMILY_ID)?.first_chunk::<2>()?;
    Some((socket, u16::from_ne_bytes(*number)))
}

/// The whole answer to a request with one attribute; `None` if it is an error.
fn ask(socket: &OwnedFd, family: u16, command: u8, kind: u16, value: &[u8]) -> Option<Vec<u8>> {
    answer_to(socket, family, command, kind, value)?.ok()
}

/// The whole answer to a request, or the error number.
fn answer_to(
    socket: &OwnedFd,
    family: u16,
    command: u8,
    kind: u16,
    value: &[u8],
) -> Option<Result<Vec<u8>, i32>> {
    const REQUEST: u16 = 1;
    const ERROR: u16 = 2;
    let value_bytes = value.len().next_multiple_of(4);
    let mut question = Vec::with_capacity(HEADER_BYTES + 4 + value_bytes);
    let length = HEADER_BYTES + 4 + value_bytes;
    question.extend((length as u32).to_ne_bytes());
    question.extend(family.to_ne_bytes());
    question.extend(REQUEST.to_ne_bytes());
    // No sequence number and no port: there is one request at a time, and the kernel knows the
    // socket.
    question.extend([0; 8]);
    question.extend([command, 1, 0, 0]);
    question.extend((4 + value.len() as u16).to_ne_bytes());
    question.extend(kind.to_ne_bytes());
    question.extend(value);
    question.resize(length, 0);
    let kernel = SocketAddrNetlink::new(0, 0);
    sendto(socket, &question, SendFlags::empty(), &kernel).ok()?;
    let mut answer = vec![0; 16 << 10];
    let (length, _) = recv(socket, &mut answer[..], RecvFlags::empty()).ok()?;
    answer.truncate(length);
    let kind = u16::from_ne_bytes(*answer.get(4..)?.first_chunk::<2>()?);
    if kind == ERROR {
        let number = i32::from_ne_bytes(*answer.get(16..)?.first_chunk::<4>()?);
        return Some(Err(-number));
    }
    (kind == family).then_some(Ok(answer))
}

/// The value of an attribute in a message.
fn attribute(message: &[u8], wanted: u16) -> Option<&[u8]> {
    let mut rest = message.get(HEADER_BYTES..)?;
    loop {
        let header = rest.first_chunk::<4>()?;
        let length = usize::from(u16::from_ne_bytes([header[0], header[1]]));
        let kind = u16::from_ne_bytes([header[2], header[3]]);
        let value = rest.get(4..length)?;
        if kind == wanted {
            return Some(value);
        }
        rest = rest.get(length.next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_found_and_broken_messages_end() {
        let mut message = vec![9; HEADER_BYTES];
        message.extend([6, 0, 7, 0, 1, 2, 0, 0]);
        message.extend([12, 0, 5, 0, 4, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(attribute(&message, 7), Some(&[1, 2][..]));
        assert_eq!(attribute(&message, 5), Some(&[4, 0, 0, 0, 0, 0, 0, 0][..]));
        assert_eq!(attribute(&message, 1), None);
        for end in 0..message.len() {
            assert_eq!(attribute(&message[..end], 5), None);
        }
        // An attribute is never shorter than its header.
        for length in 0..4 {
            message[HEADER_BYTES] = length;
            assert_eq!(attribute(&message, 5), None);
        }
    }
}
