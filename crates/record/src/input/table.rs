// SPDX-License-Identifier: Apache-2.0
//! The table of inputs, one row each. Names and descriptions, key fields, columns, information
//! elements and the numbers in the BPF program are derived from these rows. Values are filled in
//! where an input is seen, and declared there: those of frames in `crates/packet/src/inputs.rs`.
//! `CONTRIBUTING.md` lists everything that a new input needs.
//!
//! The position of a row is the input's number, which information elements and the BPF program use.
//! Add new inputs at the end.

use super::Meaning;
use crate::ColumnKind;
use crate::elements::registry::ColumnOf::{BitOr, Key, Max, Min, Sum, Value};
use crate::elements::registry::DataType::{
    MacAddress, OctetArray, String, Unsigned8, Unsigned16, Unsigned32, Unsigned64,
};
use crate::elements::registry::Registered::{ByFamily, ByTime, One, Reduced};
use crate::elements::registry::Semantics::{Default, DeltaCounter, Flags, Identifier, Quantity};
use crate::elements::registry::{
    ColumnOf, FLOW_END, FLOW_START, Registered, TCP_CONTROL_BITS, Units,
};

/// The properties of an input.
pub(super) struct Row {
    /// Its name in definitions and columns.
    pub(super) name: &'static str,
    /// A one-line description of at most 64 bytes.
    pub(super) description: &'static str,
    /// Number of bits of the largest value. It sets the width of columns, elements and key fields.
    pub(super) bits: u8,
    /// The meaning of its values.
    pub(super) meaning: Meaning,
    /// The type of its column, if the column is not a plain number.
    pub(super) column: Option<ColumnKind>,
    /// The unit of its values.
    pub(super) units: Units,
    /// Whether every packet has it.
    pub(super) is_always_present: bool,
    /// Whether it is computed from the sequence of a record's packets instead of parsed.
    pub(super) is_derived: bool,
    /// Its position in the list of inputs that a key may contain. A new one takes the next number.
    /// `None` if the input changes from packet to packet.
    pub(super) key_place: Option<u8>,
    /// The IANA elements of its columns. A column without one gets an enterprise-specific element,
    /// numbered by op and input.
    pub(super) elements: &'static [(ColumnOf, Registered)],
}

impl Row {
    /// Values of the fields that a row omits.
    const DEFAULT: Self = Self {
        name: "",
        description: "",
        bits: 0,
        meaning: Meaning::Label,
        column: None,
        units: Units::None,
        is_always_present: false,
        is_derived: false,
        key_place: None,
        elements: &[],
    };
}

macro_rules! inputs {
    ($($input:ident {
        name: $name:literal,
        description: $description:literal,
        $($field:ident: $value:expr,)*
    })*) => {
        /// A property of a packet that a definition can name in `of = "..."`.
        ///
        /// Each is a number of at most 64 bits. It is *absent* in packets that do not carry it, as
        /// a TCP window in a UDP packet. Ops skip absent values and never count them as zero.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Input {
            $(#[doc = $description] $input,)*
        }

        impl Input {
            /// Every input, in numeric order.
            pub const ALL: [Self; ROWS.len()] = [$(Self::$input,)*];
        }

        /// All rows, indexed by input number.
        pub(super) const ROWS: &[Row] = &[$(Row {
            name: $name,
            description: $description,
            $($field: $value,)*
            ..Row::DEFAULT
        },)*];
    };
}

inputs! {
    IpLength {
        name: "ip_length",
        description: "IPv4 total length, or 40 + IPv6 payload length, in bytes",
        bits: 32,
        meaning: Meaning::Amount,
        units: Units::Octets,
        is_always_present: true,
        elements: &[
            (Sum, One((1, "octetDeltaCount", Unsigned64, DeltaCounter, Units::Octets))),
            (Min, Reduced((25, "minimumIpTotalLength", Unsigned64, Quantity, Units::Octets))),
            (Max, Reduced((26, "maximumIpTotalLength", Unsigned64, Quantity, Units::Octets))),
        ],
    }
    FrameLength {
        name: "frame_length",
        description: "length of the frame on the wire, in bytes",
        bits: 32,
        meaning: Meaning::Amount,
        units: Units::Octets,
        is_always_present: true,
        elements: &[
            (Sum, One((352, "layer2OctetDeltaCount", Unsigned64, DeltaCounter, Units::Octets))),
            (Min, Reduced((422, "minimumLayer2TotalLength", Unsigned64, Quantity, Units::Octets))),
            (Max, Reduced((423, "maximumLayer2TotalLength", Unsigned64, Quantity, Units::Octets))),
        ],
    }
    Timestamp {
        name: "timestamp",
        description: "when the packet was captured, ns since 1970",
        bits: 64,
        meaning: Meaning::Time,
        column: Some(ColumnKind::TimestampNs),
        is_always_present: true,
        elements: &[
            (Min, ByTime(FLOW_START)),
            (Max, ByTime(FLOW_END)),
        ],
    }
    TcpFlags {
        name: "tcp_flags",
        description: "the 12 TCP flag bits; TCP only",
        bits: 12,
        key_place: Some(17),
        elements: &[
            (Key, One(TCP_CONTROL_BITS)),
            (BitOr, One(TCP_CONTROL_BITS)),
        ],
    }
    TcpWindow {
        name: "tcp_window",
        description: "TCP window as sent, not scaled; TCP only",
        bits: 16,
        meaning: Meaning::Amount,
        units: Units::Octets,
        elements: &[(Value, One((186, "tcpWindowSize", Unsigned16, Default, Units::None)))],
    }
    TcpSequence {
        name: "tcp_sequence",
        description: "TCP sequence number; TCP only",
        bits: 32,
        elements: &[(Value, One((184, "tcpSequenceNumber", Unsigned32, Default, Units::None)))],
    }
    TcpAcknowledgement {
        name: "tcp_acknowledgement",
        description: "TCP acknowledgement number; TCP with ACK only",
        bits: 32,
        elements: &[(Value, One((185, "tcpAcknowledgementNumber", Unsigned32, Default, Units::None)))],
    }
    TcpOptions {
        name: "tcp_options",
        description: "TCP options as a bit set: bit `kind`, kinds 0 to 63; TCP only",
        bits: 64,
        elements: &[(BitOr, One((209, "tcpOptions", Unsigned64, Flags, Units::None)))],
    }
    Ttl {
        name: "ttl",
        description: "IPv4 time to live or IPv6 hop limit",
        bits: 8,
        meaning: Meaning::Amount,
        units: Units::Hops,
        is_always_present: true,
        key_place: Some(16),
        elements: &[
            (Value, One((192, "ipTTL", Unsigned8, Default, Units::Hops))),
            (Min, One((52, "minimumTTL", Unsigned8, Quantity, Units::Hops))),
            (Max, One((53, "maximumTTL", Unsigned8, Quantity, Units::Hops))),
        ],
    }
    Tos {
        name: "tos",
        description: "IPv4 type of service or IPv6 traffic class, all 8 bits",
        bits: 8,
        is_always_present: true,
        key_place: Some(0),
        elements: &[(Value, One((5, "ipClassOfService", Unsigned8, Identifier, Units::None)))],
    }
    FlowLabel {
        name: "flow_label",
        description: "IPv6 flow label; IPv6 only",
        bits: 20,
        key_place: Some(1),
        elements: &[(Value, One((31, "flowLabelIPv6", Unsigned32, Identifier, Units::None)))],
    }
    Identification {
        name: "identification",
        description: "IPv4 identification, or that of an IPv6 fragment header",
        bits: 32,
        elements: &[(Value, One((54, "fragmentIdentification", Unsigned32, Default, Units::None)))],
    }
    FragmentOffset {
        name: "fragment_offset",
        description: "offset of a fragment, in bytes; fragments only",
        bits: 16,
        meaning: Meaning::Amount,
        units: Units::Octets,
    }
    IpOptions {
        name: "ip_options",
        description: "IPv4 options as a bit set: bit (option number); IPv4 only",
        bits: 32,
        elements: &[(BitOr, One((208, "ipv4Options", Unsigned32, Flags, Units::None)))],
    }
    PayloadLength {
        name: "payload_length",
        description: "bytes after the transport header inside the IP length",
        bits: 32,
        meaning: Meaning::Amount,
        units: Units::Octets,
        elements: &[(Sum, One((401, "transportOctetDeltaCount", Unsigned64, DeltaCounter, Units::Octets)))],
    }
    IcmpType {
        name: "icmp_type",
        description: "ICMP or ICMPv6 type; ICMP only",
        bits: 8,
        key_place: Some(2),
        elements: &[(Value, ByFamily(
            (176, "icmpTypeIPv4", Unsigned8, Identifier, Units::None),
            (178, "icmpTypeIPv6", Unsigned8, Identifier, Units::None),
        ))],
    }
    IcmpCode {
        name: "icmp_code",
        description: "ICMP or ICMPv6 code; ICMP only",
        bits: 8,
        key_place: Some(3),
        elements: &[(Value, ByFamily(
            (177, "icmpCodeIPv4", Unsigned8, Identifier, Units::None),
            (179, "icmpCodeIPv6", Unsigned8, Identifier, Units::None),
        ))],
    }
    Vlan {
        name: "vlan",
        description: "VLAN id of the outermost tag; tagged frames only",
        bits: 12,
        key_place: Some(4),
        elements: &[(Value, One((58, "vlanId", Unsigned16, Identifier, Units::None)))],
    }
    InnerVlan {
        name: "inner_vlan",
        description: "VLAN id of the second tag; double-tagged frames only",
        bits: 12,
        key_place: Some(5),
        elements: &[(Value, One((245, "dot1qCustomerVlanId", Unsigned16, Identifier, Units::None)))],
    }
    VlanPriority {
        name: "vlan_priority",
        description: "priority bits (PCP) of the outermost tag",
        bits: 3,
        key_place: Some(6),
        elements: &[(Value, One((244, "dot1qPriority", Unsigned8, Identifier, Units::None)))],
    }
    MplsLabel {
        name: "mpls_label",
        description: "topmost MPLS label; labelled frames only",
        bits: 20,
        key_place: Some(7),
    }
    SourceMac {
        name: "source_mac",
        description: "source MAC address; Ethernet only",
        bits: 48,
        column: Some(ColumnKind::Mac),
        key_place: Some(8),
        elements: &[(Value, One((56, "sourceMacAddress", MacAddress, Default, Units::None)))],
    }
    DestinationMac {
        name: "destination_mac",
        description: "destination MAC address; Ethernet only",
        bits: 48,
        column: Some(ColumnKind::Mac),
        key_place: Some(9),
        elements: &[(Value, One((80, "destinationMacAddress", MacAddress, Default, Units::None)))],
    }
    EtherType {
        name: "ether_type",
        description: "Ethernet type that announced the IP header",
        bits: 16,
        key_place: Some(10),
        elements: &[(Value, One((256, "ethernetType", Unsigned16, Identifier, Units::None)))],
    }
    Vni {
        name: "vni",
        description: "VXLAN or GENEVE network identifier, of tunnels that are entered",
        bits: 24,
        key_place: Some(11),
    }
    Teid {
        name: "teid",
        description: "GTP-U tunnel endpoint identifier, of tunnels that are entered",
        bits: 32,
        key_place: Some(12),
    }
    GreKey {
        name: "gre_key",
        description: "GRE key, of tunnels that are entered",
        bits: 32,
        key_place: Some(13),
        elements: &[(Value, One((296, "greKey", Unsigned32, Identifier, Units::None)))],
    }
    IngressInterface {
        name: "ingress_interface",
        description: "interface the packet came in by",
        bits: 32,
        key_place: Some(14),
        elements: &[(Value, One((10, "ingressInterface", Unsigned32, Identifier, Units::None)))],
    }
    EgressInterface {
        name: "egress_interface",
        description: "interface the packet leaves by",
        bits: 32,
        key_place: Some(15),
        elements: &[(Value, One((14, "egressInterface", Unsigned32, Identifier, Units::None)))],
    }
    QueueDepth {
        name: "queue_depth",
        description: "deepest queue met, in the unit of who reports it",
        bits: 32,
        meaning: Meaning::Amount,
    }
    HopLatency {
        name: "hop_latency",
        description: "time spent in the hop, or in all hops, in ns",
        bits: 64,
        meaning: Meaning::Amount,
        units: Units::Nanoseconds,
    }
    Direction {
        name: "direction",
        description: "0 from the initiator, 1 from the responder; biflow only",
        bits: 1,
        meaning: Meaning::Direction,
        is_always_present: true,
        is_derived: true,
    }
    Gap {
        name: "gap",
        description: "ns since the previous packet; absent for a record's first",
        bits: 64,
        meaning: Meaning::Amount,
        units: Units::Nanoseconds,
        is_derived: true,
    }
    ReceiveQueue {
        name: "receive_queue",
        description: "receive queue of the interface",
        bits: 16,
        key_place: Some(18),
    }
    HardwareTimestamp {
        name: "hardware_timestamp",
        description: "time of the card's own clock, if any",
        bits: 64,
        meaning: Meaning::Time,
        column: Some(ColumnKind::TimestampNs),
    }
    Application {
        name: "application",
        description: "application protocol and service, such as TLS.NetFlix",
        bits: 32,
        meaning: Meaning::Inspected,
        column: Some(ColumnKind::Text),
        elements: &[(Value, One((95, "applicationId", OctetArray, Default, Units::None)))],
    }
    ApplicationCategory {
        name: "application_category",
        description: "category of the application, such as Web",
        bits: 8,
        meaning: Meaning::Inspected,
        column: Some(ColumnKind::Text),
        elements: &[(Value, One((372, "applicationCategoryName", String, Default, Units::None)))],
    }
    ApplicationConfidence {
        name: "application_confidence",
        description: "what the application was recognised by",
        bits: 8,
        meaning: Meaning::Inspected,
        column: Some(ColumnKind::Text),
    }
    Risk {
        name: "risk",
        description: "risks that inspection found, separated by `; `",
        bits: 64,
        meaning: Meaning::Inspected,
        column: Some(ColumnKind::Text),
    }
    ServerName {
        name: "server_name",
        description: "server that the client asked for (TLS and QUIC: SNI)",
        bits: 64,
        meaning: Meaning::Inspected,
        column: Some(ColumnKind::Text),
    }
    Ja3 {
        name: "ja3",
        description: "JA3 fingerprint of the TLS client",
        bits: 64,
        meaning: Meaning::Inspected,
        column: Some(ColumnKind::Text),
    }
    Ja4 {
        name: "ja4",
        description: "JA4 fingerprint of the TLS client",
        bits: 64,
        meaning: Meaning::Inspected,
        column: Some(ColumnKind::Text),
    }
    DnsQueryName {
        name: "dns_query_name",
        description: "name that a DNS query asks for",
        bits: 64,
        meaning: Meaning::Inspected,
        column: Some(ColumnKind::Text),
    }
    HttpHost {
        name: "http_host",
        description: "host that an HTTP request names",
        bits: 64,
        meaning: Meaning::Inspected,
        column: Some(ColumnKind::Text),
        elements: &[(Value, One((460, "httpRequestHost", String, Default, Units::None)))],
    }
    Verdict {
        name: "verdict",
        description: "what a bridge did with the packet",
        bits: 8,
        meaning: Meaning::Decided,
        column: Some(ColumnKind::Text),
    }
    Rule {
        name: "rule",
        description: "rule by which a bridge did so",
        bits: 16,
        meaning: Meaning::Decided,
        column: Some(ColumnKind::Text),
    }
    PacketDropped {
        name: "packet_dropped",
        description: "1 if a bridge dropped the packet, 0 if not",
        bits: 1,
        meaning: Meaning::Amount,
        units: Units::Packets,
    }
    BytesDropped {
        name: "bytes_dropped",
        description: "IP length of a packet that a bridge dropped, else 0",
        bits: 32,
        meaning: Meaning::Amount,
        units: Units::Octets,
    }
    SamplingInterval {
        name: "sampling_interval",
        description: "one packet of so many was metered",
        bits: 32,
        meaning: Meaning::Amount,
        units: Units::Packets,
    }
    Path {
        name: "path",
        description: "nodes on the packet's path, as one number",
        bits: 64,
        key_place: Some(19),
    }
    HopCount {
        name: "hop_count",
        description: "nodes that reported on the packet's path",
        bits: 8,
        meaning: Meaning::Amount,
        units: Units::Hops,
    }
}
