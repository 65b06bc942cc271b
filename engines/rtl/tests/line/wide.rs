// SPDX-License-Identifier: Apache-2.0
//! 400G in behaviour, clock by clock: four lines, each behind a queue, a switch that deals packets
//! by two bits of the hash, and a combiner in front that merges packets of the flows that came
//! last. `docs/fpga.md` has what it shows.

use std::collections::{BTreeMap, VecDeque};

use turboflow_engine_rtl::{Arrival, Key, LineConfig, Toeplitz};
use turboflow_merge::{Base, KeyHasher};
use turboflow_record::{TCP_ACK, TCP_SYN};

use crate::traffic::{Mix, Random, Shape, Traffic, key};

/// Minimum frames of 400G, in millions a second.
const MPPS: f64 = 595.2;
const LINES: usize = 4;
/// Packets of a beat at most.
const BEAT: f64 = 4.0;
const CELL_NS: u64 = 1_000_000;

/// What a line takes: a packet, or some of one flow that the combiner merged.
type Entry = (Key, Base);

/// Flows that came last, and their packets. The one that waited longest makes room.
struct Combiner {
    entries: VecDeque<Entry>,
    size: usize,
}

impl Combiner {
    /// Takes a packet. What leaves goes on to the lines, in the order of its flow.
    fn take(&mut self, packet: &Arrival, out: &mut Vec<Entry>) {
        let found = self.entries.iter().position(|(key, _)| *key == packet.key);
        let mut base = packet.base();
        if let Some((key, ahead)) = found.and_then(|at| self.entries.remove(at)) {
            // As a packet joins the record of a line: decision 1.
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
    /// Entries of a queue.
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

    /// A clock: the packets of a beat come, and each line takes an entry.
    fn clock(&mut self, beat: &[Arrival], keep: bool) {
        let mut out = Vec::new();
        for packet in beat {
            match &mut self.combiner {
                Some(combiner) => combiner.take(packet, &mut out),
                None => out.push((packet.key, packet.base())),
            }
        }
        for entry in out {
            // Two bits of the tag. A card would take two more bits of the hash.
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

    /// The cell ends: what the combiner holds goes on, and the queues become empty.
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

/// Packets of which `share_of_one` in a thousand are of one flow, and the others of a mix.
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

/// Runs so many clocks at a frequency, with minimum frames at line rate.
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

/// Every packet is in what a line took, or counted, and those of a flow come in order.
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

/// The share of packets that are dropped, and the fullest queue.
fn dropped(source: &mut Source, mhz: f64, combined: usize) -> (f64, usize) {
    const CLOCKS: u32 = 100_000;
    let mut card = Card::new(combined, 64);
    run(&mut card, source, mhz, CLOCKS, false);
    let packets = f64::from(CLOCKS) * MPPS / mhz;
    (card.dropped as f64 / packets, card.deepest)
}

/// One flow in front of a line is too much for it; so are a few large flows that share one, and of
/// those a small combiner forgets some. `--nocapture` shows the whole table.
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
            // Four lines at 150 MHz are 0.8 % above the line rate, which no queue evens out.
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
