// SPDX-License-Identifier: Apache-2.0
//! Asks the driver of an interface which metadata it provides to programs: generic netlink, family
//! `netdev` (Linux, Documentation/netlink/specs/netdev.yaml).

use std::io;

use rustix::io::Errno;
use turboflow_merge::Layout;
use turboflow_netlink::{Family, Netlink};
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
    let mut socket = Netlink::generic().ok()?;
    let family = Family::find(&mut socket, "netdev").ok()?;
    let asked = family.request(DEV_GET).put(IFINDEX, &index.to_ne_bytes());
    let device = socket.ask(asked).ok()?;
    let features = Family::attributes(&device).get(RX_METADATA_FEATURES)?;
    features.first_chunk().copied().map(u64::from_ne_bytes)
}

/// Whether the interface's driver may put a frame's headers and its data into separate buffers
/// (`ethtool -g`, TCP data split). True if that is not known.
pub(crate) fn splits_headers(name: &str, index: u32) -> bool {
    const ENABLED: u8 = 2;
    match data_split(index) {
        Ok(split) => split == Some(ENABLED),
        // The driver has no rings, as with a veth pair; or it is a bond, whose lower devices have
        // them.
        Err(error) => {
            let has_no_rings = error.raw_os_error() == Some(Errno::OPNOTSUPP.raw_os_error());
            !has_no_rings || has_lower_devices(name)
        }
    }
}

/// `ETHTOOL_A_RINGS_TCP_DATA_SPLIT` of an interface.
fn data_split(index: u32) -> io::Result<Option<u8>> {
    // From include/uapi/linux/ethtool_netlink.h.
    const RINGS_GET: u8 = 15;
    const RINGS_HEADER: u16 = 1;
    const HEADER_INDEX: u16 = 1;
    const TCP_DATA_SPLIT: u16 = 11;
    let mut socket = Netlink::generic()?;
    let asked = Family::find(&mut socket, "ethtool")?
        .request(RINGS_GET)
        .nest(RINGS_HEADER, |header| {
            header.put(HEADER_INDEX, &index.to_ne_bytes())
        });
    let rings = socket.ask(asked)?;
    let split = Family::attributes(&rings).get(TCP_DATA_SPLIT);
    Ok(split.and_then(|value| value.first().copied()))
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
