// SPDX-License-Identifier: Apache-2.0
//! EtherTypes that a parser cannot read.

/// How many EtherTypes are counted separately. Real links have a handful, but a sender of random
/// frames uses all. A new type then replaces the rarest, so that a common type is found no matter
/// how late it first appears. Its count lacks only the frames from before it entered the table.
const MOST: usize = 32;

/// Counts of frames by EtherType, for the most common types. All others are counted together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnreadEtherTypes {
    counts: [(u16, u64); MOST],
    used: usize,
    others: u64,
}

impl UnreadEtherTypes {
    pub(crate) fn count(&mut self, ether_type: u16) {
        self.add(ether_type, 1);
    }

    fn add(&mut self, ether_type: u16, frames: u64) {
        let known = self.counts[..self.used].iter_mut();
        if let Some((_, count)) = known.into_iter().find(|(known, _)| *known == ether_type) {
            *count += frames;
        } else if let Some(free) = self.counts.get_mut(self.used) {
            *free = (ether_type, frames);
            self.used += 1;
        } else if let Some(rarest) = self.counts.iter_mut().min_by_key(|(_, count)| *count) {
            self.others += rarest.1;
            *rarest = (ether_type, frames);
        }
    }

    /// Adds the counts of another parser.
    pub fn merge(&mut self, other: &Self) {
        for (ether_type, frames) in &other.counts[..other.used] {
            self.add(*ether_type, *frames);
        }
        self.others += other.others;
    }

    /// EtherTypes and their frames, most frequent first.
    #[must_use]
    pub fn commonest(&self) -> Vec<(u16, u64)> {
        let mut counts = self.counts[..self.used].to_vec();
        counts.sort_unstable_by_key(|(ether_type, frames)| (u64::MAX - frames, *ether_type));
        counts
    }

    /// Frames of all other EtherTypes.
    #[must_use]
    pub const fn others(&self) -> u64 {
        self.others
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_common_type_is_found_however_late_it_comes() {
        let mut unread = UnreadEtherTypes::default();
        (0..1_000).for_each(|noise| unread.count(noise));
        (0..500).for_each(|_| unread.count(0x88f7));
        (0..10).for_each(|_| unread.count(0x22f0));
        assert_eq!(unread.commonest()[..2], [(0x88f7, 500), (0x22f0, 10)]);
        let all: u64 = unread.commonest().iter().map(|(_, frames)| frames).sum();
        assert_eq!(all + unread.others(), 1_510);
        let mut sum = UnreadEtherTypes::default();
        sum.merge(&unread);
        sum.merge(&unread);
        assert_eq!(sum.commonest()[0], (0x88f7, 1_000));
    }
}
