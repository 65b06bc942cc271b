// SPDX-License-Identifier: Apache-2.0
//! Inputs: what a definition can use of a packet beyond the 5-tuple.

mod set;
mod table;

use crate::ColumnKind;
use crate::elements::registry::{ColumnOf, Registered, Units};

pub(crate) use set::ValueTable;
pub use set::{INPUT_WORDS, InputSet};
pub use table::Input;
use table::{ROWS, Row};

/// The meaning of an input's values, which decides which ops are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// An amount, which can be added and averaged.
    Amount,
    /// An identifier or a set of bits, for which a sum has no meaning.
    Label,
    /// A point in time.
    Time,
    /// The direction of a packet in a biflow.
    Direction,
    /// A result of inspection about a flow. No packet carries it; it is written into microflow
    /// records.
    Inspected,
    /// A decision of a bridge about a packet, as a number that has a name.
    Decided,
}

impl Input {
    /// The number of inputs.
    pub const COUNT: usize = Self::ALL.len();

    /// The inputs that inspection supplies, in numeric order.
    pub const INSPECTED: [Self; INSPECTED] = {
        let mut inputs = [Self::IpLength; INSPECTED];
        let (mut number, mut count) = (0, 0);
        while number < ROWS.len() {
            if Self::ALL[number].is_inspected() {
                inputs[count] = Self::ALL[number];
                count += 1;
            }
            number += 1;
        }
        inputs
    };

    const fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// The name used in definitions and column names.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// The input with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|input| input.name() == name)
    }

    /// A one-line description.
    #[must_use]
    pub const fn describe(self) -> &'static str {
        self.row().description
    }

    /// Number of bits of the largest value.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.row().bits
    }

    /// The type of its values in a column.
    #[must_use]
    pub const fn column_kind(self) -> ColumnKind {
        match (self.row().column, self.bits()) {
            (Some(kind), _) => kind,
            (None, 0..=8) => ColumnKind::Unsigned { bits: 8 },
            (None, bits) => ColumnKind::Unsigned {
                bits: bits.next_power_of_two(),
            },
        }
    }

    /// Whether every packet has it.
    #[must_use]
    pub const fn is_always_present(self) -> bool {
        self.row().is_always_present
    }

    /// Whether inspection supplies it, so that neither a parser nor an engine does.
    #[must_use]
    pub const fn is_inspected(self) -> bool {
        matches!(self.meaning(), Meaning::Inspected)
    }

    /// Whether a bridge supplies it, so that no other engine does.
    #[must_use]
    pub const fn is_decided(self) -> bool {
        InputSet::DECIDED.contains(self)
    }

    pub(crate) const fn meaning(self) -> Meaning {
        self.row().meaning
    }

    pub(crate) const fn units(self) -> Units {
        self.row().units
    }

    /// The IANA element for a column of the given kind.
    pub(crate) fn registered(self, wanted: ColumnOf) -> Option<&'static Registered> {
        let mut elements = self.row().elements.iter();
        elements.find_map(|(column, element)| (*column == wanted).then_some(element))
    }
}

/// The number of inputs that inspection supplies.
const INSPECTED: usize = {
    let (mut number, mut count) = (0, 0);
    while number < ROWS.len() {
        count += Input::ALL[number].is_inspected() as usize;
        number += 1;
    }
    count
};

/// The number of inputs that a key may contain.
const KEY_INPUTS: usize = {
    let (mut number, mut count) = (0, 0);
    while number < ROWS.len() {
        count += ROWS[number].key_place.is_some() as usize;
        number += 1;
    }
    count
};

/// The inputs that a key may contain, in the order of `Row::key_place`.
pub(crate) const IN_KEYS: [Input; KEY_INPUTS] = {
    let mut inputs = [Input::IpLength; KEY_INPUTS];
    let mut taken = [false; KEY_INPUTS];
    let mut number = 0;
    while number < ROWS.len() {
        if let Some(place) = ROWS[number].key_place {
            let place = place as usize;
            assert!(
                place < KEY_INPUTS && !taken[place],
                "places in keys run from 0, one for each input"
            );
            (inputs[place], taken[place]) = (Input::ALL[number], true);
        }
        number += 1;
    }
    inputs
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_read_back() {
        for (index, input) in Input::ALL.into_iter().enumerate() {
            assert_eq!(input as usize, index);
            assert_eq!(Input::from_name(input.name()), Some(input));
        }
        assert_eq!(Input::from_name("nope"), None);
    }

    #[test]
    fn every_row_is_filled_in() {
        for input in Input::ALL {
            assert!((1..=64).contains(&input.bits()), "{input:?} has no width");
            assert!(!input.describe().is_empty(), "{input:?} is not described");
        }
    }

    #[test]
    fn inspected_inputs_are_texts_that_packets_lack() {
        let inspected: Vec<_> = Input::ALL
            .into_iter()
            .filter(|input| input.is_inspected())
            .collect();
        assert_eq!(inspected, Input::INSPECTED);
        for input in inspected {
            assert!(crate::InputSet::INSPECTED.contains(input));
            assert_eq!(input.column_kind(), ColumnKind::Text);
            assert!(!input.is_always_present() && !IN_KEYS.contains(&input));
        }
    }

    #[test]
    fn columns_are_as_wide_as_their_inputs() {
        let bits = |input: Input| match input.column_kind() {
            ColumnKind::Unsigned { bits } => Some(bits),
            _ => None,
        };
        assert_eq!(bits(Input::VlanPriority), Some(8));
        assert_eq!(bits(Input::Vlan), Some(16));
        assert_eq!(bits(Input::Vni), Some(32));
        assert_eq!(bits(Input::TcpOptions), Some(64));
        assert_eq!(bits(Input::SourceMac), None);
    }
}
