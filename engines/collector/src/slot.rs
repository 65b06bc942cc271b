// SPDX-License-Identifier: Apache-2.0
//! The place in a flow for the value of each information element. Elements that the record
//! definition does not use are skipped.

use turboflow_record::{Input, InputSet};

/// The enterprise number that marks elements of the reverse direction (RFC 5103, section 6.1).
const REVERSE: u32 = 29_305;

/// A direction of a biflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Forward = 0,
    Reverse = 1,
}

/// How a time is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeForm {
    Seconds,
    Milliseconds,
    /// NTP, with microsecond resolution.
    Microseconds,
    /// NTP, with nanosecond resolution.
    Nanoseconds,
    /// Microseconds before the export time.
    BeforeExport,
    /// Milliseconds since the exporter's start.
    Uptime,
}

/// The place of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    Skip,
    SourceV4,
    SourceV6,
    DestinationV4,
    DestinationV6,
    SourcePort,
    DestinationPort,
    Protocol,
    /// Type and code of ICMP in 16 bits.
    Icmp,
    IcmpType,
    IcmpCode,
    Packets(Way),
    Bytes(Way),
    TcpFlags(Way),
    Tos(Way),
    /// The six bits of a differentiated services field.
    Dscp(Way),
    Ttl(Way),
    MinTtl(Way),
    MaxTtl(Way),
    MinLength(Way),
    MaxLength(Way),
    Start(Way, TimeForm),
    End(Way, TimeForm),
    DurationMs,
    DurationUs,
    /// When the exporter started, in milliseconds since 1970.
    Boot,
    /// One packet out of this many was sampled.
    SamplingInterval,
    /// Number of packets sampled in a row, and number of packets between.
    SampledAtATime,
    SamplingSpace,
    /// Number of packets sampled out of a number of packets.
    SamplingSize,
    SamplingPopulation,
    /// The id of the sampler.
    Sampler,
    /// An input of record definitions.
    Input(Input),
}

impl Slot {
    /// The slot of an element in data records of flows. `wanted` are the inputs that the run's
    /// definition uses; others are skipped.
    pub(crate) fn of(enterprise: Option<u32>, id: u16, wanted: InputSet) -> Self {
        match enterprise {
            None => Self::of_iana(id, Way::Forward, wanted),
            Some(REVERSE) => match Self::of_iana(id, Way::Reverse, wanted) {
                // Only values that each direction has for itself; others exist once per biflow.
                slot if slot.is_of_direction() => slot,
                _ => Self::Skip,
            },
            Some(_) => Self::Skip,
        }
    }

    const fn is_of_direction(self) -> bool {
        matches!(
            self,
            Self::Packets(_)
                | Self::Bytes(_)
                | Self::TcpFlags(_)
                | Self::Tos(_)
                | Self::Dscp(_)
                | Self::Ttl(_)
                | Self::MinTtl(_)
                | Self::MaxTtl(_)
                | Self::MinLength(_)
                | Self::MaxLength(_)
                | Self::Start(..)
                | Self::End(..)
        )
    }

    fn of_iana(id: u16, way: Way, wanted: InputSet) -> Self {
        use TimeForm::{BeforeExport, Microseconds, Milliseconds, Nanoseconds, Seconds, Uptime};
        match id {
            // Deltas, and totals, which exporters send per record: yaf, for one.
            1 | 85 => Self::Bytes(way),
            2 | 86 => Self::Packets(way),
            // initiatorOctets, initiatorPackets; responderOctets, responderPackets.
            231 => Self::Bytes(Way::Forward),
            298 => Self::Packets(Way::Forward),
            232 => Self::Bytes(Way::Reverse),
            299 => Self::Packets(Way::Reverse),
            4 => Self::Protocol,
            5 => Self::Tos(way),
            195 => Self::Dscp(way),
            6 => Self::TcpFlags(way),
            7 | 180 | 182 => Self::SourcePort,
            11 | 181 | 183 => Self::DestinationPort,
            8 => Self::SourceV4,
            12 => Self::DestinationV4,
            27 => Self::SourceV6,
            28 => Self::DestinationV6,
            32 | 139 => Self::Icmp,
            176 | 178 => Self::IcmpType,
            177 | 179 => Self::IcmpCode,
            25 => Self::MinLength(way),
            26 => Self::MaxLength(way),
            52 => Self::MinTtl(way),
            53 => Self::MaxTtl(way),
            192 => Self::Ttl(way),
            22 => Self::Start(way, Uptime),
            21 => Self::End(way, Uptime),
            150 => Self::Start(way, Seconds),
            151 => Self::End(way, Seconds),
            152 => Self::Start(way, Milliseconds),
            153 => Self::End(way, Milliseconds),
            154 => Self::Start(way, Microseconds),
            155 => Self::End(way, Microseconds),
            156 => Self::Start(way, Nanoseconds),
            157 => Self::End(way, Nanoseconds),
            158 => Self::Start(way, BeforeExport),
            159 => Self::End(way, BeforeExport),
            160 => Self::Boot,
            161 => Self::DurationMs,
            162 => Self::DurationUs,
            34 | 50 => Self::SamplingInterval,
            305 => Self::SampledAtATime,
            306 => Self::SamplingSpace,
            309 => Self::SamplingSize,
            310 => Self::SamplingPopulation,
            48 | 302 => Self::Sampler,
            id => Self::of_input(id, wanted),
        }
    }

    fn of_input(id: u16, wanted: InputSet) -> Self {
        let input = match id {
            10 => Input::IngressInterface,
            14 => Input::EgressInterface,
            31 => Input::FlowLabel,
            56 => Input::SourceMac,
            58 | 243 => Input::Vlan,
            80 => Input::DestinationMac,
            244 => Input::VlanPriority,
            245 => Input::InnerVlan,
            256 => Input::EtherType,
            296 => Input::GreKey,
            _ => return Self::Skip,
        };
        match wanted.contains(input) {
            true => Self::Input(input),
            false => Self::Skip,
        }
    }

    /// Whether a value may have this many octets; values of other lengths are skipped.
    pub(crate) const fn takes(self, length: usize) -> bool {
        match self {
            Self::Skip => true,
            Self::SourceV4 | Self::DestinationV4 => length == 4,
            Self::SourceV6 | Self::DestinationV6 => length == 16,
            Self::Start(_, TimeForm::Microseconds | TimeForm::Nanoseconds)
            | Self::End(_, TimeForm::Microseconds | TimeForm::Nanoseconds) => length == 8,
            _ => length >= 1 && length <= 8,
        }
    }
}
