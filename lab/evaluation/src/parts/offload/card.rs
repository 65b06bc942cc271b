// SPDX-License-Identifier: Apache-2.0
//! Runs our engine's learner on the model card, with the traffic of the authors' sheets scaled by
//! 1:1000: a thousandth of the flows, packets, rows and rates. Times are not scaled, so each flow
//! behaves as at full size.

use std::collections::HashMap;

use turboflow_engine_offload::model::{CardPacket, CardProfile, Handled, ModelCard};
use turboflow_engine_offload::{
    Decider, DeciderGone, Decision, FlowKey, Learner, LearnerConfig, Tapped, Verdict,
};

use super::host::{FLOW_LIFE_SECONDS, Load};

/// The factor by which everything is scaled down.
pub(super) const SCALE: f64 = 1_000.0;

const SECOND_NS: u64 = 1_000_000_000;
/// Time between two rounds of the learner, as in the engine.
const ROUND_NS: u64 = 1_000_000;
/// All flows begin at once, and a tenth of them is replaced every second. The time before this is
/// the learning phase.
const LEARNED_AFTER_NS: u64 = 10 * SECOND_NS;
const MEASURED_NS: u64 = 5 * SECOND_NS;
/// `--row-idle` of the engine: the row of an ended flow is removed after this time.
const IDLE_NS: u64 = 15 * SECOND_NS;

/// What user space saw after the learning phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) packets: u64,
    pub(super) at_host: u64,
    /// Rows that the card refused for any reason.
    pub(super) refused: u64,
    /// Packets that reached the host more than 10 ms after the one that decided their flow. If rows
    /// are refused, they include all later packets of flows without a row.
    pub(super) late: u64,
}

impl Seen {
    pub(super) fn host_share(self) -> f64 {
        self.at_host as f64 / self.packets as f64
    }
}

/// Decides a flow when it has seen `needed` of its packets.
struct AfterPackets {
    needed: u32,
    seen: HashMap<FlowKey, u32>,
}

impl Decider for AfterPackets {
    fn snap_bytes(&self) -> u32 {
        0
    }

    fn decide(&mut self, tapped: &Tapped<'_>) -> Result<Decision, DeciderGone> {
        let seen = self.seen.entry(tapped.key).or_default();
        *seen += 1;
        Ok(match *seen < self.needed {
            true => Decision::Undecided,
            false => Decision::Decided(Verdict::PASS),
        })
    }
}

/// The paper's card with this learning rate, scaled by 1:1000.
fn profile(learning_rate: f64) -> CardProfile {
    let full = CardProfile::default();
    CardProfile {
        rows: (f64::from(full.rows) / SCALE) as u32,
        learning_rate: (learning_rate / SCALE) as u64,
        accesses_per_second: (full.accesses_per_second as f64 / SCALE) as u64,
        ..full
    }
}

/// Runs the traffic of a load over a card that learns `learning_rate` rows/s at full size. A flow
/// is decided by its packet number `deciding_packet`.
pub(super) fn simulate(load: Load, learning_rate: f64, deciding_packet: u32) -> Seen {
    let flows = (load.active_flows / SCALE) as u64;
    let packets_per_s = load.packets_per_second / SCALE;
    let mut card = ModelCard::new(profile(learning_rate), IDLE_NS);
    let decider = AfterPackets {
        needed: deciding_packet,
        seen: HashMap::new(),
    };
    let config = LearnerConfig {
        idle_ns: IDLE_NS,
        linger_ns: SECOND_NS,
    };
    let mut learner = Learner::new(decider, config);
    let mut decided_ns: HashMap<FlowKey, (u32, u64)> = HashMap::new();
    let (mut seen, mut round_ns, mut refused_before) = (Seen::default(), 0, 0);
    for number in 0.. {
        let now_ns = (number as f64 * 1e9 / packets_per_s) as u64;
        if now_ns >= LEARNED_AFTER_NS + MEASURED_NS {
            break;
        }
        while round_ns <= now_ns {
            learner
                .step(&mut card, round_ns)
                .expect("a model card answers");
            round_ns += ROUND_NS;
        }
        let is_learned = now_ns >= LEARNED_AFTER_NS;
        if !is_learned {
            refused_before = learner.counts().refused();
        }
        let packet = packet(number % flows, flows, now_ns);
        seen.packets += u64::from(is_learned);
        if let Handled::ByHost = card.take(&packet, now_ns) {
            seen.at_host += u64::from(is_learned);
            let (packets, decided_ns) = decided_ns.entry(packet.key).or_default();
            *packets += 1;
            if *packets == deciding_packet {
                *decided_ns = now_ns;
            }
            let is_late = *packets > deciding_packet && now_ns > *decided_ns + 10 * ROUND_NS;
            seen.late += u64::from(is_learned && is_late);
            learner.take(&Tapped {
                key: packet.key,
                time_ns: now_ns,
                is_reversed: false,
                tcp_flags: 0,
                frame_bytes: 60,
                frame: &[],
            });
        }
    }
    seen.refused = learner.counts().refused() - refused_before;
    seen
}

/// Flows send in turn. Each is replaced at the end of its life, one after another.
fn packet(place: u64, flows: u64, now_ns: u64) -> CardPacket {
    let life_ns = FLOW_LIFE_SECONDS * SECOND_NS as f64;
    let age = now_ns as f64 / life_ns + place as f64 / flows as f64;
    // UDP over IPv4; the flow's number takes the place of its addresses.
    let number = age as u64 * flows + place;
    let transport = 0x411_0050_1234;
    CardPacket {
        key: FlowKey::of_words([number | 0xffff_ffff << 32, transport, 0, 0, 0]),
        is_reversed: false,
        ip_length_bytes: 46,
        tcp_flags: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::host::FAST;
    use super::*;

    #[test]
    fn a_prompt_card_leaves_the_host_the_packets_that_decide() {
        let load = Load::of(FAST, "1M");
        let seen = simulate(load, 1e6, 10);
        // Each flow sends 89 packets per second, so few arrive in the millisecond before its row.
        assert_eq!((seen.refused, seen.late), (0, 0), "{seen:?}");
        let expected = 10.0 / load.packets_per_flow();
        assert!((seen.host_share() / expected - 1.0).abs() < 0.1, "{seen:?}");
        assert_eq!(simulate(load, 1e6, 10), seen);
    }

    /// Refused flows ask again, so half of them get rows, but late in their lives. With b births
    /// and r rows per second, a share of (r/b)/ln(1/(1 - r/b)) = 72 % of the packets meets no row.
    #[test]
    fn a_card_that_learns_half_of_the_flows_leaves_the_host_most_packets() {
        let seen = simulate(Load::of(FAST, "20M"), 1e6, 1);
        assert!(seen.refused > 0);
        assert!((0.65..0.8).contains(&seen.host_share()), "{seen:?}");
    }
}
