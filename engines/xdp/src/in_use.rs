// SPDX-License-Identifier: Apache-2.0
//! Which tables packets have come to: those of CPUs that no packet comes to need not be looked through at the end of every cell. A
//! machine has tens of them, and a card sends its packets to a few.

/// What was counted when the halves were emptied.
#[derive(Default)]
pub(crate) struct InUse {
    /// Packets that had gone into each table: the last time, and the time before, when the other half was the one that is next.
    emptied: [Vec<u64>; 2],
}

impl InUse {
    /// Whether each of so many tables may have rows in the half that is emptied now, when so many packets have gone into each, as
    /// far as that is known.
    ///
    /// Nobody writes to a half between its emptying and the turn to it. So its rows are of packets that were metered after it was
    /// emptied last, two turns ago: where none was since then, there is none.
    pub(crate) fn since_emptied(&mut self, metered: Option<Vec<u64>>, tables: usize) -> Vec<bool> {
        let Some(metered) = metered else {
            return vec![true; tables];
        };
        let [last, before] = std::mem::take(&mut self.emptied);
        let then = before.into_iter().chain(std::iter::repeat(0));
        let in_use = metered.iter().zip(then);
        let in_use = in_use.map(|(now, then)| *now != then).collect();
        self.emptied = [metered, last];
        in_use
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_in_use_until_its_second_turn_without_a_packet() {
        let mut in_use = InUse::default();
        let mut turn = |metered: [u64; 2]| in_use.since_emptied(Some(metered.to_vec()), 2);
        assert_eq!(turn([0, 0]), [false, false]);
        assert_eq!(turn([3, 0]), [true, false]);
        // Those three may have come after that turn, into the other half.
        assert_eq!(turn([3, 0]), [true, false]);
        assert_eq!(turn([3, 1]), [false, true]);
        assert_eq!(turn([3, 2]), [false, true]);
        assert_eq!(turn([4, 2]), [true, true]);
        assert_eq!(turn([4, 2]), [true, false]);
    }

    #[test]
    fn what_is_not_known_is_in_use() {
        assert_eq!(InUse::default().since_emptied(None, 3), [true; 3]);
    }
}
