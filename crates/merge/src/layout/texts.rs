// SPDX-License-Identifier: Apache-2.0
//! Columns of texts: results of inspection, decisions of a bridge, and the Community ID.

use std::net::IpAddr;

use turboflow_record::{
    CommunityFlow, Definition, Input, InspectedTexts, KeyField, Op, ValueData, Values,
};

/// Where the texts of a run of records come from.
pub(super) struct TextSource<'a> {
    /// The texts for the values of inspected inputs. Without them, all of these texts are absent.
    pub(super) inspected: Option<&'a InspectedTexts>,
    /// The columns that have already been filled: those of the key.
    pub(super) filled: &'a [Values],
    /// The positions of the 5-tuple's columns in `filled`, if a feature needs it.
    pub(super) tuple: Option<[usize; 5]>,
}

/// The positions of the 5-tuple in the key, if a feature needs it.
pub(super) fn tuple_places(definition: &Definition) -> Option<[usize; 5]> {
    let mut features = definition.features.iter();
    features.find(|feature| feature.op == Op::CommunityId)?;
    let place = |field| definition.key.iter().position(|its| *its == field);
    let places = KeyField::FIVE_TUPLE.map(place);
    Some(places.map(|place| place.expect("the definition was checked to have the 5-tuple")))
}

impl TextSource<'_> {
    /// Appends the texts of an input. `words` hold values plus one.
    pub(super) fn fill(&self, of: Input, words: &[u64], values: &mut Values) {
        let each = words.iter().map(|word| word.checked_sub(1));
        match self.inspected {
            Some(texts) => texts.each(of, each, |text| values.push_text(text)),
            None => each.for_each(|_| values.push_text(None)),
        }
    }

    /// Appends the Community IDs of the records in `filled` that `values` does not have yet.
    /// `types` and `codes` are those of ICMP, plus one.
    pub(super) fn fill_community_ids(&self, types: &[u64], codes: &[u64], values: &mut Values) {
        let [source, destination, source_port, destination_port, protocol] =
            self.tuple.expect("a feature needs the 5-tuple");
        let start = values.data.len();
        for (index, (its_type, code)) in types.iter().zip(codes).enumerate() {
            let row = start + index;
            let number = |column: usize| number(&self.filled[column], row);
            let icmp = its_type.checked_sub(1).zip(code.checked_sub(1));
            let flow = CommunityFlow {
                addresses: [source, destination].map(|column| address(&self.filled[column], row)),
                protocol: number(protocol) as u8,
                ports: [source_port, destination_port].map(|column| number(column) as u16),
                icmp: icmp.map(|(its_type, code)| [its_type as u8, code as u8]),
            };
            values.push_text(flow.id().as_deref());
        }
    }
}

fn number(values: &Values, row: usize) -> u64 {
    match &values.data {
        ValueData::Unsigned(numbers) => numbers[row],
        data => unreachable!("{data:?} is not a column of ports or protocols"),
    }
}

fn address(values: &Values, row: usize) -> IpAddr {
    match &values.data {
        ValueData::Address(addresses) => addresses[row],
        data => unreachable!("{data:?} is not a column of addresses"),
    }
}
