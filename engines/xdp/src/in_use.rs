// SPDX-License-Identifier: Apache-2.0
//! Tracks which tables receive packets. Tables of idle CPUs need not be searched at the end of
//! every cell. A machine has tens of CPUs, and a card sends its packets to a few.

/// Packet counts at the times when the halves were emptied.
#[derive(Default)]
pub(crate) struct InUse {
    /// Packets merged into each table when a half was last emptied, and when the other half was
    /// emptied before that. The other half is the next to be emptied.
    emptied: [Vec<u64>; 2],
}

impl InUse {
    /// Whether each table may have rows in the half that is emptied now. `metered` is the number of
    /// packets merged into each table, if known.
    ///
    /// A half is not written between its emptying and the turn to it. So its rows hold packets
    /// metered after it was last emptied, two turns ago. If there were none since then, it has no
    /// rows.
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
        // These three packets may have come after that turn, into the other half.
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
