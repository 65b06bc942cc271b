// SPDX-License-Identifier: Apache-2.0
//! What is known of each op, input and key field: widths, one-line descriptions, what goes with
//! what. `turboflow definition --list` prints it.

use crate::{ColumnKind, Input, InputSet, KeyField, Op};

/// What an input's values mean, which decides the ops that make sense of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// An amount: it can be added and averaged.
    Amount,
    /// A number that names something, or a set of bits: adding it up means nothing.
    Label,
    /// A point in time.
    Time,
    /// The direction of a packet in a biflow.
    Direction,
}

impl Input {
    /// How many bits its values have at most.
    #[must_use]
    pub const fn bits(self) -> u8 {
        match self {
            Self::Ttl | Self::Tos | Self::IcmpType | Self::IcmpCode | Self::VlanPriority => 8,
            Self::Direction => 8,
            Self::TcpFlags | Self::TcpWindow | Self::FragmentOffset => 16,
            Self::Vlan | Self::InnerVlan | Self::EtherType | Self::ReceiveQueue => 16,
            Self::SourceMac | Self::DestinationMac => 48,
            Self::Timestamp | Self::HardwareTimestamp => 64,
            Self::TcpOptions | Self::HopLatency | Self::Gap => 64,
            _ => 32,
        }
    }

    /// What its values are in a column.
    #[must_use]
    pub const fn column_kind(self) -> ColumnKind {
        match self {
            Self::Timestamp | Self::HardwareTimestamp => ColumnKind::TimestampNs,
            Self::SourceMac | Self::DestinationMac => ColumnKind::Mac,
            _ => ColumnKind::Unsigned { bits: self.bits() },
        }
    }

    /// Whether every packet has it.
    #[must_use]
    pub const fn is_always_present(self) -> bool {
        matches!(
            self,
            Self::IpLength
                | Self::FrameLength
                | Self::Timestamp
                | Self::Ttl
                | Self::Tos
                | Self::Direction
        )
    }

    pub(crate) const fn meaning(self) -> Meaning {
        match self {
            Self::Timestamp | Self::HardwareTimestamp => Meaning::Time,
            Self::Direction => Meaning::Direction,
            Self::IpLength
            | Self::FrameLength
            | Self::TcpWindow
            | Self::Ttl
            | Self::FragmentOffset
            | Self::PayloadLength
            | Self::QueueDepth
            | Self::HopLatency
            | Self::Gap => Meaning::Amount,
            _ => Meaning::Label,
        }
    }

    /// What it is, in one line.
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            Self::IpLength => "IPv4 total length, or 40 + IPv6 payload length, in bytes",
            Self::FrameLength => "length of the frame on the wire, in bytes",
            Self::Timestamp => "when the packet was captured, ns since 1970",
            Self::TcpFlags => "the 12 TCP flag bits; TCP only",
            Self::TcpWindow => "TCP window as sent, not scaled; TCP only",
            Self::TcpSequence => "TCP sequence number; TCP only",
            Self::TcpAcknowledgement => "TCP acknowledgement number; TCP with ACK only",
            Self::TcpOptions => "TCP options as a bit set: bit `kind`, kinds 0 to 63; TCP only",
            Self::Ttl => "IPv4 time to live or IPv6 hop limit",
            Self::Tos => "IPv4 type of service or IPv6 traffic class, all 8 bits",
            Self::FlowLabel => "IPv6 flow label; IPv6 only",
            Self::Identification => "IPv4 identification, or that of an IPv6 fragment header",
            Self::FragmentOffset => "offset of a fragment, in bytes; fragments only",
            Self::IpOptions => "IPv4 options as a bit set: bit (option number); IPv4 only",
            Self::PayloadLength => "bytes after the transport header inside the IP length",
            Self::IcmpType => "ICMP or ICMPv6 type; ICMP only",
            Self::IcmpCode => "ICMP or ICMPv6 code; ICMP only",
            Self::Vlan => "VLAN id of the outermost tag; tagged frames only",
            Self::InnerVlan => "VLAN id of the second tag; double-tagged frames only",
            Self::VlanPriority => "priority bits (PCP) of the outermost tag",
            Self::MplsLabel => "topmost MPLS label; labelled frames only",
            Self::SourceMac => "source MAC address; Ethernet only",
            Self::DestinationMac => "destination MAC address; Ethernet only",
            Self::EtherType => "Ethernet type that announced the IP header",
            Self::Vni => "VXLAN or GENEVE network identifier, of tunnels that are entered",
            Self::Teid => "GTP-U tunnel endpoint identifier, of tunnels that are entered",
            Self::GreKey => "GRE key, of tunnels that are entered",
            Self::IngressInterface => "interface the packet came in by",
            Self::EgressInterface => "interface the packet leaves by; switch engines",
            Self::QueueDepth => "queue depth met, in the engine's unit; switch engines",
            Self::HopLatency => "time spent in the hop, in ns; switch engines",
            Self::Direction => "0 from the initiator, 1 from the responder; biflow only",
            Self::Gap => "ns since the previous packet; absent for a record's first",
            Self::ReceiveQueue => "receive queue of the interface; engine `xdp` only",
            Self::HardwareTimestamp => "time of the card's own clock, if any; engine `xdp` only",
        }
    }
}

impl KeyField {
    /// What it is, in one line.
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            Self::SourceAddress => "source address, IPv4 or IPv6",
            Self::DestinationAddress => "destination address, IPv4 or IPv6",
            Self::SourcePort => "source port; 0 where the protocol has none",
            Self::DestinationPort => "destination port; 0 where the protocol has none",
            Self::Protocol => "IP protocol number",
            Self::OuterSourceAddress => "source address of the outermost tunnel entered",
            Self::OuterDestinationAddress => "destination address of the outermost tunnel entered",
            Self::Input(input) => input.describe(),
        }
    }

    /// Every field, in the order in which they are listed to users.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::PLAIN
            .into_iter()
            .chain(Self::INPUTS.into_iter().map(Self::Input))
    }

    /// The input behind it.
    #[must_use]
    pub const fn input(self) -> Option<Input> {
        match self {
            Self::Input(input) => Some(input),
            _ => None,
        }
    }
}

/// Whether an op takes an `of`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// It cannot do without.
    Needed,
    /// Either way means something.
    Optional,
    /// It has its own.
    Needless,
}

impl Op {
    /// The names of all ops, in the order in which they are listed to users.
    pub const NAMES: [&'static str; 18] = [
        "count",
        "sum",
        "min",
        "max",
        "first",
        "last",
        "nth",
        "bit_or",
        "mean",
        "variance",
        "gap_min",
        "gap_max",
        "gap_mean",
        "gap_variance",
        "histogram",
        "list",
        "duration",
        "rate",
    ];

    /// The name in a definition file.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Sum => "sum",
            Self::Min => "min",
            Self::Max => "max",
            Self::First => "first",
            Self::Last => "last",
            Self::Nth { .. } => "nth",
            Self::BitOr => "bit_or",
            Self::Mean => "mean",
            Self::Variance => "variance",
            Self::GapMin => "gap_min",
            Self::GapMax => "gap_max",
            Self::GapMean => "gap_mean",
            Self::GapVariance => "gap_variance",
            Self::Histogram { .. } => "histogram",
            Self::List { .. } => "list",
            Self::Duration => "duration",
            Self::Rate => "rate",
        }
    }

    /// The op of that name, with a `k` of 1 and no edges where it has such.
    #[must_use]
    pub fn with_name(name: &str) -> Option<Self> {
        Some(match name {
            "count" => Self::Count,
            "sum" => Self::Sum,
            "min" => Self::Min,
            "max" => Self::Max,
            "first" => Self::First,
            "last" => Self::Last,
            "nth" => Self::Nth { k: 1 },
            "bit_or" => Self::BitOr,
            "mean" => Self::Mean,
            "variance" => Self::Variance,
            "gap_min" => Self::GapMin,
            "gap_max" => Self::GapMax,
            "gap_mean" => Self::GapMean,
            "gap_variance" => Self::GapVariance,
            "histogram" => Self::Histogram { edges: Vec::new() },
            "list" => Self::List { k: 1 },
            "duration" => Self::Duration,
            "rate" => Self::Rate,
            _ => return None,
        })
    }

    /// What the op of that name does, in one line; `None` for a name that is no op's.
    #[must_use]
    pub fn describe(name: &str) -> Option<&'static str> {
        Some(match name {
            "count" => "packets; with `of`, the packets that carry the input",
            "sum" => "sum of the input",
            "min" => "smallest value",
            "max" => "largest value",
            "first" => "value of the first packet that carries the input",
            "last" => "value of the last packet that carries the input",
            "nth" => "value of the k-th packet that carries the input; needs `k`",
            "bit_or" => "OR of the values",
            "mean" => "arithmetic mean",
            "variance" => "population variance",
            "gap_min" => "smallest gap between consecutive packets, in ns",
            "gap_max" => "largest gap between consecutive packets, in ns",
            "gap_mean" => "mean gap between consecutive packets, in ns",
            "gap_variance" => "population variance of the gaps, in ns squared",
            "histogram" => "counts of values between `edges`, which rise",
            "list" => "the first k values; needs `k`",
            "duration" => "last less first time, in ns",
            "rate" => "packets, or with `of` the sum of the input, per second of duration",
            _ => return None,
        })
    }

    /// The op without its `gap_` prefix, where it has one.
    #[must_use]
    pub const fn over_gaps(&self) -> Option<Self> {
        match self {
            Self::GapMin => Some(Self::Min),
            Self::GapMax => Some(Self::Max),
            Self::GapMean => Some(Self::Mean),
            Self::GapVariance => Some(Self::Variance),
            _ => None,
        }
    }

    /// Whether the op needs an `of`.
    #[must_use]
    pub const fn operand(&self) -> Operand {
        match self {
            Self::Count | Self::Rate => Operand::Optional,
            Self::GapMin | Self::GapMax | Self::GapMean | Self::GapVariance | Self::Duration => {
                Operand::Needless
            }
            _ => Operand::Needed,
        }
    }

    /// Whether folding values of that meaning by this op says anything.
    pub(crate) const fn suits(&self, meaning: Meaning) -> bool {
        match self {
            Self::Sum | Self::Mean | Self::Variance | Self::Rate => {
                matches!(meaning, Meaning::Amount)
            }
            Self::BitOr => matches!(meaning, Meaning::Amount | Meaning::Label),
            Self::First | Self::Last | Self::Nth { .. } | Self::List { .. } => true,
            _ => !matches!(meaning, Meaning::Direction),
        }
    }
}

impl InputSet {
    /// The names of its members, with commas between.
    #[must_use]
    pub fn names(self) -> String {
        self.iter().map(Input::name).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_op_is_described() {
        for name in Op::NAMES {
            assert!(Op::describe(name).is_some());
            assert_eq!(Op::with_name(name).map(|op| op.name()), Some(name));
        }
        assert_eq!(Op::describe("summ"), None);
    }

    #[test]
    fn descriptions_fit_a_line() {
        assert!(
            Input::ALL
                .into_iter()
                .all(|input| input.describe().len() <= 64)
        );
        assert!(KeyField::all().all(|field| field.describe().len() <= 64));
    }
}
