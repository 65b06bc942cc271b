// SPDX-License-Identifier: Apache-2.0
//! The sequence numbers of reports, which reveal how many were lost.

/// Counts missing numbers. Reports may overtake each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sequence {
    /// The number after the highest; unknown before the first report.
    next: Option<u32>,
    /// How many numbers there are up to the highest.
    due: u64,
    /// How many of them have arrived.
    came: u64,
}

impl Sequence {
    /// Takes a number. If it is less than 2^31 ahead, the numbers in between are missing; otherwise
    /// it is late.
    pub(crate) fn take(&mut self, number: u32) {
        let ahead = number.wrapping_sub(self.next.unwrap_or(number));
        if ahead < 1 << 31 {
            self.due += u64::from(ahead) + 1;
            self.next = Some(number.wrapping_add(1));
        }
        self.came += 1;
    }

    /// Starts counting again from the next number.
    pub(crate) fn restart(&self) -> Self {
        Self {
            next: self.next,
            ..Self::default()
        }
    }

    /// How many numbers are missing.
    pub(crate) const fn lost(&self) -> u64 {
        self.due.saturating_sub(self.came)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(numbers: &[u32]) -> u64 {
        let mut sequence = Sequence::default();
        numbers.iter().for_each(|number| sequence.take(*number));
        sequence.lost()
    }

    #[test]
    fn counts_what_is_missing_in_whatever_order() {
        assert_eq!(lost(&[]), 0);
        assert_eq!(lost(&[9, 10, 11]), 0);
        assert_eq!(lost(&[9, 12]), 2);
        assert_eq!(lost(&[9, 12, 10]), 1);
        assert_eq!(lost(&[9, 12, 10, 11, 13]), 0);
        assert_eq!(lost(&[u32::MAX, 1]), 1);
        assert_eq!(lost(&[1, u32::MAX, 2]), 0);
    }

    #[test]
    fn begins_anew() {
        let mut sequence = Sequence::default();
        sequence.take(1);
        sequence.take(5);
        let mut sequence = sequence.restart();
        sequence.take(7);
        assert_eq!(sequence.lost(), 1);
    }
}
