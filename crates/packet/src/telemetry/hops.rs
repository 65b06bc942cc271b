// SPDX-License-Identifier: Apache-2.0
//! Combines what several hops wrote.

/// What one hop wrote. `None` means that the value was not requested, or that the hop did not know
/// it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Hop {
    pub(super) node: Option<u64>,
    pub(super) egress_interface: Option<u64>,
    pub(super) latency_ns: Option<u64>,
    pub(super) queue_depth: Option<u64>,
}

/// The hops of a packet, added from the first to the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Hops {
    /// Hops whose words were read.
    pub(super) count: u64,
    /// The largest queue depth that any hop reported.
    pub(super) queue_depth: Option<u64>,
    /// Whether the packet says that further hops did not write to it.
    pub(super) is_incomplete: bool,
    /// Whether earlier hops wrote something that could not be read.
    pub(super) has_unread: bool,
    latency_ns: u64,
    hops_without_latency: u64,
    egress_interface: Option<u64>,
    path: Path,
    hops_without_node: u64,
}

impl Hops {
    /// No hops yet. `is_incomplete` tells whether the packet says that hops are missing.
    pub(super) fn begun(is_incomplete: bool) -> Self {
        Self {
            is_incomplete,
            ..Self::default()
        }
    }

    /// Adds the next hop on the path.
    pub(super) fn add(&mut self, hop: &Hop) {
        self.count += 1;
        self.queue_depth = self.queue_depth.max(hop.queue_depth);
        self.latency_ns = self.latency_ns.saturating_add(hop.latency_ns.unwrap_or(0));
        self.hops_without_latency += u64::from(hop.latency_ns.is_none());
        self.egress_interface = hop.egress_interface;
        self.path.add(hop.node.unwrap_or(0));
        self.hops_without_node += u64::from(hop.node.is_none());
    }

    /// The sum over all hops. `None` if a hop is missing, because the sum would be wrong.
    pub(super) fn latency_ns(&self) -> Option<u64> {
        let is_whole = self.hops_without_latency == 0 && !self.is_incomplete && !self.has_unread;
        is_whole.then_some(self.latency_ns)
    }

    /// Egress interface of the last hop. `None` if hops are missing.
    pub(super) fn egress_interface(&self) -> Option<u64> {
        self.egress_interface.filter(|_| !self.is_incomplete)
    }

    /// The nodes that wrote, as a number ([`Path`]). `None` if any of them is unknown.
    pub(super) fn path(&self) -> Option<u64> {
        let is_whole = self.hops_without_node == 0 && !self.has_unread;
        is_whole.then(|| self.path.value())
    }

    /// How many hops wrote. `None` if some of them could not be read.
    pub(super) fn hop_count(&self) -> Option<u64> {
        (!self.has_unread).then_some(self.count)
    }
}

/// A sequence of nodes as a number.
///
/// Up to six nodes with identifiers from 1 to 999 become groups of three decimal digits, the first
/// node first, so that people can read the column: 1, 12, 3 is 1,012,003. Any other sequence
/// becomes a hash with the top bit set, which thus differs from every readable number. The hash has
/// no key, so a path has the same number at all vantage points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Path {
    nodes: u32,
    digits: u64,
    is_hashed: bool,
    hash: u64,
}

const NODES_IN_DIGITS: u32 = 6;
const HASHED: u64 = 1 << 63;

impl Path {
    fn add(&mut self, node: u64) {
        self.nodes += 1;
        self.hash = mixed(self.hash ^ node).wrapping_add(u64::from(self.nodes));
        self.is_hashed |= !(1..=999).contains(&node) || self.nodes > NODES_IN_DIGITS;
        self.digits = self.digits.wrapping_mul(1_000).wrapping_add(node);
    }

    const fn value(self) -> u64 {
        match self.is_hashed {
            true => mixed(self.hash) | HASHED,
            false => self.digits,
        }
    }
}

/// The finalizer of SplitMix64: every bit of the result depends on every bit of the number.
const fn mixed(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn path(nodes: &[u64]) -> u64 {
        let mut path = Path::default();
        nodes.iter().for_each(|&node| path.add(node));
        path.value()
    }

    #[test]
    fn short_paths_of_small_numbers_can_be_read() {
        assert_eq!(path(&[7]), 7);
        assert_eq!(path(&[1, 12, 3]), 1_012_003);
        assert_eq!(path(&[999; 6]), 999_999_999_999_999_999);
        for hashed in [&[0][..], &[1_000], &[1; 7], &[u64::MAX], &[1, 0], &[0, 0]] {
            assert!(path(hashed) >= HASHED, "{hashed:?}");
        }
    }

    #[test]
    fn other_paths_differ_by_nodes_order_and_length() {
        let nodes = [0, 1, 2, 1_000, 1 << 40];
        let mut paths = HashSet::new();
        for a in nodes {
            for b in nodes {
                for c in nodes {
                    for length in 0..=8 {
                        let long: Vec<u64> = [a, b, c].into_iter().cycle().take(length).collect();
                        paths.insert((long.clone(), path(&long)));
                    }
                }
            }
        }
        let numbers: HashSet<u64> = paths.iter().map(|(_, number)| *number).collect();
        assert_eq!(numbers.len(), paths.len());
    }

    #[test]
    fn what_a_hop_could_not_tell_is_in_no_sum() {
        let hop = |node, latency_ns, queue_depth| Hop {
            node,
            latency_ns,
            queue_depth,
            egress_interface: node,
        };
        let mut hops = Hops::default();
        hops.add(&hop(Some(1), Some(5), None));
        hops.add(&hop(Some(2), Some(6), Some(9)));
        assert_eq!(hops.latency_ns(), Some(11));
        assert_eq!(hops.queue_depth, Some(9));
        assert_eq!(
            (hops.path(), hops.egress_interface()),
            (Some(1_002), Some(2))
        );
        hops.add(&hop(None, None, Some(3)));
        assert_eq!((hops.count, hops.queue_depth), (3, Some(9)));
        let unknown = [hops.latency_ns(), hops.path(), hops.egress_interface()];
        assert_eq!(unknown, [None; 3]);
    }
}
