// SPDX-License-Identifier: Apache-2.0
//! Columns that have an element in the IANA registry.
//!
//! Some elements are not used because they contain more than a column, or hold less:
//! mplsTopLabelStackSection (includes traffic class and bottom bit), layer2SegmentId (includes the
//! encapsulation), fragmentOffset (in units of 8 octets), flowDurationMilliseconds (32 bits, and
//! coarser than our durations).

use super::registry::{ColumnOf, DataType, Entry, Registered, Semantics, TimeUnit, Units};
use super::{ColumnElement, END_REASON, Element, reverse_name};
use crate::{Feature, Input, KeyField, Op};
use DataType::{Ipv4Address, Ipv6Address, Unsigned8, Unsigned16, Unsigned64};
use Semantics::{Default, DeltaCounter, Identifier};

/// basicList, the element of every list column (RFC 6313, section 4.5.1).
pub const BASIC_LIST: u16 = 291;

/// The enterprise number that marks an IANA element as reversed (RFC 5103, section 6.1).
pub const REVERSE_ENTERPRISE: u32 = 29305;

/// The element of a key field. `has_family` tells whether each record is either of IPv4 or of IPv6.
pub(super) fn of_key(field: KeyField, has_family: bool) -> Option<ColumnElement> {
    let one = |entry| Some(ColumnElement::of(element(entry)));
    let none = Units::None;
    match field {
        KeyField::SourceAddress => Some(pair(
            (8, "sourceIPv4Address", Ipv4Address, Default, none),
            (27, "sourceIPv6Address", Ipv6Address, Default, none),
        )),
        KeyField::DestinationAddress => Some(pair(
            (12, "destinationIPv4Address", Ipv4Address, Default, none),
            (28, "destinationIPv6Address", Ipv6Address, Default, none),
        )),
        KeyField::SourcePort => one((7, "sourceTransportPort", Unsigned16, Identifier, none)),
        KeyField::DestinationPort => {
            one((11, "destinationTransportPort", Unsigned16, Identifier, none))
        }
        KeyField::Protocol => one((4, "protocolIdentifier", Unsigned8, Identifier, none)),
        KeyField::OuterSourceAddress | KeyField::OuterDestinationAddress => None,
        KeyField::Input(input) => {
            let found = input.registered(ColumnOf::Key);
            let found = found.or_else(|| input.registered(ColumnOf::Value));
            // No key field is a time, so the unit does not matter.
            found?.column(TimeUnit::default(), has_family)
        }
    }
}

/// The element of a feature in the forward direction.
pub(super) fn of_feature(
    feature: &Feature,
    time: TimeUnit,
    has_family: bool,
) -> Option<ColumnElement> {
    let column = match feature.op {
        Op::Count if feature.of.is_none() => {
            let (counter, packets) = (DeltaCounter, Units::Packets);
            let entry = (2, "packetDeltaCount", Unsigned64, counter, packets);
            return Some(ColumnElement::of(element(entry)));
        }
        Op::First => ColumnOf::Value,
        // A flow has one application, no matter which microflow record holds it.
        Op::Last if feature.of.is_some_and(Input::is_inspected) => ColumnOf::Value,
        Op::Sum => ColumnOf::Sum,
        Op::Min => ColumnOf::Min,
        Op::Max => ColumnOf::Max,
        Op::BitOr => ColumnOf::BitOr,
        _ => return None,
    };
    feature.of?.registered(column)?.column(time, has_family)
}

impl Registered {
    fn column(&self, time: TimeUnit, has_family: bool) -> Option<ColumnElement> {
        let one = |element| Some(ColumnElement::of(element));
        match *self {
            Self::One(entry) => one(element(entry)),
            Self::Reduced(entry) => one(Element {
                bytes: 4,
                ..element(entry)
            }),
            Self::ByFamily(v4, v6) => has_family.then(|| pair(v4, v6)),
            Self::ByTime(entries) => one(element(match time {
                TimeUnit::Milliseconds => entries[0],
                TimeUnit::Microseconds => entries[1],
                TimeUnit::Nanoseconds => entries[2],
            })),
        }
    }
}

/// The element of the end reason.
pub(super) fn end_reason() -> ColumnElement {
    let mut element = element((136, "flowEndReason", Unsigned8, Identifier, Units::None));
    element.description = format!("column `{END_REASON}`");
    ColumnElement::of(element)
}

/// The elements of a column for the reverse direction of a biflow.
pub(super) fn reversed(column: ColumnElement) -> ColumnElement {
    let reverse = |element: Element| Element {
        enterprise: Some(REVERSE_ENTERPRISE),
        name: reverse_name(&element.name),
        ..element
    };
    ColumnElement {
        v4: reverse(column.v4),
        v6: reverse(column.v6),
        is_list: column.is_list,
    }
}

fn pair(v4: Entry, v6: Entry) -> ColumnElement {
    ColumnElement {
        v4: element(v4),
        v6: element(v6),
        is_list: false,
    }
}

fn element((id, name, data_type, semantics, units): Entry) -> Element {
    Element {
        id,
        enterprise: None,
        name: name.to_owned(),
        data_type,
        semantics,
        units,
        description: String::new(),
        bytes: data_type.bytes(),
    }
}
