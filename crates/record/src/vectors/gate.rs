// SPDX-License-Identifier: Apache-2.0
//! Which records certainly merge, without any cut or end between them: the one test of a hot loop. Where it says no, rules decide.

use crate::{Base, Marks};

/// Half of all times: below it, one is later than another where their difference, as a signed number, is not negative.
const HALF: u64 = 1 << 63;

/// The test. It is made of additions and of bits that must not be, which vectors do twice as often in a cycle as they compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MergeGate {
    oldest_first_ns: u64,
    oldest_last_ns: u64,
    oldest_later_ns: u64,
    flow_marks: u8,
    later_marks: u8,
    /// The bit that is the sign, where nothing passes, else none.
    closed: u64,
}

impl MergeGate {
    /// Nothing passes.
    pub const CLOSED: Self = Self {
        oldest_first_ns: 0,
        oldest_last_ns: 0,
        oldest_later_ns: 0,
        flow_marks: 0,
        later_marks: 0,
        closed: HALF,
    };

    /// A record passes, if it began no earlier than the flow, nor than either of `oldest_first_ns` and `oldest_later_ns`; the flow
    /// began no earlier than `oldest_first_ns`, and its last packet came no earlier than `oldest_last_ns`.
    ///
    /// From the year 2262 on (2^63 ns), nothing passes.
    #[must_use]
    pub const fn new(oldest_first_ns: u64, oldest_last_ns: u64, oldest_later_ns: u64) -> Self {
        let oldest_later_ns = if oldest_first_ns > oldest_later_ns {
            oldest_first_ns
        } else {
            oldest_later_ns
        };
        if oldest_later_ns >= HALF || oldest_last_ns >= HALF {
            return Self::CLOSED;
        }
        Self {
            oldest_first_ns,
            oldest_last_ns,
            oldest_later_ns,
            closed: 0,
            ..Self::CLOSED
        }
    }

    /// And the flow has none of `flow_marks`, the record none of `later_marks`.
    #[must_use]
    pub const fn without_marks(self, flow_marks: u8, later_marks: u8) -> Self {
        Self {
            flow_marks,
            later_marks,
            ..self
        }
    }

    /// Whether `later` certainly merges into `flow`.
    ///
    /// A flow that began in the upper half of all times, and passes as one no older than the first time, did so less than that
    /// time into it; what began so much earlier that it seems to be later began before the first time, so before that of records,
    /// and does not pass. Where the flow or the record lies in the upper half, a no may be wrong, a yes is not.
    #[inline(always)]
    #[must_use]
    pub const fn passes(&self, flow: &Base, later: &Base) -> bool {
        let negative = self.closed
            | flow.first_ns.wrapping_sub(self.oldest_first_ns)
            | flow.last_ns.wrapping_sub(self.oldest_last_ns)
            | later.first_ns.wrapping_sub(self.oldest_later_ns)
            | later.first_ns.wrapping_sub(flow.first_ns);
        let marks = flow.marks.0 & self.flow_marks | later.marks.0 & self.later_marks;
        negative & HALF | marks as u64 == 0
    }
}

impl AsRef<Self> for MergeGate {
    #[inline(always)]
    fn as_ref(&self) -> &Self {
        self
    }
}

/// The same over lines, whose lanes of 64 bits hold what is drawn in [`super::line`]. The highest bit of the last lane is padding, which
/// is zero: taken from by a gate that is closed, it is wrong.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct GateLines {
    /// What the flow is to be no less than.
    pub(super) oldest: [u64; 8],
    /// What the later record is to be no less than.
    pub(super) oldest_later: [u64; 8],
    /// Bits that must not be in what the flow is more.
    pub(super) flow: [u64; 8],
    /// In what the later record is more.
    pub(super) later: [u64; 8],
    /// In any of these, or in what the later record's key and first time are more than the flow's.
    pub(super) any: [u64; 8],
}

impl MergeGate {
    pub(super) const fn lines(&self) -> GateLines {
        let (flow, later) = (
            (self.flow_marks as u64) << 16,
            (self.later_marks as u64) << 16,
        );
        let (first, last) = (self.oldest_first_ns, self.oldest_last_ns);
        GateLines {
            oldest: [0, 0, 0, 0, first, last, 0, self.closed],
            oldest_later: [0, 0, 0, 0, self.oldest_later_ns, 0, 0, 0],
            flow: [0, 0, 0, 0, HALF, HALF, 0, HALF | flow],
            later: [0, 0, 0, 0, HALF, 0, 0, later],
            any: [u64::MAX, u64::MAX, 0, 0, HALF, HALF, 0, HALF | flow | later],
        }
    }
}

/// What a merge does with the lanes of a line (AVX-512 masks, see [`super::line`]). They are data, since
/// constants would be put into mask registers anew at every merge: an eighth of its instructions.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct LineLanes {
    pub(super) min_ttl: u64,
    pub(super) max_ttl: u64,
    pub(super) min_length: u16,
    pub(super) max_length: u16,
    pub(super) key_and_first: u8,
    pub(super) sums: u8,
    pub(super) last: u8,
}

impl LineLanes {
    pub(super) const ALL: Self = Self {
        min_ttl: 1 << 60,
        max_ttl: 1 << 61,
        min_length: 1 << 12,
        max_length: 1 << 13,
        key_and_first: 0b0001_0011,
        sums: 0b0000_1100,
        last: 0b0010_0000,
    };

    /// Of the two halves of a line, each its own: sums are in the lower one, all else but the key is in the upper.
    pub(super) const OF_HALVES: Self = Self {
        min_ttl: Self::ALL.min_ttl >> 32,
        max_ttl: Self::ALL.max_ttl >> 32,
        min_length: Self::ALL.min_length >> 8,
        max_length: Self::ALL.max_length >> 8,
        key_and_first: Self::ALL.key_and_first >> 4,
        sums: Self::ALL.sums,
        last: Self::ALL.last >> 4,
    };
}

/// Marks that a merge takes over from the later record.
pub(super) const JOINED_MARKS: u8 = !Marks::OF_FIRST_PACKET;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn times() -> impl Strategy<Value = u64> {
        let near =
            |time: u64| (0..4u64).prop_map(move |more| time.wrapping_add(more).wrapping_sub(2));
        prop_oneof![
            near(0),
            near(100),
            near(HALF),
            near(HALF + 100),
            any::<u64>()
        ]
    }

    fn base(first_ns: u64, last_ns: u64, marks: u8) -> Base {
        Base {
            packets: 1,
            first_ns,
            last_ns,
            marks: Marks(marks),
            ..Base::default()
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        /// The rule in plain words, for whatever times there are.
        #[test]
        fn lets_pass_what_the_rule_lets(
            oldest in [times(), times(), times()],
            flow in [times(), times()],
            later_first_ns in times(),
            marks in [0..4u8, 0..4u8, 0..4u8, 0..4u8],
        ) {
            let [oldest_first_ns, oldest_last_ns, oldest_later_ns] = oldest;
            let flow = base(flow[0], flow[1], marks[0]);
            let later = base(later_first_ns, later_first_ns, marks[1]);
            let gate = MergeGate::new(oldest_first_ns, oldest_last_ns, oldest_later_ns)
                .without_marks(marks[2], marks[3]);
            let rule = flow.first_ns >= oldest_first_ns
                && flow.last_ns >= oldest_last_ns
                && later.first_ns >= oldest_later_ns.max(oldest_first_ns).max(flow.first_ns)
                && !flow.marks.any(marks[2])
                && !later.marks.any(marks[3]);
            let all = oldest.into_iter().chain([flow.first_ns, flow.last_ns, later.first_ns]);
            let passes = gate.passes(&flow, &later);
            if all.max() < Some(HALF) {
                prop_assert_eq!(passes, rule);
            } else {
                prop_assert!(rule || !passes);
            }
        }
    }

    #[test]
    fn a_closed_gate_lets_nothing_pass() {
        let packet = base(0, 0, 0);
        assert!(MergeGate::new(0, 0, 0).passes(&packet, &packet));
        assert!(!MergeGate::CLOSED.passes(&packet, &packet));
        assert_eq!(MergeGate::new(HALF, 0, 0), MergeGate::CLOSED);
    }
}
