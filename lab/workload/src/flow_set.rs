// SPDX-License-Identifier: Apache-2.0
//! A bitmap of the flows that have had a packet.

/// A set of consecutively numbered flows.
#[derive(Clone, Debug, Default)]
pub(crate) struct FlowSet {
    words: Vec<u64>,
    count: u64,
}

impl FlowSet {
    /// An empty set with room for the flows below `flows`. Memory is allocated as flows are
    /// inserted.
    pub(crate) fn below(flows: u64) -> Self {
        let words = usize::try_from(flows.div_ceil(64)).expect("numbers of flows have 32 bits");
        Self {
            words: vec![0; words],
            count: 0,
        }
    }

    /// Adds a flow, which may already be in the set.
    #[inline(always)]
    pub(crate) fn insert(&mut self, flow: u64) {
        let word = (flow / 64) as usize;
        if word >= self.words.len() {
            self.grow(word);
        }
        let (word, bit) = (&mut self.words[word], 1 << (flow % 64));
        self.count += u64::from(*word & bit == 0);
        *word |= bit;
    }

    #[cold]
    fn grow(&mut self, word: usize) {
        self.words.resize((word + 1).next_power_of_two(), 0);
    }

    /// Number of flows in the set.
    pub(crate) const fn count(&self) -> u64 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn counts_every_flow_once(flows in proptest::collection::vec(0..5_000u64, 0..500), room in 0..6_000u64) {
            let mut set = FlowSet::below(room);
            for flow in &flows {
                set.insert(*flow);
            }
            prop_assert_eq!(set.count(), flows.iter().collect::<HashSet<_>>().len() as u64);
        }
    }
}
