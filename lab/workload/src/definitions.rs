// SPDX-License-Identifier: Apache-2.0
//! Random record definitions for property tests.

use turboflow_merge::Layout;
use turboflow_record::{ColumnKind, Definition, Feature, Input, KeyField, Op};

use crate::random::Random;

/// A definition that compiles: the default one, or a random key (most often the plain 5-tuple) with
/// up to a dozen features of any op and input. It depends only on the arguments.
#[must_use]
pub fn random_definition(seed: u64, biflow: bool) -> Definition {
    let mut random = Random::new(seed ^ 0xdef1);
    if random.percent(10) {
        return Definition::default();
    }
    let key = random_key(biflow, &mut random);
    let wanted = 1 + random.below(12);
    let mut definition = Definition {
        key,
        features: Vec::new(),
    };
    for number in 0..wanted {
        // Features that do not fit or make no sense are left out.
        definition
            .features
            .push(random_feature(number, &mut random));
        if Layout::compile(&definition, biflow).is_err() {
            definition.features.pop();
        }
    }
    if definition.features.is_empty() {
        definition
            .features
            .push(Feature::new("packets", Op::Count, None));
    }
    definition
}

/// The 5-tuple, with more fields or fewer. If the field of one endpoint is in the key, so is that
/// of the other.
fn random_key(biflow: bool, random: &mut Random) -> Vec<KeyField> {
    if random.percent(50) {
        return KeyField::FIVE_TUPLE.to_vec();
    }
    let addresses = [KeyField::SourceAddress, KeyField::DestinationAddress];
    let mut key = addresses.to_vec();
    let groups: [&[KeyField]; 7] = [
        &[KeyField::SourcePort, KeyField::DestinationPort],
        &[KeyField::Protocol],
        &[KeyField::Input(Input::Vlan)],
        &[KeyField::Input(Input::Tos)],
        &[
            KeyField::Input(Input::SourceMac),
            KeyField::Input(Input::DestinationMac),
        ],
        &[
            KeyField::OuterSourceAddress,
            KeyField::OuterDestinationAddress,
        ],
        &[
            KeyField::Input(Input::Vni),
            KeyField::Input(Input::TcpFlags),
        ],
    ];
    for group in groups {
        if random.percent(25) {
            key.extend_from_slice(group);
        }
    }
    // A biflow key needs both endpoints.
    if !biflow && key.len() > addresses.len() && random.percent(15) {
        key.drain(..addresses.len());
    }
    for last in (1..key.len()).rev() {
        key.swap(last, random.below(last as u64 + 1) as usize);
    }
    key
}

fn random_feature(number: u64, random: &mut Random) -> Feature {
    let k = 1 + random.below(6) as usize;
    let ops = [
        Op::Count,
        Op::Sum,
        Op::Min,
        Op::Max,
        Op::First,
        Op::Last,
        Op::Nth { k },
        Op::BitOr,
        Op::Mean,
        Op::Variance,
        Op::GapMin,
        Op::GapMax,
        Op::GapMean,
        Op::GapVariance,
        Op::Histogram {
            edges: random_edges(random),
        },
        Op::List { k },
        Op::Duration,
        Op::Rate,
        Op::CommunityId,
    ];
    let op = ops[random.below(ops.len() as u64) as usize].clone();
    let takes_none = match op {
        Op::GapMin | Op::GapMax | Op::GapMean | Op::GapVariance => true,
        Op::Duration | Op::CommunityId => true,
        Op::Count | Op::Rate => random.percent(50),
        _ => false,
    };
    let of = (!takes_none).then(|| match random.below(3) {
        0 => random.pick(&[
            Input::IpLength,
            Input::Timestamp,
            Input::Ttl,
            Input::TcpFlags,
        ]),
        1 => random.pick(&[
            Input::Gap,
            Input::Direction,
            Input::TcpWindow,
            Input::FrameLength,
        ]),
        // The reference meter has no names for numbers.
        _ => match random.pick(&Input::ALL) {
            input if input.is_decided() && input.column_kind() == ColumnKind::Text => Input::Ttl,
            input => input,
        },
    });
    Feature {
        per_biflow: random.percent(30),
        ..Feature::new(&format!("f{number}"), op, of)
    }
}

fn random_edges(random: &mut Random) -> Vec<u64> {
    let count = 1 + random.below(20);
    let mut edges: Vec<u64> = (0..count).map(|_| 1 + random.below(2_000)).collect();
    edges.sort_unstable();
    edges.dedup();
    edges
}
