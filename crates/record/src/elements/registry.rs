// SPDX-License-Identifier: Apache-2.0
//! The types and elements that describe inputs in IANA's registry. They depend neither on inputs
//! nor on definitions, so the table of inputs can use them.

use DataType::{DateTimeMicroseconds, DateTimeMilliseconds, DateTimeNanoseconds, Unsigned16};
use Semantics::{Default, Flags};

/// The type of an element's values, numbered as in RFC 5610, section 3.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum DataType {
    /// Octets whose meaning depends on the element.
    OctetArray = 0,
    /// 8-bit unsigned number.
    Unsigned8 = 1,
    /// 16-bit unsigned number.
    Unsigned16 = 2,
    /// 32-bit unsigned number.
    Unsigned32 = 3,
    /// 64-bit unsigned number.
    Unsigned64 = 4,
    /// IEEE 754 double.
    Float64 = 10,
    /// IEEE 802 address.
    MacAddress = 12,
    /// UTF-8.
    String = 13,
    /// Milliseconds since 1970.
    DateTimeMilliseconds = 15,
    /// NTP timestamp (seconds since 1900 and a fraction), precise to the microsecond.
    DateTimeMicroseconds = 16,
    /// NTP timestamp, precise to the nanosecond.
    DateTimeNanoseconds = 17,
    /// IPv4 address.
    Ipv4Address = 18,
    /// IPv6 address.
    Ipv6Address = 19,
}

impl DataType {
    /// Octets of a value; 0 for types whose values have a variable length.
    #[must_use]
    pub const fn bytes(self) -> u8 {
        match self {
            Self::String => 0,
            Self::OctetArray => APPLICATION_ID_BYTES,
            Self::Unsigned8 => 1,
            Self::Unsigned16 => 2,
            Self::Unsigned32 | Self::Ipv4Address => 4,
            Self::MacAddress => 6,
            Self::Unsigned64 | Self::Float64 => 8,
            Self::DateTimeMilliseconds | Self::DateTimeMicroseconds | Self::DateTimeNanoseconds => {
                8
            }
            Self::Ipv6Address => 16,
        }
    }
}

/// Octets of an applicationId, which is the only element of type octetArray: a classification
/// engine, the enterprise that numbers its applications, and a selector of 32 bits (RFC 6759,
/// section 4.1).
const APPLICATION_ID_BYTES: u8 = 1 + 4 + 4;

/// The semantics of values, numbered as in RFC 5610, section 3.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Semantics {
    /// Unspecified.
    Default = 0,
    /// An amount at an instant, or a statistic of amounts.
    Quantity = 1,
    /// A count over this record only.
    DeltaCounter = 3,
    /// An identifier.
    Identifier = 4,
    /// A set of bits.
    Flags = 5,
}

/// The unit of values, numbered as in IANA's registry "IPFIX Information Element Units" (started by
/// RFC 5610, section 3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Units {
    /// No unit, or one that depends on the engine.
    None = 0,
    /// Octets.
    Octets = 2,
    /// Packets.
    Packets = 3,
    /// Nanoseconds.
    Nanoseconds = 8,
    /// Hops.
    Hops = 11,
}

/// Which IANA elements carry a flow's start and end times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeUnit {
    /// flowStartMilliseconds and flowEndMilliseconds (152, 153). Every collector supports them.
    #[default]
    Milliseconds,
    /// flowStartMicroseconds and flowEndMicroseconds (154, 155).
    Microseconds,
    /// flowStartNanoseconds and flowEndNanoseconds (156, 157).
    Nanoseconds,
}

/// An element: number, name, type, semantics, units.
pub(crate) type Entry = (u16, &'static str, DataType, Semantics, Units);

/// What a column holds of an input, for the cases that have elements in IANA's registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnOf {
    /// The value of the flow's first packet or, in a key, of all its packets.
    Value,
    /// The value, in a key only.
    Key,
    /// The sum of the values.
    Sum,
    /// The smallest value.
    Min,
    /// The largest value.
    Max,
    /// The OR of the values.
    BitOr,
}

/// The IANA element or elements of a column.
pub(crate) enum Registered {
    /// One element.
    One(Entry),
    /// A 64-bit element sent in 4 octets, because our lengths have 32 bits.
    Reduced(Entry),
    /// One element for IPv4 and one for IPv6; none for records without a family.
    ByFamily(Entry, Entry),
    /// One element per [`TimeUnit`]: milliseconds, microseconds, nanoseconds.
    ByTime([Entry; 3]),
}

/// Start time of a flow.
pub(crate) const FLOW_START: [Entry; 3] = [
    (
        152,
        "flowStartMilliseconds",
        DateTimeMilliseconds,
        Default,
        Units::None,
    ),
    (
        154,
        "flowStartMicroseconds",
        DateTimeMicroseconds,
        Default,
        Units::None,
    ),
    (
        156,
        "flowStartNanoseconds",
        DateTimeNanoseconds,
        Default,
        Units::None,
    ),
];
/// End time of a flow.
pub(crate) const FLOW_END: [Entry; 3] = [
    (
        153,
        "flowEndMilliseconds",
        DateTimeMilliseconds,
        Default,
        Units::None,
    ),
    (
        155,
        "flowEndMicroseconds",
        DateTimeMicroseconds,
        Default,
        Units::None,
    ),
    (
        157,
        "flowEndNanoseconds",
        DateTimeNanoseconds,
        Default,
        Units::None,
    ),
];
/// The TCP flags of a flow.
pub(crate) const TCP_CONTROL_BITS: Entry = (6, "tcpControlBits", Unsigned16, Flags, Units::None);
