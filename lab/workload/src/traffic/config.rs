// SPDX-License-Identifier: Apache-2.0
//! What a generator is asked for, and what it refuses.

/// What traffic to generate. Every number is kept, or refused with a [`ConfigError`].
#[derive(Clone, Debug, PartialEq)]
pub struct TrafficConfig {
    /// How many packets in all.
    pub packets: u64,
    /// Flows active at any time, at most [`FLOWS_MAX`].
    pub flows: u64,
    /// New flows per second of the traffic's own time; each takes the place of an old one.
    pub births_per_second: f64,
    /// Packets per second of the traffic's own time, evenly spaced.
    pub packets_per_second: f64,
    /// Sizes of the frames.
    pub frame_sizes: FrameSizes,
    /// How packets spread over the flows.
    pub skew: Skew,
    /// Share of the flows that are IPv6, 0 to 1. Like the other two shares it is spread evenly
    /// over heavy and light flows, so the packets' share comes close to it under any skew.
    pub ipv6_share: f64,
    /// Share of the flows whose frames have an 802.1Q tag, 0 to 1.
    pub vlan_share: f64,
    /// Share of the flows that are UDP, 0 to 1; the others are TCP.
    pub udp_share: f64,
    /// Captured bytes a frame, at least 64; `None` captures all. Lengths on the wire, and those in
    /// the headers, stay what they are.
    pub snap_length_bytes: Option<u32>,
    /// Time of the first packet, in ns since 1970.
    pub start_ns: u64,
    /// Everything random comes from it.
    pub seed: u64,
}

impl Default for TrafficConfig {
    /// A million packets of 64 bytes over 10,000 flows, uniform, at a million packets a second.
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
    /// All alike.
    Fixed(u32),
    /// The "simple IMIX" of device testers: 7 of 64, 4 of 594 and 1 of 1,518 bytes.
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
/// The most sizes in a mix.
pub const SIZES_MAX: usize = 64;
/// The most flows active at a time.
pub const FLOWS_MAX: u64 = u32::MAX as u64;
/// The largest exponent of a Zipf law.
pub const EXPONENT_MAX: f64 = 8.0;

/// How packets spread over flows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Skew {
    /// Every packet belongs to any flow with the same probability, whatever came before.
    Uniform,
    /// Internet-like: the k-th heaviest flow has a share of the packets that goes as
    /// `k^-exponent`, and packets come in trains of geometric length. A few dozen trains are
    /// under way at a time, and their packets interleave.
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
    /// There would be no packet.
    #[error("0 packets asked for; ask for at least 1")]
    NoPackets,
    /// There would be no flow, or more than numbers for them.
    #[error("{flows} flows asked for; ask for 1 to {FLOWS_MAX}")]
    Flows {
        /// What was asked for.
        flows: u64,
    },
    /// The rate is no rate.
    #[error("{value} packets per second asked for; ask for more than 0")]
    PacketRate {
        /// What was asked for.
        value: f64,
    },
    /// The rate is no rate.
    #[error("{value} births per second asked for; ask for 0 or more")]
    BirthRate {
        /// What was asked for.
        value: f64,
    },
    /// A flow is born with a packet.
    #[error(
        "{births} births per second cannot come from {packets} packets per second; each birth \
         takes a packet: lower the births or raise the packets"
    )]
    MoreBirthsThanPackets {
        /// Births per second asked for.
        births: f64,
        /// Packets per second asked for.
        packets: f64,
    },
    /// A share is not between 0 and 1.
    #[error("{name} is {value}; a share lies between 0 and 1")]
    Share {
        /// Which one.
        name: &'static str,
        /// What was asked for.
        value: f64,
    },
    /// A frame is too short or too long.
    #[error("frames of {bytes} bytes; sizes lie between {FRAME_BYTES_MIN} and {FRAME_BYTES_MAX}")]
    FrameSize {
        /// What was asked for.
        bytes: u32,
    },
    /// A mix without sizes, with too many, or with weights that choose nothing.
    #[error("a mix has 1 to {SIZES_MAX} frame sizes with weights of 0 or more, not all of them 0")]
    FrameMix,
    /// The captured part is too short.
    #[error("snap length {bytes}; it is at least {FRAME_BYTES_MIN} bytes")]
    SnapLength {
        /// What was asked for.
        bytes: u32,
    },
    /// The skew is too large or no number.
    #[error("Zipf exponent {value}; it lies between 0 and {EXPONENT_MAX}")]
    Exponent {
        /// What was asked for.
        value: f64,
    },
    /// Trains have at least one packet.
    #[error("packet trains of mean length {value}; it is at least 1")]
    TrainLength {
        /// What was asked for.
        value: f64,
    },
    /// The clock would overflow.
    #[error(
        "{packets} packets at {rate} per second end after the year 2554, where 64 bits of \
         nanoseconds end; lower the packets, raise the rate or start earlier"
    )]
    TooLong {
        /// Packets asked for.
        packets: u64,
        /// Packets per second asked for.
        rate: f64,
    },
}

impl TrafficConfig {
    /// Says what is wrong, if anything is.
    ///
    /// # Errors
    /// The first of the reasons in [`ConfigError`].
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
        // One part in a thousand is left for rounding.
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
