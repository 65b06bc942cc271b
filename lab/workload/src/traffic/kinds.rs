// SPDX-License-Identifier: Apache-2.0
//! Assigns IPv6, VLAN tags and UDP to flows.

use turboflow_record::Family;

use super::config::{Skew, TrafficConfig};
use super::flows::{Endpoints, Flow};
use super::frame::{Headers, TCP, UDP};

/// Derives the kind of a flow from its rank.
#[derive(Clone, Debug)]
pub(super) struct Kinds {
    ipv6: Share,
    vlan: Share,
    udp: Share,
}

impl Kinds {
    pub(super) fn new(config: &TrafficConfig) -> Self {
        Self {
            ipv6: Share::new(config.ipv6_share, SPREAD[0], config),
            vlan: Share::new(config.vlan_share, SPREAD[1], config),
            udp: Share::new(config.udp_share, SPREAD[2], config),
        }
    }

    /// The headers of a packet of that flow. The kind depends on the rank alone, so births do not
    /// change the shares.
    #[inline(always)]
    pub(super) fn headers(&self, flow: Flow, tcp_flags: u16) -> Headers {
        let ends = Endpoints::of(flow.number);
        let udp = self.udp.holds(flow.rank);
        let ipv6 = self.ipv6.holds(flow.rank);
        Headers {
            ends,
            family: if ipv6 { Family::V6 } else { Family::V4 },
            protocol: if udp { UDP } else { TCP },
            vlan: self
                .vlan
                .holds(flow.rank)
                .then_some(100 + (ends.source & 7) as u16),
            ttl: 64 - ((ends.source >> 3) & 15) as u8,
            tcp_flags: if udp { 0 } else { tcp_flags },
        }
    }
}

/// Three multipliers of ranks. Their products, as fractions, fill a cube evenly: inverse powers of
/// the root of x^4 = x + 1 (Roberts' generalised golden ratio).
const SPREAD: [u64; 3] = [
    0xd1b5_4a32_d192_ed03,
    0xabc9_8388_fb8f_ac03,
    0x8cb9_2ba7_2f3d_8dd7,
];

/// A property of a share of the flows.
#[derive(Clone, Debug)]
struct Share {
    /// Threshold as a 64-bit fraction; `None` if all flows have the property.
    below: Option<u64>,
    spread: u64,
    offset: u64,
}

/// Number of heaviest flows that are summed up exactly.
const HEAVY_FLOWS: u64 = 4_096;
/// Number of candidate offsets.
const OFFSETS: u64 = 256;

impl Share {
    /// With a skew, few flows carry much of the traffic. Therefore the offset is chosen that brings
    /// the share of packets closest to the requested share of flows.
    fn new(share: f64, spread: u64, config: &TrafficConfig) -> Self {
        let below = (share < 1.0).then_some((share * u64::MAX as f64) as u64);
        let with_offset = |index: u64| Self {
            below,
            spread,
            offset: index * (u64::MAX / OFFSETS),
        };
        let Skew::Zipf { exponent, .. } = config.skew else {
            return with_offset(OFFSETS / 2);
        };
        if share == 0.0 || share == 1.0 {
            return with_offset(0);
        }
        let weights: Vec<f64> = (1..=config.flows.min(HEAVY_FLOWS))
            .map(|rank| (rank as f64).powf(-exponent))
            .collect();
        let wanted = share * weights.iter().sum::<f64>();
        let error = |candidate: &Self| {
            let held = (0..)
                .zip(&weights)
                .filter(|(rank, _)| candidate.holds(*rank));
            (held.map(|(_, weight)| weight).sum::<f64>() - wanted).abs()
        };
        (0..OFFSETS)
            .map(with_offset)
            .min_by(|a, b| error(a).total_cmp(&error(b)))
            .expect("there are offsets to try")
    }

    #[inline(always)]
    fn holds(&self, rank: u64) -> bool {
        let fraction = rank.wrapping_mul(self.spread).wrapping_add(self.offset);
        self.below.is_none_or(|below| fraction < below)
    }
}
