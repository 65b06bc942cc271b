// SPDX-License-Identifier: Apache-2.0
//! Columns that mean what an element of IANA's registry means.
//!
//! Left out on purpose, since the element asks for more than a column knows: mplsTopLabelStackSection
//! (the traffic class and bottom bits), layer2SegmentId (which encapsulation), fragmentOffset (in
//! units of 8 octets), flowDurationMilliseconds (32 bits, and less exact than ours).

use super::{
    ColumnElement, DataType, END_REASON, Element, Semantics, TimeUnit, Units, reverse_name,
};
use crate::{Feature, Input, KeyField, Op};

/// basicList, the element of every list column (RFC 6313, section 4.5.1).
pub const BASIC_LIST: u16 = 291;

/// The enterprise number that stands for "IANA's element, in the other direction" (RFC 5103,
/// section 6.1).
pub const REVERSE_ENTERPRISE: u32 = 29305;

/// An element: number, name, type, semantics, units.
type Entry = (u16, &'static str, DataType, Semantics, Units);

use DataType::{
    DateTimeMicroseconds, DateTimeMilliseconds, DateTimeNanoseconds, Ipv4Address, Ipv6Address,
    MacAddress, Unsigned8, Unsigned16, Unsigned32, Unsigned64,
};
use Semantics::{Default, DeltaCounter, Flags, Identifier, Quantity};

/// The element of a field of the key; `has_family` where the record is of IPv4 or IPv6.
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
        KeyField::Input(Input::TcpFlags) => one(TCP_FLAGS),
        KeyField::Input(input) => of_value(input, has_family),
    }
}

/// The element of a feature in its own direction.
pub(super) fn of_feature(
    feature: &Feature,
    time: TimeUnit,
    has_family: bool,
) -> Option<ColumnElement> {
    let octets = Units::Octets;
    let entry: Entry = match (&feature.op, feature.of) {
        (Op::First, Some(input)) => return of_value(input, has_family),
        (Op::Count, None) => (
            2,
            "packetDeltaCount",
            Unsigned64,
            DeltaCounter,
            Units::Packets,
        ),
        (Op::Sum, Some(Input::IpLength)) => {
            (1, "octetDeltaCount", Unsigned64, DeltaCounter, octets)
        }
        (Op::Sum, Some(Input::FrameLength)) => (
            352,
            "layer2OctetDeltaCount",
            Unsigned64,
            DeltaCounter,
            octets,
        ),
        (Op::Sum, Some(Input::PayloadLength)) => (
            401,
            "transportOctetDeltaCount",
            Unsigned64,
            DeltaCounter,
            octets,
        ),
        (Op::BitOr, Some(Input::TcpFlags)) => TCP_FLAGS,
        (Op::BitOr, Some(Input::TcpOptions)) => (209, "tcpOptions", Unsigned64, Flags, Units::None),
        (Op::BitOr, Some(Input::IpOptions)) => (208, "ipv4Options", Unsigned32, Flags, Units::None),
        (Op::Min, Some(Input::IpLength)) => {
            return reduced((25, "minimumIpTotalLength", Unsigned64, Quantity, octets));
        }
        (Op::Max, Some(Input::IpLength)) => {
            return reduced((26, "maximumIpTotalLength", Unsigned64, Quantity, octets));
        }
        (Op::Min, Some(Input::FrameLength)) => {
            return reduced((
                422,
                "minimumLayer2TotalLength",
                Unsigned64,
                Quantity,
                octets,
            ));
        }
        (Op::Max, Some(Input::FrameLength)) => {
            return reduced((
                423,
                "maximumLayer2TotalLength",
                Unsigned64,
                Quantity,
                octets,
            ));
        }
        (Op::Min, Some(Input::Ttl)) => (52, "minimumTTL", Unsigned8, Quantity, Units::Hops),
        (Op::Max, Some(Input::Ttl)) => (53, "maximumTTL", Unsigned8, Quantity, Units::Hops),
        (Op::Min, Some(Input::Timestamp)) => start(time),
        (Op::Max, Some(Input::Timestamp)) => end(time),
        _ => return None,
    };
    Some(ColumnElement::of(element(entry)))
}

/// The element of why the record ended.
pub(super) fn end_reason() -> ColumnElement {
    let mut element = element((136, "flowEndReason", Unsigned8, Identifier, Units::None));
    element.description = format!("column `{END_REASON}`");
    ColumnElement::of(element)
}

/// The same elements for the other direction of a biflow.
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

const TCP_FLAGS: Entry = (6, "tcpControlBits", Unsigned16, Flags, Units::None);

/// The element of a packet's property, where the flow's (first) packet gives it.
fn of_value(input: Input, has_family: bool) -> Option<ColumnElement> {
    let none = Units::None;
    let entry: Entry = match input {
        Input::Tos => (5, "ipClassOfService", Unsigned8, Identifier, none),
        Input::Ttl => (192, "ipTTL", Unsigned8, Default, Units::Hops),
        Input::FlowLabel => (31, "flowLabelIPv6", Unsigned32, Identifier, none),
        Input::IcmpType if has_family => {
            return Some(pair(
                (176, "icmpTypeIPv4", Unsigned8, Identifier, none),
                (178, "icmpTypeIPv6", Unsigned8, Identifier, none),
            ));
        }
        Input::IcmpCode if has_family => {
            return Some(pair(
                (177, "icmpCodeIPv4", Unsigned8, Identifier, none),
                (179, "icmpCodeIPv6", Unsigned8, Identifier, none),
            ));
        }
        Input::Vlan => (58, "vlanId", Unsigned16, Identifier, none),
        Input::InnerVlan => (245, "dot1qCustomerVlanId", Unsigned16, Identifier, none),
        Input::VlanPriority => (244, "dot1qPriority", Unsigned8, Identifier, none),
        Input::SourceMac => (56, "sourceMacAddress", MacAddress, Default, none),
        Input::DestinationMac => (80, "destinationMacAddress", MacAddress, Default, none),
        Input::EtherType => (256, "ethernetType", Unsigned16, Identifier, none),
        Input::GreKey => (296, "greKey", Unsigned32, Identifier, none),
        Input::IngressInterface => (10, "ingressInterface", Unsigned32, Identifier, none),
        Input::EgressInterface => (14, "egressInterface", Unsigned32, Identifier, none),
        Input::Identification => (54, "fragmentIdentification", Unsigned32, Default, none),
        Input::TcpSequence => (184, "tcpSequenceNumber", Unsigned32, Default, none),
        Input::TcpAcknowledgement => (185, "tcpAcknowledgementNumber", Unsigned32, Default, none),
        Input::TcpWindow => (186, "tcpWindowSize", Unsigned16, Default, none),
        _ => return None,
    };
    Some(ColumnElement::of(element(entry)))
}

const fn start(time: TimeUnit) -> Entry {
    let none = Units::None;
    match time {
        TimeUnit::Milliseconds => (
            152,
            "flowStartMilliseconds",
            DateTimeMilliseconds,
            Default,
            none,
        ),
        TimeUnit::Microseconds => (
            154,
            "flowStartMicroseconds",
            DateTimeMicroseconds,
            Default,
            none,
        ),
        TimeUnit::Nanoseconds => (
            156,
            "flowStartNanoseconds",
            DateTimeNanoseconds,
            Default,
            none,
        ),
    }
}

const fn end(time: TimeUnit) -> Entry {
    let none = Units::None;
    match time {
        TimeUnit::Milliseconds => (
            153,
            "flowEndMilliseconds",
            DateTimeMilliseconds,
            Default,
            none,
        ),
        TimeUnit::Microseconds => (
            155,
            "flowEndMicroseconds",
            DateTimeMicroseconds,
            Default,
            none,
        ),
        TimeUnit::Nanoseconds => (
            157,
            "flowEndNanoseconds",
            DateTimeNanoseconds,
            Default,
            none,
        ),
    }
}

fn pair(v4: Entry, v6: Entry) -> ColumnElement {
    ColumnElement {
        v4: element(v4),
        v6: element(v6),
        is_list: false,
    }
}

/// A 64-bit element in 4 octets: our lengths have 32 bits.
fn reduced(entry: Entry) -> Option<ColumnElement> {
    let element = Element {
        bytes: 4,
        ..element(entry)
    };
    Some(ColumnElement::of(element))
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

impl DataType {
    /// Octets of a value.
    #[must_use]
    pub const fn bytes(self) -> u8 {
        match self {
            Unsigned8 => 1,
            Unsigned16 => 2,
            Unsigned32 | Ipv4Address => 4,
            MacAddress => 6,
            Unsigned64 | Self::Float64 => 8,
            DateTimeMilliseconds | DateTimeMicroseconds | DateTimeNanoseconds => 8,
            Ipv6Address => 16,
        }
    }
}
