// SPDX-License-Identifier: Apache-2.0
//! The times and sizes of an Internet flow's packets.
//!
//! Packets come in trains (Jain and Routhier, IEEE JSAC 1986), spaced by the slowest link they
//! passed. The time between trains is a property of the flow: a round trip for a fast flow, the
//! seconds of a user or of a timer for a slow one. It is log-uniform, and large flows are fast
//! (Zhang and others, SIGCOMM 2002: rates vary widely and correlate with sizes).
//!
//! The packet times on the paper's links are not published. Only their effect on a microflow table
//! is: the first column of Table 10, records per second at five sizes. The range of times and the
//! mean train length are calibrated to it, and meet its five numbers within a tenth
//! (`lab/bench/tests/figure_11.rs`).
//!
//! | what | value |
//! |---|---|
//! | mean packets a train | [`TRAIN_PACKETS`] |
//! | from packet to packet in a train | log-normal by flow, median [`SPACING_NS`] (1,500 bytes at 80 Mb/s) |
//! | from train to train | exponential, of a mean that is log-uniform by flow, [`PACE_NS`]; no flow takes longer than [`DURATION_NS`] on average |
//! | directions | 47 % of the flows carry data, 39 % acknowledgements, 14 % something else |

use turboflow_record::{TCP_ACK, TCP_FIN, TCP_SYN};

use super::turn::Sent;
use crate::random::Random;

/// Mean packets per train.
const TRAIN_PACKETS: f64 = 3.0;
/// Median time between packets of a train.
const SPACING_NS: f64 = 150e3;
/// Standard deviation of the spacing's logarithm.
const SPACING_DEVIATION: f64 = 1.0;
/// Mean time between trains: of the fastest and of the slowest flows.
const PACE_NS: (f64, f64) = (5e6, 20e9);
/// Longest mean duration of a flow. The larger a flow, the faster it has to be.
const DURATION_NS: f64 = 1_200e9;

/// The timing of flows of one size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Number of gaps between packets.
    gaps: f64,
    /// Time between trains of the slowest flows of this size.
    slowest_ns: f64,
}

impl Pace {
    pub(super) fn of(size: f64) -> Self {
        let gaps = size - 1.0;
        let slowest_ns = DURATION_NS * TRAIN_PACKETS / gaps;
        Self {
            gaps,
            slowest_ns: slowest_ns.clamp(2.0 * PACE_NS.0, PACE_NS.1),
        }
    }

    /// Mean time per gap, split into the time between trains and the time within trains.
    fn mean_gaps_ns(self) -> (f64, f64) {
        let (fastest_ns, slowest_ns) = (PACE_NS.0, self.slowest_ns);
        let between_ns = (slowest_ns - fastest_ns) / (slowest_ns / fastest_ns).ln();
        let within_ns = SPACING_NS * (SPACING_DEVIATION * SPACING_DEVIATION / 2.0).exp();
        (
            between_ns / TRAIN_PACKETS,
            within_ns * (1.0 - 1.0 / TRAIN_PACKETS),
        )
    }

    /// Mean time from the first to the last packet.
    pub(super) fn mean_duration_ns(self) -> f64 {
        let (between_ns, within_ns) = self.mean_gaps_ns();
        self.gaps * (between_ns + within_ns)
    }

    fn draw_ns(self, random: &mut Random) -> f64 {
        PACE_NS.0 * (self.slowest_ns / PACE_NS.0).powf(random.fraction())
    }
}

/// The kind of a flow's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Mostly full packets.
    Data,
    /// Acknowledgements of data in the other direction, of 40 or 52 bytes.
    Acknowledgements,
    /// Short TCP exchanges.
    Other,
    /// UDP: requests, responses, calls.
    Datagrams,
}

/// An active flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flow {
    pub(super) number: u64,
    packets_left: u32,
    spacing_ns: u32,
    /// Mean time between trains.
    pace_ns: f32,
    kind: Kind,
    /// Whether it was born before its next packet.
    is_born: bool,
    /// Whether it has sent a packet.
    is_seen: bool,
}

/// Hundreds of thousands of flows may be active.
const _: () = assert!(size_of::<Flow>() == 24);

/// Probability that a train ends after a packet, as a 32-bit fraction.
const TRAIN_ENDS: u32 = ((1_u64 << 32) as f64 / TRAIN_PACKETS) as u32;

impl Flow {
    /// A new flow.
    pub(super) fn new(number: u64, size: u32, random: &mut Random) -> Self {
        let spacing_ns = SPACING_NS * (random.normal() * SPACING_DEVIATION).exp();
        // One or two data packets are not a bulk transfer.
        let kind = match random.below(100) {
            0..47 if size > 2 => Kind::Data,
            0..86 => Kind::Acknowledgements,
            86..92 => Kind::Other,
            _ => Kind::Datagrams,
        };
        Self {
            number,
            packets_left: size,
            spacing_ns: spacing_ns.min(1e9) as u32,
            pace_ns: Pace::of(f64::from(size)).draw_ns(random) as f32,
            kind,
            is_born: false,
            is_seen: false,
        }
    }

    /// A flow that is active at the start, and the time until its next packet.
    pub(super) fn in_progress(number: u64, size: u32, random: &mut Random) -> (Self, u64) {
        let mut flow = Self::new(number, size, random);
        flow.is_born = true;
        flow.packets_left = 1 + random.below(u64::from(size) - 1) as u32;
        let pace = Pace::of(f64::from(size));
        let (between_ns, within_ns) = pace.mean_gaps_ns();
        if random.fraction() * (between_ns + within_ns) < within_ns {
            let wait_ns = f64::from(flow.spacing_ns) * random.fraction();
            return (flow, wait_ns as u64);
        }
        // The chance to find a flow between trains is proportional to its pace, so log-uniform
        // paces become uniform ones.
        let further_ns = (pace.slowest_ns - PACE_NS.0) * random.fraction();
        flow.pace_ns = (PACE_NS.0 + further_ns) as f32;
        let wait_ns = flow.pause_ns(random);
        (flow, wait_ns)
    }

    const fn is_udp(&self) -> bool {
        matches!(self.kind, Kind::Datagrams)
    }

    fn pause_ns(&self, random: &mut Random) -> u64 {
        (random.exponential() * f64::from(self.pace_ns)) as u64
    }

    /// The packet at `at_ns`, and the time of the next one; `None` after the last.
    #[inline(always)]
    pub(super) fn send(&mut self, at_ns: u64, random: &mut Random) -> (Sent, Option<u64>) {
        let word = random.word();
        self.packets_left -= 1;
        let (is_birth, is_last) = (!self.is_born, self.packets_left == 0);
        let tcp_flags = match (is_birth, is_last) {
            _ if self.is_udp() => 0,
            (_, true) => TCP_ACK | TCP_FIN,
            (false, false) => TCP_ACK,
            (true, false) => TCP_SYN,
        };
        let is_first = !self.is_seen;
        (self.is_born, self.is_seen) = (true, true);
        let sent = Sent {
            at_ns,
            flow: self.number,
            ip_length_bytes: self.ip_length_bytes((word >> 32) as u16),
            tcp_flags,
            is_udp: self.is_udp(),
            is_birth,
            is_first,
            is_last,
        };
        let next_ns = (!is_last).then(|| {
            if (word as u32) < TRAIN_ENDS {
                at_ns + self.pause_ns(random)
            } else {
                // 0.5 to 1.5 times the flow's spacing.
                let spacing_ns = u64::from(self.spacing_ns);
                at_ns + spacing_ns / 2 + ((spacing_ns * (word >> 48)) >> 16)
            }
        });
        (sent, next_ns)
    }

    #[inline(always)]
    fn ip_length_bytes(&self, bits: u16) -> u16 {
        let lengths = &LENGTHS[self.kind as usize];
        let steps = ((u32::from(bits) * u32::from(lengths.steps)) >> 16) as u16;
        // Branch-free, because a branch would be mispredicted half the time.
        let is_full = u16::from(bits & lengths.full_unless_0 != 0);
        let length_bytes = lengths.least_bytes + steps * lengths.step_bytes;
        length_bytes + is_full * (FULL_BYTES - length_bytes)
    }
}

/// IP length of a full packet.
const FULL_BYTES: u16 = 1_500;

/// Packet lengths of one kind of flow.
struct Lengths {
    least_bytes: u16,
    step_bytes: u16,
    /// Number of lengths, `step_bytes` apart.
    steps: u16,
    /// Mask. A packet is full if any of these random bits is set.
    full_unless_0: u16,
}

/// Indexed by [`Kind`].
const LENGTHS: [Lengths; 4] = [
    // Seven packets in eight are full.
    Lengths {
        least_bytes: 40,
        step_bytes: 1,
        steps: 1_460,
        full_unless_0: 7,
    },
    // Without and with TCP timestamps.
    Lengths {
        least_bytes: 40,
        step_bytes: 12,
        steps: 2,
        full_unless_0: 0,
    },
    Lengths {
        least_bytes: 40,
        step_bytes: 1,
        steps: 1_000,
        full_unless_0: 0,
    },
    Lengths {
        least_bytes: 28,
        step_bytes: 1,
        steps: 1_200,
        full_unless_0: 0,
    },
];
