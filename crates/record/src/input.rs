// SPDX-License-Identifier: Apache-2.0
//! What a definition can ask of a packet beyond the 5-tuple.

/// One measurable property of a packet, as named in a definition's `of = "..."`.
///
/// Each is a number of at most 64 bits. A packet that does not carry one (a TCP window in a UDP
/// packet) has it *absent*: ops skip absent values, they never count them as zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Input {
    /// IPv4 total length, or 40 + IPv6 payload length, in bytes, as the header declares.
    IpLength,
    /// Length of the frame on the wire, in bytes.
    FrameLength,
    /// Nanoseconds since 1970.
    Timestamp,
    /// The 12-bit TCP flags field.
    TcpFlags,
    /// The TCP window as sent (not scaled).
    TcpWindow,
    /// TCP sequence number.
    TcpSequence,
    /// TCP acknowledgement number; absent without ACK.
    TcpAcknowledgement,
    /// TCP options as a bit set: bit `kind` for kinds 0 to 63 (IE 209's order).
    TcpOptions,
    /// IPv4 time to live or IPv6 hop limit.
    Ttl,
    /// IPv4 type of service or IPv6 traffic class.
    Tos,
    /// IPv6 flow label; absent in IPv4.
    FlowLabel,
    /// IPv4 identification, or that of an IPv6 fragment header; absent without.
    Identification,
    /// Fragment offset in bytes; absent where the packet is no fragment.
    FragmentOffset,
    /// IPv4 options as a bit set: bit (option number, low 5 bits); absent in IPv6.
    IpOptions,
    /// Bytes after the transport header inside the IP length.
    PayloadLength,
    /// ICMP or ICMPv6 type.
    IcmpType,
    /// ICMP or ICMPv6 code.
    IcmpCode,
    /// VLAN id of the outermost 802.1Q/802.1ad tag.
    Vlan,
    /// VLAN id of the second tag.
    InnerVlan,
    /// Priority bits (PCP) of the outermost tag.
    VlanPriority,
    /// Topmost MPLS label.
    MplsLabel,
    /// Source MAC address as a 48-bit number.
    SourceMac,
    /// Destination MAC address as a 48-bit number.
    DestinationMac,
    /// Ethernet type that announced the IP header.
    EtherType,
    /// VXLAN or GENEVE network identifier of the innermost such tunnel entered.
    Vni,
    /// GTP-U tunnel endpoint identifier of the tunnel entered.
    Teid,
    /// GRE key of the tunnel entered.
    GreKey,
    /// Interface the packet came in by: index in the capture file, or the system's.
    IngressInterface,
    /// Interface the packet leaves by (switch engines).
    EgressInterface,
    /// Queue depth met, in the unit of the engine (switch engines).
    QueueDepth,
    /// Time spent in the hop, in nanoseconds (switch engines).
    HopLatency,
    /// 0 where the packet runs from the key's first endpoint to its second, 1 in reverse; only in
    /// biflow records.
    Direction,
    /// Nanoseconds since the flow's previous packet; 0 where the clock ran backwards. Absent for
    /// the first packet of a record.
    Gap,
    /// Receive queue of the interface that the packet came in by (the engine in the kernel).
    ReceiveQueue,
    /// When the interface's own clock saw the packet, ns of that clock (the engine in the kernel, on one interface, where its
    /// driver knows).
    HardwareTimestamp,
}

impl Input {
    /// How many inputs there are.
    pub const COUNT: usize = Self::ALL.len();

    /// Every input, in the order of their numbers.
    pub const ALL: [Self; 35] = [
        Self::IpLength,
        Self::FrameLength,
        Self::Timestamp,
        Self::TcpFlags,
        Self::TcpWindow,
        Self::TcpSequence,
        Self::TcpAcknowledgement,
        Self::TcpOptions,
        Self::Ttl,
        Self::Tos,
        Self::FlowLabel,
        Self::Identification,
        Self::FragmentOffset,
        Self::IpOptions,
        Self::PayloadLength,
        Self::IcmpType,
        Self::IcmpCode,
        Self::Vlan,
        Self::InnerVlan,
        Self::VlanPriority,
        Self::MplsLabel,
        Self::SourceMac,
        Self::DestinationMac,
        Self::EtherType,
        Self::Vni,
        Self::Teid,
        Self::GreKey,
        Self::IngressInterface,
        Self::EgressInterface,
        Self::QueueDepth,
        Self::HopLatency,
        Self::Direction,
        Self::Gap,
        Self::ReceiveQueue,
        Self::HardwareTimestamp,
    ];

    /// The name used in definitions and column names.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::IpLength => "ip_length",
            Self::FrameLength => "frame_length",
            Self::Timestamp => "timestamp",
            Self::TcpFlags => "tcp_flags",
            Self::TcpWindow => "tcp_window",
            Self::TcpSequence => "tcp_sequence",
            Self::TcpAcknowledgement => "tcp_acknowledgement",
            Self::TcpOptions => "tcp_options",
            Self::Ttl => "ttl",
            Self::Tos => "tos",
            Self::FlowLabel => "flow_label",
            Self::Identification => "identification",
            Self::FragmentOffset => "fragment_offset",
            Self::IpOptions => "ip_options",
            Self::PayloadLength => "payload_length",
            Self::IcmpType => "icmp_type",
            Self::IcmpCode => "icmp_code",
            Self::Vlan => "vlan",
            Self::InnerVlan => "inner_vlan",
            Self::VlanPriority => "vlan_priority",
            Self::MplsLabel => "mpls_label",
            Self::SourceMac => "source_mac",
            Self::DestinationMac => "destination_mac",
            Self::EtherType => "ether_type",
            Self::Vni => "vni",
            Self::Teid => "teid",
            Self::GreKey => "gre_key",
            Self::IngressInterface => "ingress_interface",
            Self::EgressInterface => "egress_interface",
            Self::QueueDepth => "queue_depth",
            Self::HopLatency => "hop_latency",
            Self::Direction => "direction",
            Self::Gap => "gap",
            Self::ReceiveQueue => "receive_queue",
            Self::HardwareTimestamp => "hardware_timestamp",
        }
    }

    /// The input of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|input| input.name() == name)
    }
}

/// A set of [`Input`]s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InputSet(u64);

impl InputSet {
    /// No input.
    pub const EMPTY: Self = Self(0);

    /// The inputs a frame in a capture file can give.
    #[must_use]
    pub fn of_capture_files() -> Self {
        let unseen = [
            Input::EgressInterface,
            Input::QueueDepth,
            Input::HopLatency,
            Input::ReceiveQueue,
            Input::HardwareTimestamp,
        ];
        Input::ALL
            .into_iter()
            .filter(|input| !unseen.contains(input))
            .collect()
    }

    /// The inputs that the engine in the Linux kernel sees (`engines/xdp`): those of frames, and where they came in.
    #[must_use]
    pub fn of_kernel_engine() -> Self {
        Self::of_capture_files()
            .with(Input::ReceiveQueue)
            .with(Input::HardwareTimestamp)
    }

    /// This set and `input`.
    #[must_use]
    pub const fn with(self, input: Input) -> Self {
        Self(self.0 | 1 << input as u8)
    }

    /// Everything in either set.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether `input` is in the set.
    #[inline(always)]
    #[must_use]
    pub const fn contains(self, input: Input) -> bool {
        self.0 >> input as u8 & 1 == 1
    }

    /// Whether nothing is in the set.
    #[inline(always)]
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// One bit for each member, by its number.
    #[inline(always)]
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The members, in order.
    pub fn iter(self) -> impl Iterator<Item = Input> {
        Input::ALL
            .into_iter()
            .filter(move |&input| self.contains(input))
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
    fn names_are_unique_and_read_back() {
        for (index, input) in Input::ALL.into_iter().enumerate() {
            assert_eq!(input as usize, index);
            assert_eq!(Input::from_name(input.name()), Some(input));
        }
        assert_eq!(Input::from_name("nope"), None);
    }

    #[test]
    fn sets_hold_what_was_put_in() {
        let set = InputSet::EMPTY.with(Input::Ttl).with(Input::Gap);
        assert_eq!(set.iter().collect::<Vec<_>>(), [Input::Ttl, Input::Gap]);
        assert!(!set.contains(Input::Vlan));
        assert!(!InputSet::of_capture_files().contains(Input::QueueDepth));
    }
}
