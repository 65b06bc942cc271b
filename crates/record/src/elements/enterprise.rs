// SPDX-License-Identifier: Apache-2.0
//! Enterprise-specific elements, for columns without an IANA element. Numbers are computed from op
//! and input, not assigned one by one.
//!
//! ```text
//!  bit 14 13  12  11 10  9  8  7  6  5  4  3  2  1  0
//!     +---+---+---+---+------------+-----------------+
//!     | R | 0 | 0 | J |  op        |  input          |   every op but nth
//!     +---+---+---+---+------------+-----------------+
//!     | R |  4096 + (k - 1) * 48 + input             |   nth, k from 1 to 256
//!     +---+---+---+---+------------+----+------------+
//!     | R | 0 | 0 | J |  31 - n/2  |n%2 |  op        |   every op but nth, of input 63 + n
//!     +---+---+---+---+------------+----+------------+
//! ```
//!
//! R is set for the reverse direction of a biflow, J for features over both directions. Ops count
//! from 1 and inputs from 0, in the order of their lists. After the op `rate` come the numbers for
//! key values, outer addresses and further ops. New ones are appended, so that a number never
//! changes its meaning. Input 63 means that the op has none. Inputs from 63 on use the op rows that
//! no op has taken, from the last row down.
//!
//! Columns without a number have 0 and are not exported in IPFIX. These are `nth` over both
//! directions of a biflow, `nth` of inputs from 48 on, and inputs for which the ops leave no row.

use super::{
    ColumnElement, DataType, Element, Semantics, Side, Units, camel, lower_first, reverse_name,
};
use crate::{ColumnKind, Feature, Input, KeyField, Op};

/// The enterprise number for use in documentation (RFC 5612), which no organisation owns. It is
/// the default because the project has no number of its own.
pub const DOCUMENTATION_ENTERPRISE: u32 = 32473;

/// Op numbers for key values, and for the addresses of the outermost tunnel.
const KEY_VALUE: u16 = 19;
const OUTER_ADDRESS: u16 = 20;
/// The op number of `community_id`. The two numbers above take its position in the list of ops.
const COMMUNITY_ID: u16 = 21;
/// The last op row. Ops are assigned rows from the first one up, inputs from 63 on from the last
/// one down.
const LAST_ROW: u16 = 31;
/// The input number of ops that take no input.
const NO_INPUT: u16 = 63;
/// Set in elements of the reverse direction.
const REVERSE_BIT: u16 = 1 << 14;
/// Set in elements over both directions.
const JOINED_BIT: u16 = 1 << 11;
/// Where the numbers of `nth` start, and how many inputs each `k` has room for.
const NTH_START: u16 = 4096;
const NTH_INPUTS: u16 = 48;

/// The element of a key field.
pub(super) fn of_key(field: KeyField, enterprise: u32) -> ColumnElement {
    let element = |id, name: &str, data_type| Element {
        id,
        enterprise: Some(enterprise),
        name: name.to_owned(),
        data_type,
        semantics: Semantics::Default,
        units: Units::None,
        description: field.describe().to_owned(),
        bytes: data_type.bytes(),
    };
    let outer = |at: u16, end: &str| {
        let id = OUTER_ADDRESS << 6 | at;
        ColumnElement {
            v4: element(id, &format!("outer{end}IPv4Address"), DataType::Ipv4Address),
            v6: element(
                id + 1,
                &format!("outer{end}IPv6Address"),
                DataType::Ipv6Address,
            ),
            is_list: false,
        }
    };
    match field {
        KeyField::OuterSourceAddress => outer(0, "Source"),
        KeyField::OuterDestinationAddress => outer(2, "Destination"),
        KeyField::Input(input) => {
            let name = lower_first(&camel(input.name()));
            let id = number(KEY_VALUE, Some(input as u16));
            let mut element = element(id, &name, value_type(input));
            element.semantics = Semantics::Identifier;
            ColumnElement::of(element)
        }
        _ => unreachable!("IANA has elements for the 5-tuple, and each is once in a key"),
    }
}

/// The element of a feature.
pub(super) fn of_feature(feature: &Feature, side: Side, enterprise: u32) -> ColumnElement {
    let (data_type, semantics, units) = meaning(feature);
    let mut name = camel(feature.op.name());
    if let Op::Nth { k } = feature.op {
        name += &k.to_string();
    }
    name += &feature
        .of
        .map(|input| camel(input.name()))
        .unwrap_or_default();
    name = match side {
        Side::Forward => lower_first(&name),
        Side::Reverse => reverse_name(&name),
        Side::Joined => format!("biflow{name}"),
    };
    let element = Element {
        id: id(feature, side),
        enterprise: Some(enterprise),
        name,
        data_type,
        semantics,
        units,
        description: describe(feature),
        bytes: data_type.bytes(),
    };
    ColumnElement {
        is_list: matches!(feature.op, Op::List { .. } | Op::Histogram { .. }),
        ..ColumnElement::of(element)
    }
}

fn id(feature: &Feature, side: Side) -> u16 {
    let input = feature.of.map(|input| input as u16);
    let number = match feature.op {
        Op::Nth { .. } if side == Side::Joined => 0,
        Op::Nth { k } => number_of_nth(k as u16, input.unwrap_or(NTH_INPUTS)),
        _ => number(op_number(&feature.op), input),
    };
    match side {
        _ if number == 0 => 0,
        Side::Forward => number,
        Side::Reverse => REVERSE_BIT | number,
        Side::Joined => JOINED_BIT | number,
    }
}

/// The number of an op over an input, or of a key field's value, in the forward direction.
pub(super) const fn number(op: u16, input: Option<u16>) -> u16 {
    match input {
        None => op << 6 | NO_INPUT,
        Some(input) if input < NO_INPUT => op << 6 | input,
        Some(input) => {
            let further = input - NO_INPUT;
            match LAST_ROW.saturating_sub(further / 2) {
                ..=COMMUNITY_ID => 0,
                row => row << 6 | (further % 2) << 5 | op,
            }
        }
    }
}

/// The number of an input's `k`-th value. `k` is at most 256, so that the number stays below bit
/// 14.
pub(super) const fn number_of_nth(k: u16, input: u16) -> u16 {
    match input {
        NTH_INPUTS.. => 0,
        _ => NTH_START + (k - 1) * NTH_INPUTS + input,
    }
}

/// The number of an op: up to `rate`, its position in [`Op::NAMES`], from 1. The numbers after
/// `rate` are taken, so each later op needs its own constant, and a case here.
fn op_number(op: &Op) -> u16 {
    if *op == Op::CommunityId {
        return COMMUNITY_ID;
    }
    let place = Op::NAMES.iter().position(|name| *name == op.name());
    1 + place.expect("every op is in the list") as u16
}

/// Type, semantics and unit of a feature's values. For a list, those of its elements.
fn meaning(feature: &Feature) -> (DataType, Semantics, Units) {
    let unit = feature.of.map_or(Units::None, Input::units);
    let value = feature.of.map_or(DataType::Unsigned64, value_type);
    match feature.op {
        Op::Count | Op::Histogram { .. } => (
            DataType::Unsigned64,
            Semantics::DeltaCounter,
            Units::Packets,
        ),
        Op::Sum => (DataType::Unsigned64, Semantics::DeltaCounter, unit),
        Op::Min | Op::Max => (value, Semantics::Quantity, unit),
        Op::First | Op::Last | Op::Nth { .. } | Op::List { .. } => {
            (value, Semantics::Default, unit)
        }
        Op::BitOr => (value, Semantics::Flags, Units::None),
        Op::Mean => (DataType::Float64, Semantics::Quantity, unit),
        // RFC 5610 has no unit for squares and rates.
        Op::Variance | Op::GapVariance | Op::Rate => {
            (DataType::Float64, Semantics::Quantity, Units::None)
        }
        Op::GapMean => (DataType::Float64, Semantics::Quantity, Units::Nanoseconds),
        Op::CommunityId => (DataType::String, Semantics::Identifier, Units::None),
        Op::GapMin | Op::GapMax | Op::Duration => (
            DataType::Unsigned64,
            Semantics::Quantity,
            Units::Nanoseconds,
        ),
    }
}

fn value_type(input: Input) -> DataType {
    match input.column_kind() {
        ColumnKind::TimestampNs => DataType::DateTimeNanoseconds,
        ColumnKind::Mac => DataType::MacAddress,
        ColumnKind::Text => DataType::String,
        _ => match input.bits() {
            0..=8 => DataType::Unsigned8,
            9..=16 => DataType::Unsigned16,
            17..=32 => DataType::Unsigned32,
            _ => DataType::Unsigned64,
        },
    }
}

/// A one-line description of the element, for people.
fn describe(feature: &Feature) -> String {
    let op = Op::describe(feature.op.name()).unwrap_or_default();
    let mut words = op.split(';').next().unwrap_or_default().to_owned();
    match &feature.op {
        Op::Histogram { edges } => words += &format!(", {edges:?}"),
        Op::List { k } | Op::Nth { k } => words += &format!(", k = {k}"),
        _ => {}
    }
    match feature.of {
        Some(input) => format!("{words}; of {}: {}", input.name(), input.describe()),
        None => words,
    }
}
