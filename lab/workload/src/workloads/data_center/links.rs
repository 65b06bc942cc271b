// SPDX-License-Identifier: Apache-2.0
//! The links whose packets cross the watched switch, slot by slot.

use super::sender::{FlowSource, HostLink, Sender};
use super::{
    DATA_IP_BYTES, DataCenterConfig, HOST_BITS_PER_SECOND, HOSTS, HOSTS_PER_RACK, SLOT_NS, Switch,
};
use crate::random::{Random, mix};

/// The links, and the order in which they send.
#[derive(Clone, Debug)]
pub(super) struct Links {
    /// Sorted by phase.
    senders: Vec<Sender>,
    /// Indices of links that have a packet or had one in the last round, in the same order.
    busy: Vec<u16>,
    /// Index in `busy` of the next sender.
    turn: usize,
    round_ns: u64,
    next_birth_ns: u64,
    mean_birth_gap_ns: f64,
    flow_source: FlowSource,
    random: Random,
}

impl Links {
    pub(super) fn new(config: DataCenterConfig, begin_ns: u64, seed: u64) -> Self {
        let mut random = Random::new(mix(seed) ^ 0x11a7);
        let mut senders = senders(config.switch, &mut random);
        senders.sort_by_key(|sender| sender.phase_ns);
        let bits = FlowSource::mean_packets() * f64::from(DATA_IP_BYTES) * 8.0;
        let births_per_ns = config.load * HOST_BITS_PER_SECOND / bits / 1e9;
        let shares: f64 = senders.iter().map(|sender| sender.share).sum();
        Self {
            senders,
            busy: Vec::new(),
            turn: 0,
            round_ns: begin_ns,
            next_birth_ns: begin_ns,
            mean_birth_gap_ns: 1.0 / (births_per_ns * shares),
            flow_source: FlowSource::new(seed),
            random,
        }
    }

    /// The sender and time of the next slot with a packet.
    #[inline(always)]
    pub(super) fn next_slot(&mut self) -> (&mut Sender, u64) {
        let place = loop {
            let Some(&place) = self.busy.get(self.turn) else {
                self.next_round();
                continue;
            };
            if self.senders[usize::from(place)].has_packet() {
                break place;
            }
            self.busy.remove(self.turn);
        };
        self.turn += 1;
        let sender = &mut self.senders[usize::from(place)];
        let now_ns = self.round_ns + sender.phase_ns;
        (sender, now_ns)
    }

    #[inline(never)]
    fn next_round(&mut self) {
        self.turn = 0;
        self.round_ns += SLOT_NS;
        while self.next_birth_ns <= self.round_ns {
            self.give_birth();
            let gap_ns = self.random.exponential() * self.mean_birth_gap_ns;
            self.next_birth_ns += gap_ns as u64;
        }
    }

    /// The Poisson processes of all links add up to one, whose events go to each link by its share.
    fn give_birth(&mut self) {
        let place = loop {
            let place = self.random.below(self.senders.len() as u64) as usize;
            if self.random.fraction() < self.senders[place].share {
                break place;
            }
        };
        self.senders[place].admit(&mut self.flow_source);
        if let Err(at) = self.busy.binary_search(&(place as u16)) {
            self.busy.insert(at, place as u16);
        }
    }
}

fn senders(switch: Switch, random: &mut Random) -> Vec<Sender> {
    let elsewhere = (HOSTS - HOSTS_PER_RACK) as f64 / (HOSTS - 1) as f64;
    let (hosts, kinds): (u64, &[_]) = match switch {
        // Links from the rack's hosts, and links to them with traffic from other racks. Both queue
        // the flow with the fewest packets left first.
        Switch::TopOfRack => (HOSTS_PER_RACK, &[(true, 1.0), (false, elsewhere)]),
        // From all hosts, only traffic that leaves their racks.
        Switch::Aggregation => (HOSTS, &[(true, elsewhere)]),
    };
    let links = kinds
        .iter()
        .flat_map(|&kind| (0..hosts).map(move |host| (host, kind)));
    links
        .map(|(host, (is_up, share))| {
            let link = HostLink {
                host: host as u8,
                is_up,
                leaves_rack: switch == Switch::Aggregation,
            };
            Sender::new(link, random.below(SLOT_NS), share)
        })
        .collect()
}
