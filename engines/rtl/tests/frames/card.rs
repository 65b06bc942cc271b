// SPDX-License-Identifier: Apache-2.0
//! Cards in the boxes of both shells: frames pass byte for byte; every packet is in a record, with
//! the host, or counted; and a slow host only affects what is counted.

use std::collections::BTreeMap;

use turboflow_engine::MicroflowBatch;
use turboflow_engine::wire::Decoder;
use turboflow_engine_rtl::{
    CardCounters, Damage, GivenFrame, Handed, HostPacket, Pace, Shell, VerilatedCard,
};
use turboflow_merge::Layout;
use turboflow_packet::{Parser, ParserConfig};
use turboflow_record::Definition;
use turboflow_testing::{Need, captures_folder, is_missing};

use crate::captures;
use crate::generate::{Random, frame};
use crate::parser::captured;

const ENGINE_ID: u32 = 7;

/// The totals of a flow: packets, bytes, the first and the last time, TCP flags.
type Totals = (u64, u64, u64, u64, u16);

/// Flows by their key, and their totals.
#[derive(Debug, Default, PartialEq, Eq)]
struct Flows(BTreeMap<Vec<u64>, Totals>);

impl Flows {
    fn add(&mut self, key: &[u64], (packets, bytes, first_ns, last_ns, flags): Totals) {
        let start = (0, 0, u64::MAX, 0, 0);
        let flow = self.0.entry(key.to_vec()).or_insert(start);
        flow.0 += packets;
        flow.1 += bytes;
        flow.2 = flow.2.min(first_ns);
        flow.3 = flow.3.max(last_ns);
        flow.4 |= flags;
    }

    fn add_frame(&mut self, parser: &mut Parser, frame: &GivenFrame) {
        if let Ok(packet) = parser.parse(&captured(frame)) {
            let (time_ns, bytes) = (packet.timestamp_ns, u64::from(packet.ip_length_bytes));
            let totals = (1, bytes, time_ns, time_ns, packet.tcp_flags);
            self.add(packet.tuple.words(), totals);
        }
    }

    fn packets(&self) -> u64 {
        self.0.values().map(|totals| totals.0).sum()
    }
}

/// The results of a card for some frames.
struct Ran {
    counters: CardCounters,
    /// Packets in records, and everything that the host knows, including frames that it got whole.
    recorded: u64,
    known: Flows,
    whole: BTreeMap<Handed, u64>,
}

fn runs(shell: Shell, frames: &[GivenFrame], pace: Pace) -> Ran {
    let mut card = VerilatedCard::new(shell, 5, ENGINE_ID);
    card.arrive(frames, pace);
    card.end(frames.last().unwrap().time_ns.max(1 << 40) + (1 << 40));
    let expected: Vec<_> = frames.iter().map(|frame| frame.bytes.clone()).collect();
    assert!(card.passed() == expected, "frames pass byte for byte");
    if shell == Shell::Corundum {
        assert!(
            card.tapped() == expected,
            "as they do where they are watched"
        );
    }
    let layout = Layout::compile(&Definition::default(), false).unwrap();
    let mut decoders = [(); 2].map(|()| Decoder::new(&layout));
    let mut ended = [false; 2];
    let (mut known, mut whole) = (Flows::default(), BTreeMap::new());
    let mut batch = MicroflowBatch::default();
    let (mut handed, mut parser) = (Vec::new(), Parser::new(ParserConfig::default()));
    for packet in card.said() {
        match packet {
            HostPacket::Message(bytes) => {
                let family = (bytes[19] - ENGINE_ID as u8) as usize;
                batch.clear();
                let decoded = decoders[family].decode(&bytes, &mut batch).unwrap();
                ended[family] |= decoded.is_end;
                for row in batch.v4::<0>() {
                    known.add(&row.key, of_record(&row.base));
                }
                for row in batch.v6::<0>() {
                    known.add(&row.key, of_record(&row.base));
                }
            }
            HostPacket::Whole { reason, frame } => {
                *whole.entry(reason).or_default() += 1;
                handed.push(frame);
            }
        }
    }
    assert_eq!(ended, [true; 2], "both meters said that nothing more comes");
    assert!(
        decoders
            .iter()
            .all(|decoder| decoder.lost() + decoder.repeated() == 0)
    );
    let recorded = known.packets();
    for frame in &handed {
        known.add_frame(&mut parser, frame);
    }
    Ran {
        counters: card.counters(),
        recorded,
        known,
        whole,
    }
}

fn of_record(base: &turboflow_merge::Base) -> Totals {
    (
        base.packets,
        base.bytes,
        base.first_ns,
        base.last_ns,
        base.tcp_flags,
    )
}

/// The law of the counters: every frame is left out, for the host, or metered. Frames for the host
/// arrived there or were dropped; metered packets are in a record.
fn accounts(ran: &Ran, frames: &[GivenFrame]) {
    let counters = &ran.counters;
    let handed: u64 = counters.handed.iter().sum();
    assert_eq!(counters.packets_received, frames.len() as u64);
    assert_eq!(
        counters.packets_received,
        counters.packets_dropped + counters.packets_metered + handed,
        "{counters:?}"
    );
    assert_eq!(ran.recorded, counters.packets_metered);
    assert_eq!(
        ran.whole.values().sum::<u64>() + counters.handed_dropped,
        handed
    );
    for (reason, count) in Handed::ALL.iter().zip(counters.handed) {
        assert!(ran.whole.get(reason).is_none_or(|whole| *whole <= count));
    }
}

/// Everything that the software knows about some frames.
fn expected(frames: &[GivenFrame]) -> Flows {
    let (mut flows, mut parser) = (Flows::default(), Parser::new(ParserConfig::default()));
    for frame in frames {
        flows.add_frame(&mut parser, frame);
    }
    flows
}

/// Random frames in time order, 2 us apart.
fn random_frames(count: u64) -> Vec<GivenFrame> {
    let mut random = Random::new(9);
    let frames = (0..count).map(|at| GivenFrame {
        time_ns: 1_700_000_000_000_000_000 + 2_000 * at,
        damage: Damage::None,
        ..frame(&mut random)
    });
    frames.collect()
}

#[test]
fn every_packet_is_in_a_record_or_with_the_host() {
    let frames = random_frames(12_000);
    let expected = expected(&frames);
    for shell in [Shell::OpenNic, Shell::Corundum] {
        let pace = Pace {
            given_of_256: 200,
            ready_of_256: 256,
        };
        let ran = runs(shell, &frames, pace);
        accounts(&ran, &frames);
        let dropped = ran.counters.packets_dropped + ran.counters.handed_dropped;
        assert!(
            dropped == 0 || shell == Shell::Corundum,
            "{:?}",
            ran.counters
        );
        assert!(ran.known == expected || dropped > 0, "{shell:?}");
        assert!(ran.whole.len() >= 7, "{:?}", ran.whole);
    }
}

/// In OpenNIC's box, frames wait for a slow host, and nothing is lost. In Corundum's box they do
/// not wait: frames that were left out are counted, and everything else is correct.
#[test]
fn a_slow_host_loses_nothing_that_is_not_counted() {
    let frames = random_frames(4_000);
    for ready_of_256 in [128, 40] {
        let pace = Pace {
            given_of_256: 256,
            ready_of_256,
        };
        let waits = runs(Shell::OpenNic, &frames, pace);
        accounts(&waits, &frames);
        assert_eq!(waits.counters.packets_dropped, 0);
        assert_eq!(waits.counters.handed_dropped, 0);
        assert!(waits.known == expected(&frames));

        let watches = runs(Shell::Corundum, &frames, pace);
        accounts(&watches, &frames);
        let dropped = watches.counters.packets_dropped + watches.counters.handed_dropped;
        assert!(dropped > 0, "a host that slow costs frames");
    }
}

/// With time between frames, as on any link that is not full, nothing is left out.
#[test]
fn captures_come_to_the_host_as_the_software_sees_them() {
    if is_missing(&[Need::Captures]) {
        return;
    }
    let folder = captures_folder().unwrap();
    let mut captures = Vec::new();
    for part in ["fragments", "ipv4", "ipv6", "sctp", "vlan-mpls", "icmp"] {
        let mut of_part = Vec::new();
        captures::find(&folder.join(part), &mut of_part);
        captures.extend(of_part.into_iter().take(6));
    }
    let pace = Pace {
        given_of_256: 24,
        ready_of_256: 256,
    };
    let mut compared = 0;
    for capture in captures {
        let mut frames = captures::frames(&capture);
        frames.truncate(200);
        // A sender does not go back in time by a cell, and the end comes after all its packets.
        frames.sort_by_key(|frame| frame.time_ns);
        if frames.is_empty() {
            continue;
        }
        for shell in [Shell::OpenNic, Shell::Corundum] {
            let ran = runs(shell, &frames, pace);
            accounts(&ran, &frames);
            let name = capture.display();
            assert_eq!(ran.counters.packets_dropped, 0, "{name}");
            assert_eq!(ran.counters.handed_dropped, 0, "{name}");
            assert!(ran.known == expected(&frames), "{name}: {shell:?}");
        }
        compared += frames.len();
    }
    assert!(compared > 1_000, "{compared} frames");
}
