// SPDX-License-Identifier: Apache-2.0
//! The behaviour of 400G, clock by clock: four lines, each after a queue; a switch that distributes
//! packets by two bits of the hash; and before it a combiner that merges packets of the most recent
//! flows. `docs/fpga.md` gives the results.

use std::collections::{BTreeMap, VecDeque};

use turboflow_engine_rtl::{Arrival, Key, LineConfig, Toeplitz};
use turboflow_merge::{Base, KeyHasher};
use turboflow_record::{TCP_ACK, TCP_SYN};

use crate::traffic::{Mix, Random, Shape, Traffic, key};

/// Minimum-length frames at 400G, in millions per second.
const MPPS: f64 = 595.2;
const LINES: usize = 4;
/// Maximum number of packets in a beat.
const BEAT: f64 = 4.0;
const CELL_NS: u64 = 1_000_000;

/// An input of a line: a packet, or several of one flow that the combiner merged.
type Entry = (Key, Base);

/// The most recent flows, and their packets. The one that waited longest makes room.
struct Combiner {
    entries: VecDeque<Entry>,
    size: usize,
}

impl Combiner {
    /// Takes a packet. Entries that leave go on to the lines, in the order of their flow.
    fn take(&mut self, packet: &Arrival, out: &mut Vec<Entry>) {
        let found = self.entries.iter().position(|(key, _)| *key == packet.key);
        let mut base = packet.base();
        if let Some((key, ahead)) = found.and_then(|at| self.entries.remove(at)) {
            // By the rule for joining a record of a line: decision 1.
            let joins = ahead.first_ns / CELL_NS == packet.time_ns / CELL_NS
                && ahead.first_ns <= packet.time_ns
                && packet.tcp_flags & (TCP_SYN | TCP_ACK) != TCP_SYN;
            if joins {
                let mut merged = ahead;
                merged.merge(&base);
                base = merged;
            } else {
                out.push((key, ahead));
            }
        } else if self.entries.len() == self.size {
            out.extend(self.entries.pop_front());
        }
        self.entries.push_back((packet.key, base));
    }
}

struct Card {
    hash: Toeplitz,
    combiner: Option<Combiner>,
    queues: [VecDeque<Entry>; LINES],
    /// Number of entries of a queue.
    depth: usize,
    /// What the lines took, by flow, in order.
    taken: BTreeMap<Key, Vec<Base>>,
    dropped: u64,
    deepest: usize,
}

impl Card {
    fn new(combined: usize, depth: usize) -> Self {
        let build = turboflow_engine_rtl::Build::V4;
        Self {
            hash: LineConfig::new(build, build.size(), KeyHasher::new(4)).hash(),
            combiner: (combined > 0).then(|| Combiner {
                entries: VecDeque::new(),
                size: combined,
            }),
            queues: Default::default(),
            depth,
            taken: BTreeMap::new(),
            dropped: 0,
            deepest: 0,
        }
    }

    /// Runs a clock: the packets of a beat arrive, and each line takes an entry.
    fn clock(&mut self, beat: &[Arrival], keep: bool) {
        let mut out = Vec::new();
        for packet in beat {
            match &mut self.combiner {
                Some(combiner) => combiner.take(packet, &mut out),
                None => out.push((packet.key, packet.base())),
            }
        }
        for entry in out {
            // Two bits of the tag. A card would use two more bits of the hash.
            let line = self.hash.place(&entry.0).tag as usize % LINES;
            if self.queues[line].len() < self.depth {
                self.queues[line].push_back(entry);
            } else {
                self.dropped += entry.1.packets;
            }
        }
        for queue in &mut self.queues {
            self.deepest = self.deepest.max(queue.len());
            if let Some((key, base)) = queue.pop_front().filter(|_| keep) {
                self.taken.entry(key).or_default().push(base);
            }
        }
    }

    /// Ends the cell: the content of the combiner goes on, and the queues drain.
    fn end(&mut self) {
        let rest = self.combiner.iter_mut().flat_map(|c| c.entries.drain(..));
        for (key, base) in rest.collect::<Vec<_>>() {
            let line = self.hash.place(&key).tag as usize % LINES;
            self.queues[line].push_back((key, base));
        }
        while self.queues.iter().any(|queue| !queue.is_empty()) {
            self.clock(&[], true);
        }
    }
}

/// Packets of which `share_of_one` in a thousand belong to one flow, and the others to a mix.
struct Source {
    traffic: Traffic,
    random: Random,
    share_of_one: u64,
}

impl Source {
    fn new(mix: Mix, flows: u64, share_of_one: u64) -> Self {
        let shape = Shape {
            mix,
            flows,
            key_bits: 104,
            cell_ns: CELL_NS,
            strange: false,
        };
        Self {
            traffic: Traffic::new(shape, 2),
            random: Random(3),
            share_of_one,
        }
    }

    fn packet(&mut self) -> Arrival {
        let mut packet = self.traffic.packet();
        if self.random.below(1_000) < self.share_of_one {
            packet.key = key(1 << 20, 104);
        }
        packet
    }
}

/// Runs this many clocks at a frequency, with minimum-length frames at line rate.
fn run(card: &mut Card, source: &mut Source, mhz: f64, clocks: u32, keep: bool) -> Vec<Arrival> {
    let (mut due, mut all) = (0.0, Vec::new());
    for _ in 0..clocks {
        due += MPPS / mhz;
        let mut beat = Vec::new();
        while due >= 1.0 && (beat.len() as f64) < BEAT {
            due -= 1.0;
            beat.push(source.packet());
        }
        card.clock(&beat, keep);
        if keep {
            all.extend(beat);
        }
    }
    all
}

/// Every packet is in an entry that a line took, or is counted; packets of a flow come in order.
#[test]
fn four_lines_take_what_is_not_counted_as_dropped_in_order() {
    for (combined, depth) in [(0, 64), (8, 64), (8, 8)] {
        let mut card = Card::new(combined, depth);
        let mut source = Source::new(Mix::Trains, 2_000, 200);
        let all = run(&mut card, &mut source, 200.0, 20_000, true);
        card.end();
        let found: u64 = card.taken.values().flatten().map(|base| base.packets).sum();
        assert_eq!(found + card.dropped, all.len() as u64);
        assert!(
            depth == 8 || combined == 0 || card.dropped == 0,
            "{}",
            card.dropped
        );
        for bases in card.taken.values() {
            let mut pairs = bases.windows(2);
            assert!(pairs.all(|pair| pair[0].last_ns <= pair[1].first_ns));
        }
        if card.dropped > 0 {
            continue;
        }
        let mut expected: BTreeMap<Key, Base> = BTreeMap::new();
        for packet in &all {
            let base = packet.base();
            let add = |flow: &mut Base| flow.merge(&base);
            expected.entry(packet.key).and_modify(add).or_insert(base);
        }
        for (key, bases) in &card.taken {
            let mut merged = bases[0];
            bases[1..].iter().for_each(|base| merged.merge(base));
            assert_eq!(merged, expected[key], "{key:x?}");
        }
    }
}

/// The share of packets that are dropped, and the largest fill level of a queue.
fn dropped(source: &mut Source, mhz: f64, combined: usize) -> (f64, usize) {
    const CLOCKS: u32 = 100_000;
    let mut card = Card::new(combined, 64);
    run(&mut card, source, mhz, CLOCKS, false);
    let packets = f64::from(CLOCKS) * MPPS / mhz;
    (card.dropped as f64 / packets, card.deepest)
}

/// One flow is too much for a single line, unless packets are combined. So are a few large flows
/// that share a line, and a small combiner forgets some of those. `--nocapture` shows the whole
/// table.
#[test]
fn at_175_mhz_a_combiner_of_32_keys_and_queues_of_64_drop_nothing() {
    let mixes = [
        ("even", Mix::Uniform, 0),
        ("Zipf", Mix::Zipf, 0),
        ("one flow of 40 %", Mix::Uniform, 400),
        ("one flow alone", Mix::Uniform, 1_000),
    ];
    for (name, mix, share) in mixes {
        for mhz in [150.0, 175.0, 200.0, 250.0] {
            let of = |combined| dropped(&mut Source::new(mix, 100_000, share), mhz, combined);
            let [none, eight, many] = [0, 8, 32].map(of);
            eprintln!("{name}, {mhz} MHz: {none:.4?} without, {eight:.4?} of 8, {many:.4?} of 32");
            // Four lines at 150 MHz are 0.8 % above the line rate, which no queue can even out.
            assert_eq!(many.0 == 0.0, mhz > 150.0 || share > 0, "{name}");
            assert_eq!(
                none.0 > 0.0,
                mhz < 175.0 || mix == Mix::Zipf || share > 0,
                "{name}"
            );
            assert!(mix != Mix::Zipf || mhz > 200.0 || eight.0 > 0.02, "{name}");
        }
    }
}
