// SPDX-License-Identifier: Apache-2.0
//! A host with a card: packets go to the card first. Those that it hands up are counted by the host
//! and given to the learner, as the engine does.

use std::collections::HashMap;

use turboflow_engine::MicroflowBatch;
use turboflow_engine_offload::model::{CardPacket, CardProfile, Handled, ModelCard};
use turboflow_engine_offload::{
    Decider, DeciderGone, Decision, FlowKey, FlowTable, Learner, LearnerConfig, LearnerCounts,
    Tapped, Verdict,
};

pub(crate) const MS: u64 = 1_000_000;
pub(crate) const SECOND: u64 = 1_000 * MS;
/// The learner's round, as in the engine in the kernel.
pub(crate) const ROUND_NS: u64 = MS;

/// A decider that decides by the packet of a flow that has this number.
pub(crate) struct AfterPackets {
    needed: u32,
    seen: HashMap<FlowKey, u32>,
}

impl AfterPackets {
    pub(crate) fn new(needed: u32) -> Self {
        Self {
            needed,
            seen: HashMap::new(),
        }
    }
}

impl Decider for AfterPackets {
    fn snap_bytes(&self) -> u32 {
        0
    }

    fn decide(&mut self, tapped: &Tapped<'_>) -> Result<Decision, DeciderGone> {
        let seen = self.seen.entry(tapped.key).or_default();
        *seen += 1;
        if *seen < self.needed {
            return Ok(Decision::Undecided);
        }
        self.seen.remove(&tapped.key);
        Ok(Decision::Decided(Verdict::PASS))
    }
}

/// The packets and bytes of a flow in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
}

impl Sum {
    fn add(&mut self, packets: u64, bytes: u64) {
        self.packets += packets;
        self.bytes += bytes;
    }
}

/// Sums by 5-tuple.
pub(crate) type Sums = HashMap<[u64; 5], Sum>;

pub(crate) struct World {
    pub(crate) card: ModelCard,
    learner: Learner<AfterPackets>,
    next_round_ns: u64,
    keeps_sums: bool,
    /// What was sent, what the host counted, and what the card's records contain.
    pub(crate) sent: Sums,
    pub(crate) by_host: Sums,
    pub(crate) by_card: Sums,
}

impl World {
    pub(crate) fn new(profile: CardProfile, needed: u32, keeps_sums: bool) -> Self {
        let config = LearnerConfig {
            idle_ns: 15 * SECOND,
            linger_ns: SECOND,
        };
        Self {
            card: ModelCard::new(profile, config.idle_ns),
            learner: Learner::new(AfterPackets::new(needed), config),
            next_round_ns: 0,
            keeps_sums,
            sent: Sums::new(),
            by_host: Sums::new(),
            by_card: Sums::new(),
        }
    }

    pub(crate) fn counts(&self) -> LearnerCounts {
        self.learner.counts()
    }

    /// Sends a packet; times must not decrease. Returns who counted it.
    pub(crate) fn packet(&mut self, packet: &CardPacket, now_ns: u64) -> Handled {
        while now_ns >= self.next_round_ns {
            let round_ns = self.next_round_ns;
            self.step(round_ns);
            // After a long silence, rounds continue from now.
            self.next_round_ns = (round_ns + ROUND_NS).max(now_ns / ROUND_NS * ROUND_NS);
        }
        let handled = self.card.take(packet, now_ns);
        let (words, bytes) = (
            packet.key.directed(packet.is_reversed),
            u64::from(packet.ip_length_bytes),
        );
        if self.keeps_sums {
            self.sent.entry(words).or_default().add(1, bytes);
        }
        if handled == Handled::ByHost {
            if self.keeps_sums {
                self.by_host.entry(words).or_default().add(1, bytes);
            }
            self.learner.take(&Tapped {
                key: packet.key,
                time_ns: now_ns,
                is_reversed: packet.is_reversed,
                tcp_flags: packet.tcp_flags,
                frame_bytes: packet.ip_length_bytes + 14,
                frame: &[],
            });
        }
        handled
    }

    pub(crate) fn step(&mut self, now_ns: u64) {
        self.card.advance(now_ns);
        self.learner.step(&mut self.card, now_ns).unwrap();
    }

    /// Removes the row of a flow, as if another connection with its key began.
    pub(crate) fn remove(&mut self, key: FlowKey) {
        self.learner.begins_anew(key);
    }

    /// Takes the records that the card has counted since the last call.
    pub(crate) fn collect(&mut self) {
        let mut batch = MicroflowBatch::default();
        self.card.collect(&mut batch).unwrap();
        for record in batch.v4::<0>() {
            let key = [record.key[0], record.key[1], 0, 0, 0];
            let sum = self.by_card.entry(key).or_default();
            sum.add(record.base.packets, record.base.bytes);
        }
        for record in batch.v6::<0>() {
            let sum = self.by_card.entry(record.key).or_default();
            sum.add(record.base.packets, record.base.bytes);
        }
    }

    /// Every packet of every flow is in exactly one place.
    pub(crate) fn check_conservation(&mut self) {
        self.collect();
        let mut found = self.by_host.clone();
        for (key, sum) in &self.by_card {
            found.entry(*key).or_default().add(sum.packets, sum.bytes);
        }
        assert_eq!(found.len(), self.sent.len());
        for (key, sum) in &self.sent {
            assert_eq!(found.get(key), Some(sum), "{key:x?}");
        }
    }
}

/// The key of a flow by number.
pub(crate) fn key(number: u32) -> FlowKey {
    let (hosts, transport) = (u64::from(number) | 0xffff_ffff << 32, 0x406_0050_1234);
    match number % 5 {
        // One flow in five is IPv6: its last word contains the family.
        0 => FlowKey::of_words([number.into(), 1, 2, 3, transport | 0x200_0000_0000]),
        _ => FlowKey::of_words([hosts, transport, 0, 0, 0]),
    }
}

pub(crate) fn packet(number: u32, is_reversed: bool) -> CardPacket {
    CardPacket {
        key: key(number),
        is_reversed,
        ip_length_bytes: 40 + number % 1_000,
        tcp_flags: 0x10,
    }
}
