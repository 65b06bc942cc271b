// SPDX-License-Identifier: Apache-2.0
//! Sets of inputs, and tables of values indexed by input number. Both have as many words as the
//! number of inputs needs.

use super::Input;
use super::table::ROWS;

/// Words of a set: a power of two, so that masking an index replaces a bounds check.
pub const INPUT_WORDS: usize = Input::COUNT.div_ceil(64).next_power_of_two();

/// The word and the bit of a number within a set.
#[inline(always)]
const fn place<const WORDS: usize>(number: u8) -> (usize, usize) {
    const { assert!(WORDS.is_power_of_two()) };
    ((number as usize / 64) & (WORDS - 1), number as usize & 63)
}

/// A set of numbers below `64 * WORDS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BitSet<const WORDS: usize>([u64; WORDS]);

impl<const WORDS: usize> BitSet<WORDS> {
    pub(crate) const EMPTY: Self = Self([0; WORDS]);

    #[inline(always)]
    pub(crate) const fn with(mut self, number: u8) -> Self {
        let (word, bit) = place::<WORDS>(number);
        self.0[word] |= 1 << bit;
        self
    }

    const fn union(mut self, other: Self) -> Self {
        let mut word = 0;
        while word < WORDS {
            self.0[word] |= other.0[word];
            word += 1;
        }
        self
    }

    const fn without(mut self, other: Self) -> Self {
        let mut word = 0;
        while word < WORDS {
            self.0[word] &= !other.0[word];
            word += 1;
        }
        self
    }

    #[inline(always)]
    pub(crate) const fn contains(&self, number: u8) -> bool {
        let (word, bit) = place::<WORDS>(number);
        self.0[word] >> bit & 1 == 1
    }

    #[inline(always)]
    const fn is_empty(&self) -> bool {
        let (mut word, mut any) = (0, 0);
        while word < WORDS {
            any |= self.0[word];
            word += 1;
        }
        any == 0
    }
}

/// A value for every number below `64 * WORDS`, so that access needs no bounds check.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct ValueTable<const WORDS: usize>([[u64; 64]; WORDS]);

impl<const WORDS: usize> ValueTable<WORDS> {
    pub(crate) const ZEROS: Self = Self([[0; 64]; WORDS]);

    #[inline(always)]
    pub(crate) fn set(&mut self, number: u8, value: u64) {
        let (word, bit) = place::<WORDS>(number);
        self.0[word][bit] = value;
    }

    #[inline(always)]
    pub(crate) const fn get(&self, number: u8) -> u64 {
        let (word, bit) = place::<WORDS>(number);
        self.0[word][bit]
    }
}

/// A set of [`Input`]s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputSet(BitSet<INPUT_WORDS>);

impl Default for InputSet {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl InputSet {
    /// The empty set.
    pub const EMPTY: Self = Self(BitSet::EMPTY);

    /// Inputs that are computed from the sequence of a record's packets, so that neither a parser
    /// nor an engine supplies them.
    pub const DERIVED: Self = {
        let (mut set, mut number) = (Self::EMPTY, 0);
        while number < ROWS.len() {
            if ROWS[number].is_derived {
                set = set.with(Input::ALL[number]);
            }
            number += 1;
        }
        set
    };

    /// Inputs that inspection supplies, so that neither a parser nor an engine does.
    pub const INSPECTED: Self = Self::of(&Input::INSPECTED);

    /// Inputs that describe what a bridge does with packets. Only a bridge supplies them.
    pub const DECIDED: Self = Self::of(&[
        Input::Verdict,
        Input::Rule,
        Input::PacketDropped,
        Input::BytesDropped,
    ]);

    /// The set of these inputs.
    #[must_use]
    pub const fn of(inputs: &[Input]) -> Self {
        let (mut set, mut index) = (Self::EMPTY, 0);
        while index < inputs.len() {
            set = set.with(inputs[index]);
            index += 1;
        }
        set
    }

    /// This set and `input`.
    #[must_use]
    pub const fn with(self, input: Input) -> Self {
        Self(self.0.with(input as u8))
    }

    /// The union of both sets.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0.union(other.0))
    }

    /// This set without the members of `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0.without(other.0))
    }

    /// Whether the sets have an input in common.
    #[must_use]
    pub const fn intersects(self, other: Self) -> bool {
        let without = self.without(other);
        let mut word = 0;
        while word < INPUT_WORDS {
            if without.0.0[word] != self.0.0[word] {
                return true;
            }
            word += 1;
        }
        false
    }

    /// Whether `input` is in the set.
    #[inline(always)]
    #[must_use]
    pub const fn contains(self, input: Input) -> bool {
        self.0.contains(input as u8)
    }

    #[inline(always)]
    pub(crate) const fn contains_number(self, number: u8) -> bool {
        self.0.contains(number)
    }

    /// Whether the set is empty.
    #[inline(always)]
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// The set as bits, indexed by input number.
    #[inline(always)]
    #[must_use]
    pub const fn words(self) -> [u64; INPUT_WORDS] {
        self.0.0
    }

    /// The members, in numeric order.
    pub fn iter(self) -> impl Iterator<Item = Input> {
        Input::ALL
            .into_iter()
            .filter(move |&input| self.contains(input))
    }

    /// The names of the members, separated by commas.
    #[must_use]
    pub fn names(self) -> String {
        self.iter().map(Input::name).collect::<Vec<_>>().join(", ")
    }
}

impl FromIterator<Input> for InputSet {
    fn from_iter<T: IntoIterator<Item = Input>>(inputs: T) -> Self {
        inputs.into_iter().fold(Self::EMPTY, Self::with)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_contain_what_was_added() {
        let set = InputSet::EMPTY.with(Input::Ttl).with(Input::Gap);
        assert_eq!(set.iter().collect::<Vec<_>>(), [Input::Ttl, Input::Gap]);
        assert_eq!(set, InputSet::of(&[Input::Gap, Input::Ttl]));
        assert!(!set.contains(Input::Vlan));
        assert!(set.intersects(InputSet::DERIVED) && !set.intersects(InputSet::INSPECTED));
        assert_eq!(InputSet::DERIVED.names(), "direction, gap");
    }

    /// Sets and value tables must work for any input number, because the table of inputs may grow.
    #[test]
    fn numbers_beyond_one_word_are_distinct() {
        let members = [0u8, 34, 63, 64, 65, 100, 127, 128, 200, 255];
        let (mut set, mut values) = (BitSet::<4>::EMPTY, ValueTable::<4>::ZEROS);
        for number in members {
            set = set.with(number);
            values.set(number, 1_000 + u64::from(number));
        }
        for number in 0..=255 {
            let is_member = members.contains(&number);
            let value = if is_member {
                1_000 + u64::from(number)
            } else {
                0
            };
            assert_eq!(
                (set.contains(number), values.get(number)),
                (is_member, value)
            );
        }
        let [high, low] = [128u8, 1].map(|number| BitSet::<4>::EMPTY.with(number));
        assert_eq!(high.union(low), low.with(128));
        assert!(!high.is_empty() && BitSet::<4>::EMPTY.is_empty());
    }
}
