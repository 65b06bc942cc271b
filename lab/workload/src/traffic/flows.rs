// SPDX-License-Identifier: Apache-2.0
//! Chooses the next flow, and derives a flow's addresses from its number. There is no table of
//! flows: everything is a function of the number.

use turboflow_record::{Family, FiveTuple};

use super::config::{ConfigError, Skew, check_flows};
use super::zipf::Zipf;
use crate::random::{Random, mix, scale};

/// Trains active at a time. On average, this many other packets lie between two packets of a train.
pub const CONCURRENT_TRAINS: usize = 32;

/// An endless sequence of flow numbers, `0..flows`, with a given skew. Under Zipf's law, number 0
/// is the heaviest flow.
#[derive(Clone, Debug)]
pub struct FlowNumbers {
    random: Random,
    draws: Draws,
    trains_begun: u64,
}

#[derive(Clone, Debug)]
enum Draws {
    Uniform {
        flows: u64,
    },
    Zipf {
        zipf: Zipf,
        trains: Box<[u64; CONCURRENT_TRAINS]>,
        ends: u64,
    },
}

/// Flow numbers for benchmarks that need keys but no frames; see [`five_tuple`].
///
/// # Errors
/// If there are no flows or too many, or the skew is out of range.
pub fn keys(flows: u64, skew: Skew, seed: u64) -> Result<FlowNumbers, ConfigError> {
    check_flows(flows)?;
    skew.check()?;
    let mut random = Random::new(seed);
    let draws = match skew {
        Skew::Uniform => Draws::Uniform { flows },
        Skew::Zipf {
            exponent,
            mean_train_length,
        } => {
            let zipf = Zipf::new(flows, exponent);
            let trains = Box::new(std::array::from_fn(|_| zipf.draw(&mut random)));
            // After each packet, the train ends with probability 1 / mean, as a 32-bit fraction.
            let ends = ((1_u64 << 32) as f64 / mean_train_length).round() as u64;
            Draws::Zipf { zipf, trains, ends }
        }
    };
    let trains_begun = if matches!(skew, Skew::Uniform) {
        0
    } else {
        CONCURRENT_TRAINS as u64
    };
    Ok(FlowNumbers {
        random,
        draws,
        trains_begun,
    })
}

impl FlowNumbers {
    /// The flow of the next packet.
    #[inline(always)]
    pub fn next_number(&mut self) -> u64 {
        let word = self.random.word();
        match &mut self.draws {
            Draws::Uniform { flows } => scale(word, *flows),
            Draws::Zipf { zipf, trains, ends } => {
                let train = &mut trains[word as usize % CONCURRENT_TRAINS];
                let number = *train;
                if word >> 32 < *ends {
                    *train = zipf.draw(&mut self.random);
                    self.trains_begun += 1;
                }
                number
            }
        }
    }

    /// Number of packet trains begun; 0 without trains.
    #[must_use]
    pub const fn trains_begun(&self) -> u64 {
        self.trains_begun
    }
}

impl Iterator for FlowNumbers {
    type Item = u64;

    #[inline(always)]
    fn next(&mut self) -> Option<u64> {
        Some(self.next_number())
    }
}

/// A flow: its rank among the active flows, and its number among all flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flow {
    /// Below the number of active flows; 0 is the heaviest.
    pub(super) rank: u64,
    /// The rank, plus the number of active flows for each earlier flow with this rank.
    pub(super) number: u64,
}

/// Addresses and ports of a flow: a bijection of the flow's number, so they are unique.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Endpoints {
    /// The low 32 bits of the source address, in host order. In IPv4, the whole address.
    pub(crate) source: u32,
    pub(crate) destination: u32,
    pub(crate) source_port: u16,
    pub(crate) destination_port: u16,
}

/// Leading bytes of every generated IPv6 address, from the documentation range (RFC 3849).
pub(super) const PREFIX_V6: [u8; 12] = [0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0];

const DESTINATION_PORTS: [u16; 4] = [443, 80, 53, 8_080];

impl Endpoints {
    /// Uses the 64 bits of the mixed number: 23 for each address (clients in 10.0.0.0/9, servers in
    /// 10.128.0.0/9), 16 for the source port, 2 for the destination port.
    #[inline(always)]
    pub(crate) const fn of(flow_number: u64) -> Self {
        let bits = mix(flow_number.wrapping_add(0x9e37_79b9_7f4a_7c15));
        let host_mask = (1 << 23) - 1;
        Self {
            source: 10 << 24 | (bits & host_mask) as u32,
            destination: 10 << 24 | 1 << 23 | (bits >> 23 & host_mask) as u32,
            source_port: (bits >> 46) as u16,
            destination_port: DESTINATION_PORTS[(bits >> 62) as usize],
        }
    }

    #[inline(always)]
    pub(crate) fn five_tuple(&self, family: Family, protocol: u8) -> FiveTuple {
        let (source, destination) = (self.source.to_be_bytes(), self.destination.to_be_bytes());
        let ([s0, s1], [d0, d1]) = (
            self.source_port.to_be_bytes(),
            self.destination_port.to_be_bytes(),
        );
        let ports = [s0, s1, d0, d1];
        match family {
            Family::V4 => {
                let mut addresses = [0; 8];
                addresses[..4].copy_from_slice(&source);
                addresses[4..].copy_from_slice(&destination);
                FiveTuple::v4(addresses, ports, protocol)
            }
            Family::V6 => {
                FiveTuple::v6(address_v6(source), address_v6(destination), ports, protocol)
            }
        }
    }
}

/// The 5-tuple of a flow. It is unique, even compared with all reversed 5-tuples.
#[inline(always)]
#[must_use]
pub fn five_tuple(flow_number: u64, family: Family, protocol: u8) -> FiveTuple {
    Endpoints::of(flow_number).five_tuple(family, protocol)
}

fn address_v6(low: [u8; 4]) -> [u8; 16] {
    let mut address = [0; 16];
    address[..12].copy_from_slice(&PREFIX_V6);
    address[12..].copy_from_slice(&low);
    address
}

/// The order in which new flows replace old ones. Every rank has one turn per round, heavy and
/// light flows mixed, by multiplication modulo the number of flows.
#[derive(Clone, Debug)]
pub(super) struct Births {
    flows: u64,
    multiplier: u64,
    /// Maps a rank to its turn, as a share of all turns: a 64-bit fraction, rounded up. With fewer
    /// than 2^32 ranks, the rounding error is less than a turn. Whole rounds overflow, so no
    /// division is needed.
    share_by_rank: u64,
    /// Completed rounds.
    round: u64,
    /// Births in this round.
    turn: u64,
    /// Births in this round as a share of all turns, rounded down.
    turn_share: u64,
    count: u64,
}

impl Births {
    pub(super) fn new(flows: u64) -> Self {
        // The golden ratio spreads neighbouring turns as far from each other as possible.
        let start = (flows as f64 * 0.618_033_988_749_894_9) as u64;
        let multiplier = (start.max(1)..=flows.max(1))
            .find(|&candidate| inverse(candidate, flows).is_some())
            .unwrap_or(1);
        let inverse = inverse(multiplier, flows).expect("1 has an inverse");
        let share_by_rank = (u128::from(inverse) << 64).div_ceil(u128::from(flows));
        Self {
            flows,
            multiplier,
            // An inverse is less than the number of flows, so its share is less than 1 and fits.
            share_by_rank: share_by_rank as u64,
            round: 0,
            turn: 0,
            turn_share: 0,
            count: 0,
        }
    }

    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    /// The flow that has this rank now. The initial flows have numbers below `flows`.
    #[inline(always)]
    pub(super) const fn flow(&self, rank: u64) -> Flow {
        if self.count == 0 {
            return Flow { rank, number: rank };
        }
        let had_its_turn = rank.wrapping_mul(self.share_by_rank) < self.turn_share;
        Flow {
            rank,
            number: (self.round + had_its_turn as u64) * self.flows + rank,
        }
    }

    /// The flow that is replaced next.
    pub(super) const fn next_replaced(&self) -> Flow {
        self.flow(self.turn * self.multiplier % self.flows)
    }

    /// Replaces that flow, and returns the new one.
    pub(super) const fn give_birth(&mut self) -> Flow {
        let Flow { rank, number } = self.next_replaced();
        self.count += 1;
        self.turn += 1;
        if self.turn == self.flows {
            self.turn = 0;
            self.round += 1;
        }
        self.turn_share = (((self.turn as u128) << 64) / self.flows as u128) as u64;
        Flow {
            rank,
            number: number + self.flows,
        }
    }
}

/// The inverse of `value` modulo `modulus`, by Euclid's algorithm; `None` if they have a common
/// divisor.
fn inverse(value: u64, modulus: u64) -> Option<u64> {
    let (mut r0, mut r1) = (i128::from(modulus), i128::from(value % modulus));
    let (mut t0, mut t1) = (0, 1);
    while r1 != 0 {
        let quotient = r0 / r1;
        (r0, r1) = (r1, r0 - quotient * r1);
        (t0, t1) = (t1, t0 - quotient * t1);
    }
    (r0 == 1).then(|| t0.rem_euclid(i128::from(modulus)) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_flow_has_its_turn_once_a_round(
            flows in prop_oneof![1..=100u64, 1..=u64::from(u32::MAX), Just(u64::from(u32::MAX))],
            turn in any::<u64>(),
            ranks in proptest::collection::vec(any::<u64>(), 8),
        ) {
            let mut births = Births::new(flows);
            let inverse = inverse(births.multiplier, flows).unwrap();
            births.turn = turn % flows;
            births.count = births.turn;
            let Flow { rank: born, .. } = births.give_birth();
            let next_replaced = births.turn * births.multiplier % flows;
            for rank in ranks.into_iter().map(|rank| rank % flows).chain([born, next_replaced]) {
                let had_its_turn = rank * inverse % flows < births.turn || births.round == 1;
                prop_assert_eq!(births.flow(rank).number, u64::from(had_its_turn) * flows + rank);
            }
        }
    }
}
