// SPDX-License-Identifier: Apache-2.0
//! Traffic of an attacker who maximises the meter's work.

use turboflow_merge::KeyHasher;
use turboflow_record::{Family, TCP_ACK, TCP_SYN, WORDS_V4};

use super::arrival::{Arrival, Source};
use super::config::WorkloadError;
use super::statistics::FlowCounts;
use crate::random::mix;
use crate::traffic::{Endpoints, TCP};

/// IP bytes of every packet, for the shortest Ethernet frame.
pub const ATTACK_IP_BYTES: u16 = 46;
/// Maximum number of keys tried in the search for collisions.
const TRIES_MAX: u64 = 1 << 32;
/// Maximum number of colliding flows.
pub const COLLIDING_FLOWS_MAX: u64 = 10_000_000;

/// The hash function that selects a key's slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placing {
    /// CRC-32 over the 13 bytes of addresses, ports and protocol, as in switches (the slides'
    /// program). It has no secret, so any sender can choose colliding keys.
    Crc32,
    /// TurboFlow's keyed hash. Choosing keys requires the seed.
    Engine {
        /// The meter's `--seed`.
        seed: u64,
    },
}

/// The kind of attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attack {
    /// Flows that send in turn: between two packets of a flow, every other flow sends one.
    AllAtOnce {
        /// Flows.
        flows: u64,
    },
    /// Flows that share few slots of a table and send in turn, so that every packet evicts.
    Collisions {
        /// Flows.
        flows: u64,
        /// The hash function of the table.
        placing: Placing,
        /// Slots of the table.
        slots: u32,
        /// Number of slots that the flows fall into: the first ones of the table.
        into_slots: u32,
    },
    /// Every packet starts a new flow.
    SinglePackets,
}

/// Configuration of adversarial traffic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdversarialConfig {
    /// The kind of attack.
    pub attack: Attack,
    /// Packets per second, evenly spaced.
    pub packets_per_second: f64,
}

impl AdversarialConfig {
    pub(super) fn check(&self) -> Result<(), WorkloadError> {
        let rate = self.packets_per_second;
        // Timestamps have a resolution of one nanosecond.
        if !(rate > 0.0 && rate <= 1e9) {
            return Err(WorkloadError::PacketRate { value: rate });
        }
        match self.attack {
            Attack::SinglePackets => Ok(()),
            Attack::AllAtOnce { flows } => match flows {
                0 => Err(WorkloadError::Flows { flows }),
                _ => Ok(()),
            },
            Attack::Collisions {
                flows,
                slots,
                into_slots,
                ..
            } => {
                if !(2..=COLLIDING_FLOWS_MAX).contains(&flows) {
                    return Err(WorkloadError::Flows { flows });
                }
                let tries = flows as f64 * f64::from(slots) / f64::from(into_slots);
                if into_slots == 0 || into_slots > slots || tries > TRIES_MAX as f64 / 2.0 {
                    return Err(WorkloadError::Slots {
                        flows,
                        slots,
                        into_slots,
                    });
                }
                Ok(())
            }
        }
    }

    /// New flows per second in the long run.
    pub(super) const fn flows_per_second(&self) -> f64 {
        match self.attack {
            Attack::SinglePackets => self.packets_per_second,
            Attack::AllAtOnce { .. } | Attack::Collisions { .. } => 0.0,
        }
    }
}

/// The numbers of an attack's flows.
#[derive(Clone, Debug)]
enum Flows {
    /// Consecutive numbers from 0 to below this one.
    First(u64),
    /// Selected flows.
    Chosen(Box<[u64]>),
}

/// The packets of an attack.
#[derive(Clone, Debug)]
pub(super) struct Adversarial {
    flows: Flows,
    /// Index of the next packet's flow.
    turn: u64,
    packets: u64,
    start_ns: u64,
    gap_ns: f64,
    /// Separates the flow numbers of different seeds.
    salt: u64,
}

impl Adversarial {
    pub(super) fn new(config: AdversarialConfig, start_ns: u64, seed: u64) -> Self {
        let salt = mix(seed) >> 1;
        let flows = match config.attack {
            Attack::AllAtOnce { flows } => Flows::First(flows),
            Attack::SinglePackets => Flows::First(u64::MAX),
            Attack::Collisions {
                flows,
                placing,
                slots,
                into_slots,
            } => Flows::Chosen(colliding(flows, placing, slots, into_slots, salt)),
        };
        Self {
            flows,
            turn: 0,
            packets: 0,
            start_ns,
            gap_ns: 1e9 / config.packets_per_second,
            salt,
        }
    }

    const fn count(&self) -> u64 {
        match &self.flows {
            Flows::First(count) => *count,
            Flows::Chosen(flows) => flows.len() as u64,
        }
    }
}

/// That many flows that fall into the first slots, ordered by number. The order is independent of
/// their slots.
fn colliding(flows: u64, placing: Placing, slots: u32, into: u32, salt: u64) -> Box<[u64]> {
    let hasher = match placing {
        Placing::Crc32 => None,
        Placing::Engine { seed } => Some(KeyHasher::new(seed)),
    };
    let place = |ends: &Endpoints| match &hasher {
        None => crc32(&key_bytes(ends)) % slots,
        Some(hasher) => {
            let mut key = [0; WORDS_V4];
            key.copy_from_slice(ends.five_tuple(Family::V4, TCP).words());
            hasher.hash(&key).slot(slots) as u32
        }
    };
    (0..TRIES_MAX)
        .map(|number| number.wrapping_add(salt))
        .filter(|&number| place(&Endpoints::of(number)) < into)
        .take(flows as usize)
        .collect()
}

fn key_bytes(ends: &Endpoints) -> [u8; 13] {
    let mut bytes = [0; 13];
    bytes[..4].copy_from_slice(&ends.source.to_be_bytes());
    bytes[4..8].copy_from_slice(&ends.destination.to_be_bytes());
    bytes[8..10].copy_from_slice(&ends.source_port.to_be_bytes());
    bytes[10..12].copy_from_slice(&ends.destination_port.to_be_bytes());
    bytes[12] = TCP;
    bytes
}

/// CRC-32 as in Ethernet: reflected, polynomial 0x04c11db7.
fn crc32(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut byte = 0;
        while byte < 256 {
            let (mut rest, mut bit) = (byte as u32, 0);
            while bit < 8 {
                rest = (rest >> 1) ^ ((rest & 1) * 0xedb8_8320);
                bit += 1;
            }
            table[byte] = rest;
            byte += 1;
        }
        table
    };
    !bytes.iter().fold(u32::MAX, |rest, byte| {
        (rest >> 8) ^ TABLE[((rest ^ u32::from(*byte)) & 0xff) as usize]
    })
}

impl Source for Adversarial {
    #[inline(always)]
    fn next_arrival(&mut self, end_ns: u64) -> Option<Arrival> {
        let timestamp_ns = self.start_ns + (self.packets as f64 * self.gap_ns) as u64;
        if timestamp_ns >= end_ns {
            return None;
        }
        let number = match &self.flows {
            Flows::First(_) => self.turn.wrapping_add(self.salt),
            Flows::Chosen(flows) => flows[self.turn as usize],
        };
        let is_first = self.packets < self.count();
        self.packets += 1;
        self.turn += 1;
        if self.turn == self.count() {
            self.turn = 0;
        }
        Some(Arrival {
            timestamp_ns,
            flow: number,
            ends: Endpoints::of(number),
            family: Family::V4,
            protocol: TCP,
            ip_length_bytes: ATTACK_IP_BYTES,
            tcp_flags: if is_first { TCP_SYN } else { TCP_ACK },
            hops: 0,
        })
    }

    fn flow_counts(&self) -> FlowCounts {
        let births = self.packets.min(self.count());
        FlowCounts {
            seen: births,
            births,
            deaths: 0,
            active: births,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;
    use crate::workloads::{Kind, Workload, WorkloadConfig};

    fn packets(attack: Attack, packets: u64) -> Vec<Arrival> {
        let kind = Kind::Adversarial(AdversarialConfig {
            attack,
            packets_per_second: 1e7,
        });
        let config = WorkloadConfig {
            packets: Some(packets),
            ..WorkloadConfig::new(kind)
        };
        Workload::new(&config).unwrap().collect()
    }

    /// Number of packets whose slot is empty or holds another flow.
    fn evictions(packets: &[Arrival], place: impl Fn(&Arrival) -> u32) -> usize {
        let mut table = HashMap::new();
        let misses = packets
            .iter()
            .filter(|packet| table.insert(place(packet), packet.flow) != Some(packet.flow));
        misses.count()
    }

    #[test]
    fn colliding_keys_evict_each_other_in_the_engines_table() {
        let hasher = KeyHasher::new(7);
        let place = |packet: &Arrival| {
            let mut key = [0; WORDS_V4];
            key.copy_from_slice(packet.five_tuple().words());
            hasher.hash(&key).slot(32_768) as u32
        };
        let attack = |seed| Attack::Collisions {
            flows: 500,
            placing: Placing::Engine { seed },
            slots: 32_768,
            into_slots: 16,
        };
        let found = packets(attack(7), 5_000);
        assert!(found.iter().all(|packet| place(packet) < 16));
        assert_eq!(evictions(&found, place), 5_000);
        let flows: HashSet<_> = found.iter().map(|packet| packet.flow).collect();
        assert_eq!(flows.len(), 500);
        // Without the seed, the chosen keys collide no more often than others.
        assert!(evictions(&packets(attack(8), 5_000), place) < 1_000);
    }

    #[test]
    fn colliding_keys_evict_each_other_in_a_switchs_table() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        let attack = Attack::Collisions {
            flows: 300,
            placing: Placing::Crc32,
            slots: 4_096,
            into_slots: 3,
        };
        let found = packets(attack, 3_000);
        let place = |packet: &Arrival| crc32(&key_bytes(&packet.ends)) % 4_096;
        assert!(found.iter().all(|packet| place(packet) < 3));
        assert_eq!(evictions(&found, place), 3_000);
    }

    #[test]
    fn each_single_packet_is_a_new_flow() {
        let found = packets(Attack::SinglePackets, 100_000);
        let keys: HashSet<_> = found.iter().map(Arrival::five_tuple).collect();
        assert_eq!(keys.len(), 100_000);
    }

    #[test]
    fn all_at_once_comes_round_and_round() {
        let found = packets(Attack::AllAtOnce { flows: 1_000 }, 3_000);
        let keys: HashSet<_> = found[..1_000].iter().map(Arrival::five_tuple).collect();
        assert_eq!(keys.len(), 1_000);
        for (packet, later) in found.iter().zip(&found[1_000..]) {
            assert_eq!(packet.five_tuple(), later.five_tuple());
        }
        assert_eq!(found[2_999].timestamp_ns - found[0].timestamp_ns, 299_900);
    }

    #[test]
    fn impossible_collisions_are_refused() {
        let collisions = |flows, slots, into_slots| Attack::Collisions {
            flows,
            placing: Placing::Crc32,
            slots,
            into_slots,
        };
        for (attack, words) in [
            (collisions(1, 10, 1), "1 flows"),
            (collisions(10, 10, 0), "10 flows into 0 of 10 slots"),
            (collisions(10, 10, 11), "10 flows into 11 of 10 slots"),
            (
                collisions(10_000_000, u32::MAX, 1),
                "10000000 flows into 1 of",
            ),
            (Attack::AllAtOnce { flows: 0 }, "0 flows"),
        ] {
            let config = AdversarialConfig {
                attack,
                packets_per_second: 1.0,
            };
            let error = config.check().unwrap_err().to_string();
            assert!(error.starts_with(words), "{error}");
        }
    }
}
