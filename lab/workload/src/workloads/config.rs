// SPDX-License-Identifier: Apache-2.0
//! The configuration of a workload, and its checks.

use super::adversarial::{ATTACK_IP_BYTES, AdversarialConfig, COLLIDING_FLOWS_MAX};
use super::data_center::{ACK_IP_BYTES, DATA_IP_BYTES, DataCenterConfig, LOAD, LOAD_MAX, LOAD_MIN};
use super::internet::{FLOW_PACKETS_MAX, InternetConfig};
use super::site::{SITE_START_NS, SiteConfig};
use super::statistics::Asked;
use crate::traffic::FRAME_BYTES_MIN;

/// The kind of traffic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Attacks that maximise the meter's work.
    Adversarial(AdversarialConfig),
    /// Traffic through a switch of a data centre.
    DataCenter(DataCenterConfig),
    /// Traffic between two core routers of the Internet.
    Internet(InternetConfig),
    /// A company's day, with an incident.
    Site(SiteConfig),
}

/// Mean IP length of the packets in the slides' trace: 2 Gb/s over 328 K packets per second. (The
/// slides write "2GB per second", which exceeds the link's 10 Gb/s.)
const INTERNET_PACKET_BYTES: f64 = 2e9 / 8.0 / 328e3;

impl Kind {
    /// The rates that the paper or the configuration states.
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
                    // One acknowledgement per data packet.
                    mean_packet_bytes: f64::from(DATA_IP_BYTES + ACK_IP_BYTES) / 2.0,
                }
            }
            Self::Internet(config) => Asked {
                packets_per_second: config.packets_per_second,
                flows_per_second: config.flows_per_second,
                mean_packet_bytes: INTERNET_PACKET_BYTES,
            },
            Self::Site(config) => config.asked(),
        }
    }
}

/// The traffic to generate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorkloadConfig {
    /// The kind of traffic.
    pub kind: Kind,
    /// Number of packets; with `None`, only the duration limits them.
    pub packets: Option<u64>,
    /// Duration in the traffic's own time, in ns; `None` means endless.
    pub duration_ns: Option<u64>,
    /// Captured bytes per frame, at least 64; `None` captures all.
    pub snap_length_bytes: Option<u32>,
    /// Start time, in ns since 1970.
    pub start_ns: u64,
    /// Seed of everything random.
    pub seed: u64,
}

impl WorkloadConfig {
    /// Endless traffic of that kind.
    #[must_use]
    pub const fn new(kind: Kind) -> Self {
        let start_ns = match kind {
            // The day starts at midnight, because its rate depends on the hour.
            Kind::Site(_) => SITE_START_NS,
            _ => 1_700_000_000_000_000_000,
        };
        Self {
            kind,
            packets: None,
            duration_ns: None,
            snap_length_bytes: None,
            start_ns,
            seed: 1,
        }
    }

    /// Checks all numbers.
    ///
    /// # Errors
    /// The first problem found; see [`WorkloadError`].
    pub fn check(&self) -> Result<(), WorkloadError> {
        check_amount(self.packets, self.duration_ns, self.snap_length_bytes)?;
        self.check_kind()?;
        self.check_end()
    }

    /// Checks that the 64-bit timestamps, which end in the year 2554, do not overflow.
    fn check_end(&self) -> Result<(), WorkloadError> {
        let takes_ns =
            |packets: u64| (packets as f64 / self.kind.asked().packets_per_second * 1e9) as u64;
        let lasts_ns = match (self.packets.map(takes_ns), self.duration_ns) {
            (Some(takes_ns), Some(lasts_ns)) => takes_ns.min(lasts_ns),
            (Some(lasts_ns), None) | (None, Some(lasts_ns)) => lasts_ns,
            (None, None) => return Ok(()),
        };
        // A tenth is reserved for packets that happen to come late.
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
            Kind::Site(config) => config.check(),
        }
    }
}

/// Checks the amount of traffic and the captured part of each frame.
///
/// # Errors
/// If the amount is zero, or less than a header is captured.
pub(crate) fn check_amount(
    packets: Option<u64>,
    duration_ns: Option<u64>,
    snap_length_bytes: Option<u32>,
) -> Result<(), WorkloadError> {
    if packets == Some(0) || duration_ns == Some(0) {
        return Err(WorkloadError::Nothing);
    }
    let too_short = |bytes: &u32| *bytes < FRAME_BYTES_MIN;
    match snap_length_bytes.filter(too_short) {
        Some(bytes) => Err(WorkloadError::SnapLength { bytes }),
        None => Ok(()),
    }
}

/// What is wrong with a [`WorkloadConfig`].
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum WorkloadError {
    /// The number of flows is out of range.
    #[error(
        "{flows} flows asked for; ask for at least 1, and for 2 to {COLLIDING_FLOWS_MAX} that \
         collide"
    )]
    Flows {
        /// The requested number.
        flows: u64,
    },
    /// The active flows would not fit in memory.
    #[error(
        "{active:.0} flows would be active at a time; ask for fewer packets or new flows per second"
    )]
    ActiveFlows {
        /// The number of active flows.
        active: f64,
    },
    /// No size distribution has this mean.
    #[error(
        "flows of {mean:.1} packets on average; packets per second divided by new flows per second \
         lie between 1 and about 10,000, and no flow has more than {FLOW_PACKETS_MAX} packets"
    )]
    FlowSize {
        /// Packets per flow.
        mean: f64,
    },
    /// The flow rate is not positive or not finite.
    #[error(
        "{value} new flows per second asked for; ask for more than 0, and for a company's day for at most 10,000"
    )]
    FlowRate {
        /// The requested rate.
        value: f64,
    },
    /// The load would make queues grow without bound, or send nothing.
    #[error("load {value}; write {LOAD_MIN} to {LOAD_MAX}, a share of the links' capacity")]
    Load {
        /// The requested load.
        value: f64,
    },
    /// There are more flows than packets, but each flow needs a packet.
    #[error(
        "{flows} new flows per second cannot come from {packets} packets per second; each flow \
         has at least one packet: lower the flows or raise the packets"
    )]
    MoreFlowsThanPackets {
        /// Requested new flows per second.
        flows: f64,
        /// Requested packets per second.
        packets: f64,
    },
    /// No packets are requested.
    #[error("0 packets asked for, or no time at all; ask for more than 0")]
    Nothing,
    /// The traffic would end after the last timestamp.
    #[error(
        "traffic that ends after the year 2495; ask for fewer packets, less time, or a higher rate"
    )]
    TooLong,
    /// The packet rate is not positive or not finite.
    #[error("{value} packets per second asked for; ask for more than 0, and for 1 billion at most")]
    PacketRate {
        /// The requested rate.
        value: f64,
    },
    /// The share is not between 0 and 1.
    #[error("share of IPv6 {value}; a share lies between 0 and 1")]
    Share {
        /// The requested share.
        value: f64,
    },
    /// No such colliding flows can be found.
    #[error(
        "{flows} flows into {into_slots} of {slots} slots; choose 1 slot to all slots, and enough \
         that 2 billion keys contain so many flows for them"
    )]
    Slots {
        /// Requested flows.
        flows: u64,
        /// Slots of the table.
        slots: u32,
        /// Requested slots for the flows.
        into_slots: u32,
    },
    /// The snap length is too short.
    #[error("snap length {bytes}; write at least {FRAME_BYTES_MIN} bytes")]
    SnapLength {
        /// The requested length.
        bytes: u32,
    },
}
