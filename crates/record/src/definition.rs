// SPDX-License-Identifier: Apache-2.0
//! The definition of a flow record: its key fields and features, as the user chose them.

use crate::Input;
use crate::input::IN_KEYS;

/// A field of the flow key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyField {
    /// Source address.
    SourceAddress,
    /// Destination address.
    DestinationAddress,
    /// Source port.
    SourcePort,
    /// Destination port.
    DestinationPort,
    /// Protocol number.
    Protocol,
    /// Source address of the outermost tunnel entered.
    OuterSourceAddress,
    /// Destination address of the outermost tunnel entered.
    OuterDestinationAddress,
    /// A further property of the packet: VLAN, VNI, MPLS label, interface, type of service, ...
    Input(Input),
}

impl KeyField {
    /// The inputs that a key may contain: those that are constant over a flow.
    pub const INPUTS: [Input; IN_KEYS.len()] = IN_KEYS;

    /// The seven fields that are not an [`Input`].
    pub const PLAIN: [Self; 7] = [
        Self::SourceAddress,
        Self::DestinationAddress,
        Self::SourcePort,
        Self::DestinationPort,
        Self::Protocol,
        Self::OuterSourceAddress,
        Self::OuterDestinationAddress,
    ];

    /// The 5-tuple, in the order of its columns.
    pub const FIVE_TUPLE: [Self; 5] = [
        Self::SourceAddress,
        Self::DestinationAddress,
        Self::SourcePort,
        Self::DestinationPort,
        Self::Protocol,
    ];

    /// The name in a definition file.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SourceAddress => "source_address",
            Self::DestinationAddress => "destination_address",
            Self::SourcePort => "source_port",
            Self::DestinationPort => "destination_port",
            Self::Protocol => "protocol",
            Self::OuterSourceAddress => "outer_source_address",
            Self::OuterDestinationAddress => "outer_destination_address",
            Self::Input(input) => input.name(),
        }
    }

    /// The name of its column in CSV, JSON and Parquet.
    #[must_use]
    pub const fn column_name(self) -> &'static str {
        match self {
            Self::SourceAddress => "src_addr",
            Self::DestinationAddress => "dst_addr",
            Self::SourcePort => "src_port",
            Self::DestinationPort => "dst_port",
            Self::OuterSourceAddress => "outer_src_addr",
            Self::OuterDestinationAddress => "outer_dst_addr",
            Self::Protocol | Self::Input(_) => self.name(),
        }
    }

    /// The field with this name in a definition file.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let inputs = Self::INPUTS.into_iter().map(Self::Input);
        Self::PLAIN
            .into_iter()
            .chain(inputs)
            .find(|field| field.name() == name)
    }
}

/// How a feature folds its packets. `docs/definition.md` gives the algebra of each op.
///
/// Ops are named in `vocabulary.rs` and checked in `check.rs`; `crates/merge/src/layout/form.rs`
/// says which words of state each needs. `CONTRIBUTING.md` lists everything that a new op needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Number of packets; with an input, of the packets that carry it.
    Count,
    /// Sum of the input.
    Sum,
    /// Smallest value.
    Min,
    /// Largest value.
    Max,
    /// Value of the first packet that carries the input.
    First,
    /// Value of the last packet that carries the input.
    Last,
    /// Value of the `k`-th packet that carries the input, counted from 1.
    Nth {
        /// Which packet.
        k: usize,
    },
    /// OR of the values.
    BitOr,
    /// Arithmetic mean.
    Mean,
    /// Population variance, from exact integer moments.
    Variance,
    /// Smallest gap between consecutive packets, in ns.
    GapMin,
    /// Largest gap, in ns.
    GapMax,
    /// Mean gap, in ns.
    GapMean,
    /// Population variance of the gaps, in ns squared.
    GapVariance,
    /// Counts of values below the first edge, between neighbouring edges, and at or above the last
    /// edge.
    Histogram {
        /// Strictly rising lower bounds of all bins except the first.
        edges: Vec<u64>,
    },
    /// The first `k` values.
    List {
        /// How many values are kept.
        k: usize,
    },
    /// Largest timestamp minus smallest, in ns.
    Duration,
    /// Packets per second of duration; with an input, the sum of its values per second.
    Rate,
    /// Community ID of the flow's 5-tuple, a text.
    CommunityId,
}

/// One feature of a definition: a named op over an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feature {
    /// The name of its column.
    pub name: String,
    /// How packets are folded.
    pub op: Op,
    /// The input that is folded; `None` for ops without one.
    pub of: Option<Input>,
    /// In biflow records: one column over both directions (`per = "biflow"`) instead of one per
    /// direction. Records of one direction are not affected.
    pub per_biflow: bool,
}

impl Feature {
    /// A feature with this name, with one column per direction of a biflow.
    #[must_use]
    pub fn new(name: &str, op: Op, of: Option<Input>) -> Self {
        Self {
            name: name.to_owned(),
            op,
            of,
            per_biflow: false,
        }
    }

    /// Whether biflow records have one column for this feature instead of one per direction.
    #[must_use]
    pub fn is_joined(&self) -> bool {
        self.per_biflow || self.of == Some(Input::Direction) || self.is_of_flow()
    }

    /// Whether it is a property of the flow rather than of its packets: its application, for
    /// example.
    #[must_use]
    pub fn is_of_flow(&self) -> bool {
        self.op == Op::CommunityId || self.of.is_some_and(Input::is_inspected)
    }
}

/// What a flow record holds: key fields and features, in column order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// The key's fields.
    pub key: Vec<KeyField>,
    /// The features.
    pub features: Vec<Feature>,
}

impl Definition {
    /// The default definition plus all results of inspection and the Community ID, each named after
    /// its input or op.
    #[must_use]
    pub fn with_applications() -> Self {
        let mut definition = Self::default();
        let inspected = Input::INSPECTED.into_iter();
        let inspected = inspected.map(|of| Feature::new(of.name(), Op::Last, Some(of)));
        let id = Feature::new(Op::CommunityId.name(), Op::CommunityId, None);
        definition.features.extend(inspected.chain([id]));
        definition
    }

    /// This definition plus what a bridge does with packets: the last verdict and its rule, and the
    /// packets and bytes that it dropped. Existing columns with these names stay as they are.
    #[must_use]
    pub fn with_verdicts(mut self) -> Self {
        let columns = [
            ("verdict", Op::Last, Input::Verdict),
            ("rule", Op::Last, Input::Rule),
            ("packets_dropped", Op::Sum, Input::PacketDropped),
            ("bytes_dropped", Op::Sum, Input::BytesDropped),
        ];
        for (name, op, of) in columns {
            if self.features.iter().all(|feature| feature.name != name) {
                self.features.push(Feature::new(name, op, Some(of)));
            }
        }
        self
    }
}

impl Default for Definition {
    /// The 5-tuple and the features that flow tools expect (`docs/definition.md`).
    fn default() -> Self {
        let feature = Feature::new;
        Self {
            key: KeyField::FIVE_TUPLE.to_vec(),
            features: vec![
                feature("packets", Op::Count, None),
                feature("bytes", Op::Sum, Some(Input::IpLength)),
                feature("first_ns", Op::Min, Some(Input::Timestamp)),
                feature("last_ns", Op::Max, Some(Input::Timestamp)),
                feature("tcp_flags", Op::BitOr, Some(Input::TcpFlags)),
                feature("min_length", Op::Min, Some(Input::IpLength)),
                feature("max_length", Op::Max, Some(Input::IpLength)),
                feature("min_ttl", Op::Min, Some(Input::Ttl)),
                feature("max_ttl", Op::Max, Some(Input::Ttl)),
                feature("tos", Op::First, Some(Input::Tos)),
            ],
        }
    }
}
