// SPDX-License-Identifier: Apache-2.0
//! The configuration of a generator, and its checks.

/// The traffic to generate. Every number is met exactly, or refused with a [`ConfigError`].
#[derive(Clone, Debug, PartialEq)]
pub struct TrafficConfig {
    /// Number of packets.
    pub packets: u64,
    /// Flows active at any time, at most [`FLOWS_MAX`].
    pub flows: u64,
    /// New flows per second of the traffic's own time. Each replaces an old one.
    pub births_per_second: f64,
    /// Packets per second of the traffic's own time, evenly spaced.
    pub packets_per_second: f64,
    /// Sizes of the frames.
    pub frame_sizes: FrameSizes,
    /// How packets spread over the flows.
    pub skew: Skew,
    /// Share of the flows that are IPv6, 0 to 1. This share and the two below are spread evenly
    /// over heavy and light flows, so the share of packets is close to the share of flows under any
    /// skew.
    pub ipv6_share: f64,
    /// Share of the flows whose frames have an 802.1Q tag, 0 to 1.
    pub vlan_share: f64,
    /// Share of the flows that are UDP, 0 to 1; the others are TCP.
    pub udp_share: f64,
    /// Captured bytes per frame, at least 64; `None` captures all. It does not change the lengths
    /// on the wire and in headers.
    pub snap_length_bytes: Option<u32>,
    /// Time of the first packet, in ns since 1970.
    pub start_ns: u64,
    /// Seed of everything random.
    pub seed: u64,
}

impl Default for TrafficConfig {
    /// A million packets of 64 bytes over 10,000 flows, uniform, at a million packets per second.
    fn default() -> Self {
        Self {
            packets: 1_000_000,
            flows: 10_000,
            births_per_second: 0.0,
            packets_per_second: 1e6,
            frame_sizes: FrameSizes::Fixed(64),
            skew: Skew::Uniform,
            ipv6_share: 0.0,
            vlan_share: 0.0,
            udp_share: 0.0,
            snap_length_bytes: None,
            start_ns: 1_700_000_000_000_000_000,
            seed: 1,
        }
    }
}

/// Sizes of frames in bytes, without the frame check sequence, [`FRAME_BYTES_MIN`] to
/// [`FRAME_BYTES_MAX`].
///
/// A frame is never shorter than its headers: TCP over IPv6 has 74 bytes, 78 with a tag.
#[derive(Clone, Debug, PartialEq)]
pub enum FrameSizes {
    /// One size for all frames.
    Fixed(u32),
    /// The "simple IMIX" of network testers: 7 frames of 64 bytes, 4 of 594 and 1 of 1,518.
    Imix,
    /// Sizes with their weights, at most [`SIZES_MAX`].
    Mix(Vec<(u32, f64)>),
}

impl FrameSizes {
    /// Sizes and weights.
    #[must_use]
    pub fn weighted(&self) -> Vec<(u32, f64)> {
        match self {
            Self::Fixed(bytes) => vec![(*bytes, 1.0)],
            Self::Imix => vec![(64, 7.0), (594, 4.0), (1_518, 1.0)],
            Self::Mix(sizes) => sizes.clone(),
        }
    }
}

/// The smallest frame, in bytes.
pub const FRAME_BYTES_MIN: u32 = 64;
/// The largest frame, in bytes.
pub const FRAME_BYTES_MAX: u32 = 9_000;
/// Maximum number of sizes in a mix.
pub const SIZES_MAX: usize = 64;
/// Maximum number of active flows.
pub const FLOWS_MAX: u64 = u32::MAX as u64;
/// The largest exponent of a Zipf law.
pub const EXPONENT_MAX: f64 = 8.0;

/// How packets spread over flows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Skew {
    /// Each packet belongs to any flow with equal probability, independently of earlier packets.
    Uniform,
    /// Internet-like: the k-th heaviest flow has a share of the packets proportional to
    /// `k^-exponent`, and packets come in trains of geometric length. A few dozen trains are active
    /// at a time, and their packets interleave.
    Zipf {
        /// 0 to [`EXPONENT_MAX`]; links show about 1.05.
        exponent: f64,
        /// Mean number of packets in a train, at least 1.
        mean_train_length: f64,
    },
}

/// What is wrong with a [`TrafficConfig`].
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// No packets are requested.
    #[error("0 packets asked for; ask for at least 1")]
    NoPackets,
    /// No flows are requested, or more than there are numbers for.
    #[error("{flows} flows asked for; ask for 1 to {FLOWS_MAX}")]
    Flows {
        /// The requested number.
        flows: u64,
    },
    /// The packet rate is not positive or not finite.
    #[error("{value} packets per second asked for; ask for more than 0")]
    PacketRate {
        /// The requested rate.
        value: f64,
    },
    /// The birth rate is negative or not finite.
    #[error("{value} births per second asked for; ask for 0 or more")]
    BirthRate {
        /// The requested rate.
        value: f64,
    },
    /// There are more births than packets, but each birth needs a packet.
    #[error(
        "{births} births per second cannot come from {packets} packets per second; each birth \
         takes a packet: lower the births or raise the packets"
    )]
    MoreBirthsThanPackets {
        /// Requested births per second.
        births: f64,
        /// Requested packets per second.
        packets: f64,
    },
    /// A share is not between 0 and 1.
    #[error("{name} is {value}; a share lies between 0 and 1")]
    Share {
        /// The name of the share.
        name: &'static str,
        /// The requested share.
        value: f64,
    },
    /// A frame is too short or too long.
    #[error("frames of {bytes} bytes; write a size from {FRAME_BYTES_MIN} to {FRAME_BYTES_MAX}")]
    FrameSize {
        /// The requested size.
        bytes: u32,
    },
    /// The mix has no sizes, too many, or weights that select none.
    #[error("a mix has 1 to {SIZES_MAX} frame sizes with weights of 0 or more, not all of them 0")]
    FrameMix,
    /// The snap length is too short.
    #[error("snap length {bytes}; write at least {FRAME_BYTES_MIN} bytes")]
    SnapLength {
        /// The requested length.
        bytes: u32,
    },
    /// The exponent is too large or not a number.
    #[error("Zipf exponent {value}; write a number from 0 to {EXPONENT_MAX}")]
    Exponent {
        /// The requested exponent.
        value: f64,
    },
    /// Trains have fewer than one packet.
    #[error("packet trains of mean length {value}; write at least 1")]
    TrainLength {
        /// The requested length.
        value: f64,
    },
    /// The last timestamp would overflow.
    #[error(
        "{packets} packets at {rate} per second end after the year 2554, where 64 bits of \
         nanoseconds end; lower the packets, raise the rate or start earlier"
    )]
    TooLong {
        /// Requested packets.
        packets: u64,
        /// Requested packets per second.
        rate: f64,
    },
}

impl TrafficConfig {
    /// Checks all numbers.
    ///
    /// # Errors
    /// The first problem found; see [`ConfigError`].
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.packets == 0 {
            return Err(ConfigError::NoPackets);
        }
        check_flows(self.flows)?;
        self.check_rates()?;
        self.skew.check()?;
        let shares = [
            ("ipv6_share", self.ipv6_share),
            ("vlan_share", self.vlan_share),
            ("udp_share", self.udp_share),
        ];
        for (name, value) in shares {
            if !(0.0..=1.0).contains(&value) {
                return Err(ConfigError::Share { name, value });
            }
        }
        self.check_sizes()
    }

    fn check_rates(&self) -> Result<(), ConfigError> {
        let (births, packets) = (self.births_per_second, self.packets_per_second);
        if !(packets.is_finite() && packets > 0.0) {
            return Err(ConfigError::PacketRate { value: packets });
        }
        if !(births.is_finite() && births >= 0.0) {
            return Err(ConfigError::BirthRate { value: births });
        }
        if births > packets {
            return Err(ConfigError::MoreBirthsThanPackets { births, packets });
        }
        let end_ns = self.start_ns as f64 + self.packets as f64 / packets * 1e9;
        // A thousandth is reserved for rounding.
        if end_ns >= u64::MAX as f64 * 0.999 {
            return Err(ConfigError::TooLong {
                packets: self.packets,
                rate: packets,
            });
        }
        Ok(())
    }

    fn check_sizes(&self) -> Result<(), ConfigError> {
        if let Some(bytes) = self
            .snap_length_bytes
            .filter(|&bytes| bytes < FRAME_BYTES_MIN)
        {
            return Err(ConfigError::SnapLength { bytes });
        }
        let sizes = self.frame_sizes.weighted();
        let outside = |bytes: &u32| !(FRAME_BYTES_MIN..=FRAME_BYTES_MAX).contains(bytes);
        if let Some(bytes) = sizes.iter().map(|(bytes, _)| *bytes).find(outside) {
            return Err(ConfigError::FrameSize { bytes });
        }
        let total: f64 = sizes.iter().map(|(_, weight)| weight).sum();
        let usable = sizes.iter().all(|(_, weight)| *weight >= 0.0) && total.is_finite();
        if usable && total > 0.0 && sizes.len() <= SIZES_MAX {
            Ok(())
        } else {
            Err(ConfigError::FrameMix)
        }
    }
}

pub(super) fn check_flows(flows: u64) -> Result<(), ConfigError> {
    if (1..=FLOWS_MAX).contains(&flows) {
        Ok(())
    } else {
        Err(ConfigError::Flows { flows })
    }
}

impl Skew {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let Self::Zipf {
            exponent,
            mean_train_length,
        } = *self
        else {
            return Ok(());
        };
        if !(0.0..=EXPONENT_MAX).contains(&exponent) {
            return Err(ConfigError::Exponent { value: exponent });
        }
        if !(mean_train_length.is_finite() && mean_train_length >= 1.0) {
            return Err(ConfigError::TrainLength {
                value: mean_train_length,
            });
        }
        Ok(())
    }
}
