// SPDX-License-Identifier: Apache-2.0
//! What a workload is asked for, and what is refused.

use super::adversarial::{ATTACK_IP_BYTES, AdversarialConfig, COLLIDING_FLOWS_MAX};
use super::data_center::{ACK_IP_BYTES, DATA_IP_BYTES, DataCenterConfig, LOAD, LOAD_MAX, LOAD_MIN};
use super::internet::{FLOW_PACKETS_MAX, InternetConfig};
use super::statistics::Asked;
use crate::traffic::FRAME_BYTES_MIN;

/// Whose traffic it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Packets that make work.
    Adversarial(AdversarialConfig),
    /// What crosses a switch of a data centre.
    DataCenter(DataCenterConfig),
    /// What passes between two core routers of the Internet.
    Internet(InternetConfig),
}

/// Mean IP length of the packets in the slides' trace: 2 Gb/s over 328 K packets a second. (They
/// write "2GB per second", more than the 10 Gb/s that the link has.)
const INTERNET_PACKET_BYTES: f64 = 2e9 / 8.0 / 328e3;

impl Kind {
    /// What the paper, or the caller, wants of the packets.
    #[must_use]
    pub fn asked(&self) -> Asked {
        match self {
            Self::Adversarial(config) => Asked {
                packets_per_second: config.packets_per_second,
                flows_per_second: config.flows_per_second(),
                mean_packet_bytes: f64::from(ATTACK_IP_BYTES),
            },
            Self::DataCenter(config) => {
                let (packets, flows) = config.switch.published();
                let scale = config.load / LOAD;
                Asked {
                    packets_per_second: packets * scale,
                    flows_per_second: flows * scale,
                    // One acknowledgement a data packet.
                    mean_packet_bytes: f64::from(DATA_IP_BYTES + ACK_IP_BYTES) / 2.0,
                }
            }
            Self::Internet(config) => Asked {
                packets_per_second: config.packets_per_second,
                flows_per_second: config.flows_per_second,
                mean_packet_bytes: INTERNET_PACKET_BYTES,
            },
        }
    }
}

/// What to generate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorkloadConfig {
    /// Whose traffic.
    pub kind: Kind,
    /// How many packets in all; `None` leaves it to the duration.
    pub packets: Option<u64>,
    /// How much of the traffic's own time, in ns; `None` goes on for ever.
    pub duration_ns: Option<u64>,
    /// Captured bytes a frame, at least 64; `None` captures all.
    pub snap_length_bytes: Option<u32>,
    /// When it begins, in ns since 1970.
    pub start_ns: u64,
    /// Everything random comes from it.
    pub seed: u64,
}

impl WorkloadConfig {
    /// Endless traffic of a kind.
    #[must_use]
    pub const fn new(kind: Kind) -> Self {
        Self {
            kind,
            packets: None,
            duration_ns: None,
            snap_length_bytes: None,
            start_ns: 1_700_000_000_000_000_000,
            seed: 1,
        }
    }

    /// Says what is wrong, if anything is.
    ///
    /// # Errors
    /// The first of the reasons in [`WorkloadError`].
    pub fn check(&self) -> Result<(), WorkloadError> {
        if self.packets == Some(0) || self.duration_ns == Some(0) {
            return Err(WorkloadError::Nothing);
        }
        let too_short = |bytes: &u32| *bytes < FRAME_BYTES_MIN;
        if let Some(bytes) = self.snap_length_bytes.filter(too_short) {
            return Err(WorkloadError::SnapLength { bytes });
        }
        self.check_kind()?;
        self.check_end()
    }

    /// Times have 64 bits: they end in the year 2554.
    fn check_end(&self) -> Result<(), WorkloadError> {
        let takes_ns =
            |packets: u64| (packets as f64 / self.kind.asked().packets_per_second * 1e9) as u64;
        let lasts_ns = match (self.packets.map(takes_ns), self.duration_ns) {
            (Some(takes_ns), Some(lasts_ns)) => takes_ns.min(lasts_ns),
            (Some(lasts_ns), None) | (None, Some(lasts_ns)) => lasts_ns,
            (None, None) => return Ok(()),
        };
        // A tenth is left for packets that come late by chance.
        if self.start_ns.saturating_add(lasts_ns) < u64::MAX / 10 * 9 {
            return Ok(());
        }
        Err(WorkloadError::TooLong)
    }

    fn check_kind(&self) -> Result<(), WorkloadError> {
        match &self.kind {
            Kind::Adversarial(config) => config.check(),
            Kind::DataCenter(config) => config.check(),
            Kind::Internet(config) => config.check(),
        }
    }
}

/// What is wrong with a [`WorkloadConfig`].
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum WorkloadError {
    /// Too few or too many flows.
    #[error(
        "{flows} flows asked for; ask for at least 1, and for 2 to {COLLIDING_FLOWS_MAX} that \
         collide"
    )]
    Flows {
        /// What was asked for.
        flows: u64,
    },
    /// Memory would not hold them.
    #[error(
        "{active:.0} flows would be under way at a time; ask for fewer packets or new flows per second"
    )]
    ActiveFlows {
        /// How many.
        active: f64,
    },
    /// Flows of no law that is known.
    #[error(
        "flows of {mean:.1} packets on average; packets per second over new flows per second \
         lies between 1 and about 10,000, and no flow has more than {FLOW_PACKETS_MAX} packets"
    )]
    FlowSize {
        /// Packets for each flow.
        mean: f64,
    },
    /// The rate is no rate.
    #[error("{value} new flows per second asked for; ask for more than 0")]
    FlowRate {
        /// What was asked for.
        value: f64,
    },
    /// Queues would grow without end, or nothing would come.
    #[error("load {value}; it lies between {LOAD_MIN} and {LOAD_MAX} of the links")]
    Load {
        /// What was asked for.
        value: f64,
    },
    /// A flow has at least a packet.
    #[error(
        "{flows} new flows per second cannot come from {packets} packets per second; each flow \
         has at least one packet: lower the flows or raise the packets"
    )]
    MoreFlowsThanPackets {
        /// New flows per second asked for.
        flows: f64,
        /// Packets per second asked for.
        packets: f64,
    },
    /// There would be no packet.
    #[error("0 packets asked for, or no time at all; ask for more than 0")]
    Nothing,
    /// The traffic would end after all times.
    #[error(
        "traffic that ends after the year 2495; ask for fewer packets or less time, or for more packets per second"
    )]
    TooLong,
    /// The rate is no rate.
    #[error("{value} packets per second asked for; ask for more than 0, and for 1 billion at most")]
    PacketRate {
        /// What was asked for.
        value: f64,
    },
    /// No share.
    #[error("share of IPv6 {value}; a share lies between 0 and 1")]
    Share {
        /// What was asked for.
        value: f64,
    },
    /// Flows that cannot be found.
    #[error(
        "{flows} flows into {into_slots} of {slots} slots; the slots that they fall into are at \
         least 1 and at most all, and not so few that 2 billion keys do not hold the flows"
    )]
    Slots {
        /// Flows asked for.
        flows: u64,
        /// Slots of the table.
        slots: u32,
        /// Slots that the flows are to fall into.
        into_slots: u32,
    },
    /// The captured part is too short.
    #[error("snap length {bytes}; it is at least {FRAME_BYTES_MIN} bytes")]
    SnapLength {
        /// What was asked for.
        bytes: u32,
    },
}
