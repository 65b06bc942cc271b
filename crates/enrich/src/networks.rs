// SPDX-License-Identifier: Apache-2.0
//! Finds networks by their longest prefix.

use std::collections::HashMap;
use std::net::IpAddr;

use turboflow_record::{Network, masked};

/// The site and the owner of a network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) site: Option<String>,
    pub(crate) owner: Option<String>,
}

/// The sites and owners of networks. A look-up masks the address once for each distinct prefix
/// length.
#[derive(Default)]
pub(crate) struct Networks {
    /// Family and length of all prefixes, the longest first.
    lengths: Vec<(bool, u8)>,
    places: HashMap<(IpAddr, u8), Place>,
}

impl Networks {
    /// Adds a network; false if it has already been added.
    pub(crate) fn add(&mut self, network: Network, length: u8, place: Place) -> bool {
        let first = network.first();
        let kind = (first.is_ipv4(), length);
        if !self.lengths.contains(&kind) {
            self.lengths.push(kind);
            self.lengths
                .sort_unstable_by_key(|(_, length)| std::cmp::Reverse(*length));
        }
        self.places.insert((first, length), place).is_none()
    }

    /// The site and owner of the smallest network that contains the address.
    pub(crate) fn find(&self, address: IpAddr) -> Option<&Place> {
        let own = self
            .lengths
            .iter()
            .filter(|(is_v4, _)| *is_v4 == address.is_ipv4());
        own.map(|(_, length)| (masked(address, *length), *length))
            .find_map(|key| self.places.get(&key))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The addresses differ in few bits, so that several networks contain the same address.
        #[test]
        fn the_longest_prefix_is_found(
            networks in prop::collection::vec((0_u32..32, 24_u8..=32), 0..12),
            addresses in prop::collection::vec(0_u32..32, 1..12),
        ) {
            let address = |bits: u32| IpAddr::from((0x0a00_0000 | bits << 3).to_be_bytes());
            let mut table = Networks::default();
            let mut all = Vec::new();
            for (bits, length) in networks {
                let network = Network::parse(&format!("{}/{length}", address(bits))).unwrap();
                let place = Place { site: Some(format!("{network}")), owner: None };
                if table.add(network, length, place.clone()) {
                    all.push((network, length, place));
                }
            }
            for bits in addresses {
                let found = table.find(address(bits)).cloned();
                let holds = all.iter().filter(|(network, ..)| network.contains(address(bits)));
                let expected = holds.max_by_key(|(_, length, _)| *length).map(|(.., place)| place);
                prop_assert_eq!(found.as_ref(), expected);
            }
        }
    }
}
