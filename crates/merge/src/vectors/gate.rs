// SPDX-License-Identifier: Apache-2.0
//! The single test of a hot loop: whether a record certainly merges into its flow, with no cut or
//! end of flow between the two. If the test fails, the full rules decide.

use crate::{Base, Marks};
#[cfg(doc)]
use turboflow_record::LAST_TIME_NS;

/// Half of the range of times. Two times below it differ by less than it, so a difference of this
/// value or more is a negative one.
const HALF: u64 = 1 << 63;

/// Tests whether a record certainly merges. The test uses the differences between the later record
/// and the flow, which a merge needs anyway. One comparison of a line of differences covers the
/// key, both times, and ends.
///
/// It is correct for times less than 2^63 ns apart. The creator of a gate must ensure that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MergeGate {
    from_ns: u64,
    longest_since_first_ns: u64,
    longest_since_last_ns: u64,
    without_ends: bool,
}

impl MergeGate {
    /// No limit: times must be less than 2^63 ns apart anyway.
    pub const UNLIMITED_NS: u64 = HALF - 1;

    /// A gate that passes nothing, because no record begins that late ([`LAST_TIME_NS`] is
    /// smaller).
    pub const CLOSED: Self = Self {
        from_ns: u64::MAX,
        longest_since_first_ns: 0,
        longest_since_last_ns: 0,
        without_ends: true,
    };

    /// A gate that passes a record under these conditions. It begins at `from_ns` or later. It
    /// begins no earlier than the flow, and at most `longest_since_first_ns` later. It ends no
    /// earlier than the flow, and at most `longest_since_last_ns` later. If one of these spans
    /// exceeds [`Self::UNLIMITED_NS`], nothing passes.
    #[must_use]
    pub const fn new(
        from_ns: u64,
        longest_since_first_ns: u64,
        longest_since_last_ns: u64,
    ) -> Self {
        if longest_since_first_ns >= HALF || longest_since_last_ns >= HALF {
            return Self::CLOSED;
        }
        Self {
            from_ns,
            longest_since_first_ns,
            longest_since_last_ns,
            without_ends: false,
        }
    }

    /// Adds the condition that neither flow nor record has any of [`Marks::ENDS`].
    #[must_use]
    pub const fn without_ends(self) -> Self {
        Self {
            without_ends: true,
            ..self
        }
    }

    /// Whether `later` certainly merges into `flow`.
    #[inline(always)]
    #[must_use]
    pub const fn passes(&self, flow: &Base, later: &Base) -> bool {
        let since_first_ns = later.first_ns.wrapping_sub(flow.first_ns);
        let since_last_ns = later.last_ns.wrapping_sub(flow.last_ns);
        let ends = flow.marks.any(Marks::ENDS) | later.marks.any(Marks::ENDS);
        self.is_late_enough(later)
            & (since_first_ns <= self.longest_since_first_ns)
            & (since_last_ns <= self.longest_since_last_ns)
            & !(self.without_ends & ends)
    }

    /// The condition that depends on the later record only.
    #[inline(always)]
    pub(super) const fn is_late_enough(&self, later: &Base) -> bool {
        later.first_ns >= self.from_ns
    }

    /// The largest values that pass in the words of a line: see [`super::line`].
    pub(super) const fn largest(&self) -> [u64; 8] {
        const ANY: u64 = u64::MAX;
        let marks = if self.without_ends {
            ANY >> Marks::ENDS.count_ones()
        } else {
            ANY
        };
        let (first, last) = (self.longest_since_first_ns, self.longest_since_last_ns);
        [0, 0, ANY, ANY, first, last, ANY, marks]
    }
}

impl AsRef<Self> for MergeGate {
    #[inline(always)]
    fn as_ref(&self) -> &Self {
        self
    }
}

/// Marks that a merge adds from the later record.
const JOINED_MARKS: u8 = !Marks::OF_FIRST_PACKET;

/// Flags and marks that a merge adds from the later record, as bits of the upper half of the last
/// word.
pub(super) const JOINED: u32 = 0xffff | (JOINED_MARKS as u32) << 24;

// The gate checks a line for ends after joining marks.
const _: () = assert!(Marks::ENDS & !JOINED_MARKS == 0);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn times() -> impl Strategy<Value = u64> {
        let near = |time: u64| (0..4u64).prop_map(move |more| (time + more).saturating_sub(2));
        prop_oneof![near(0), near(100), near(HALF - 4), 0..HALF]
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

        /// The rule in its simplest form.
        #[test]
        fn passes_what_the_rule_allows(
            from_ns in times(),
            longest in [times(), times()],
            flow in [times(), times()],
            later in [times(), times()],
            marks in [0..4u8, 0..4u8],
            without_ends in any::<bool>(),
        ) {
            let marks = marks.map(|mark| [0, Marks::SYN, Marks::FIN, Marks::RST][usize::from(mark)]);
            let gate = MergeGate::new(from_ns, longest[0], longest[1]);
            let gate = if without_ends { gate.without_ends() } else { gate };
            let rule = later[0] >= from_ns.max(flow[0])
                && later[0] - flow[0] <= longest[0]
                && later[1] >= flow[1]
                && later[1] - flow[1] <= longest[1]
                && !(without_ends && (marks[0] | marks[1]) & Marks::ENDS != 0);
            let passes = gate.passes(&base(flow[0], flow[1], marks[0]), &base(later[0], later[1], marks[1]));
            prop_assert_eq!(passes, rule);
        }
    }

    #[test]
    fn a_closed_gate_passes_nothing() {
        let packet = base(0, 0, 0);
        assert!(MergeGate::new(0, 0, 0).passes(&packet, &packet));
        assert!(!MergeGate::CLOSED.passes(&packet, &packet));
        assert_eq!(MergeGate::new(0, HALF, 0), MergeGate::CLOSED);
        assert_eq!(MergeGate::new(0, 0, HALF), MergeGate::CLOSED);
    }
}
