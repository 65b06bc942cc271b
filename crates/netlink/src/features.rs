// SPDX-License-Identifier: Apache-2.0
//! Features of an interface, as `ethtool -k` shows them (Linux,
//! Documentation/networking/ethtool-netlink.rst).

use std::collections::BTreeSet;
use std::io;

use crate::generic::Family;
use crate::message::{Attributes, text_of};
use crate::socket::Netlink;

// From include/uapi/linux/ethtool_netlink.h.
const FEATURES_GET: u8 = 11;
const HEADER: u16 = 1;
const HEADER_INDEX: u16 = 1;
const ACTIVE: u16 = 4;
const BITSET_BITS: u16 = 3;
const BIT: u16 = 1;
const BIT_NAME: u16 = 2;

/// The features of an interface that are on, under the kernel's names: `rx-lro`, `rx-gro-hw`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Features(BTreeSet<String>);

impl Features {
    /// The features of the interface with that index (Linux 5.6 or later).
    ///
    /// # Errors
    /// If there is no such interface, or the kernel does not answer.
    pub fn of(socket: &mut Netlink, index: u32) -> io::Result<Self> {
        let family = Family::find(socket, "ethtool")?;
        let about = |header: crate::Request| header.put(HEADER_INDEX, &index.to_ne_bytes());
        let answer = socket.ask(family.request(FEATURES_GET).nest(HEADER, about))?;
        Ok(Self::read(Family::attributes(&answer)))
    }

    /// Reads a bit set. Without a mask, it contains only the bits that are set.
    fn read(attributes: Attributes<'_>) -> Self {
        let bits = attributes.nested(ACTIVE).nested(BITSET_BITS);
        let bits = bits.filter(|(kind, _)| *kind == BIT);
        let name = |(_, bit)| Attributes::new(bit).get(BIT_NAME).map(text_of);
        Self(bits.filter_map(name).collect())
    }

    /// Whether the feature is on.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.contains(name)
    }
}

impl<'a> FromIterator<&'a str> for Features {
    fn from_iter<I: IntoIterator<Item = &'a str>>(names: I) -> Self {
        Self(names.into_iter().map(str::to_owned).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::Link;

    #[test]
    fn the_loopback_interface_has_features() {
        let mut route = Netlink::route().unwrap();
        let lo = Link::named(&mut route, "lo").unwrap().unwrap();
        let features = Features::of(&mut Netlink::generic().unwrap(), lo.index).unwrap();
        // The loopback interface does not allow turning these off.
        assert!(
            features.has("highdma") && features.has("vlan-challenged"),
            "{features:?}"
        );
        assert!(!features.has("rx-lro"), "{features:?}");
        let absent = Features::of(&mut Netlink::generic().unwrap(), u32::MAX >> 1);
        assert!(absent.is_err());
    }
}
