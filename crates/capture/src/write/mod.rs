// SPDX-License-Identifier: Apache-2.0
//! Writers of capture files, for traffic generators and tests.

mod pcap;
mod pcapng;

pub use pcap::PcapWriter;
pub use pcapng::{InterfaceOptions, PcapngWriter};

use turboflow_packet::LinkType;

/// The number of a link type in files; the first one if there are several.
#[must_use]
pub const fn link_type_number(link_type: LinkType) -> u16 {
    match link_type {
        LinkType::Null => 0,
        LinkType::Ethernet => 1,
        LinkType::Ppp => 9,
        LinkType::Raw => 101,
        LinkType::LinuxCooked => 113,
        LinkType::RawIpv4 => 228,
        LinkType::RawIpv6 => 229,
        LinkType::LinuxCooked2 => 276,
    }
}

/// A captured length as stored in files.
fn captured_length(bytes: &[u8]) -> std::io::Result<u32> {
    u32::try_from(bytes.len()).map_err(|_| {
        std::io::Error::new(
            std::io::ErrorKind::InvalidInput,
            "a packet of 4 GiB or more",
        )
    })
}
