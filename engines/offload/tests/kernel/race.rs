// SPDX-License-Identifier: Apache-2.0
//! Verdicts are set, changed and removed every millisecond while two CPUs send packets. No packet
//! is lost or counted twice, and no flow gets the verdict of another flow that had the memory of
//! its row.

use turboflow_engine::MicroflowBatch;
use turboflow_engine_offload::{
    Action, FlowKey, FlowTable, KernelTable, Order, OrderKind, Outcome, Times, Verdict,
};
use turboflow_engine_xdp::{KernelEngine, Offload, OffloadCounters, TapRing};
use turboflow_workload::random::Random;

use crate::run::{LENGTH_BYTES, fire, fired};
use crate::support::{SECOND_NS, Totals, collect, load_for_all_cpus, tcp, wall_ns};

const PACKETS: u64 = 10_000_000;
/// Flows that get packets.
pub(crate) const FLOWS: u32 = 64;
/// Flows that have rows at times but no packets. Their numbers are greater.
pub(crate) const PHANTOMS: u32 = 192;
/// Fewer rows than flows, so that the memory of a row passes from flow to flow.
pub(crate) const ROWS: u32 = 96;
const ROUND_NS: u64 = 1_000_000;
const XDP_DROP: usize = 1;
const XDP_PASS: usize = 2;

/// The key of a flow that `fire` sends: the source address is the flow's number.
pub(crate) fn key_of(number: u32) -> FlowKey {
    let frame = tcp(1, 0x10);
    let destination = u32::from_le_bytes(frame[30..34].try_into().unwrap());
    let ports = u32::from_le_bytes(frame[34..38].try_into().unwrap());
    let tcp = 6 << 32 | 4 << 40;
    // The smaller end comes first: numbers are smaller than the destination.
    assert!(number < destination);
    let addresses = u64::from(number) | u64::from(destination) << 32;
    FlowKey::of_words([addresses, u64::from(ports) | tcp, 0, 0, 0])
}

/// A random order for a flow.
fn order(random: &mut Random, drops: impl Fn(u32) -> bool) -> Order {
    let number = random.below((FLOWS + PHANTOMS).into()) as u32;
    let action = match drops(number) && random.below(2) == 0 {
        true => Action::Drop,
        false => Action::Pass,
    };
    let verdict = Verdict {
        action,
        rule: number as u16,
    };
    Order {
        key: key_of(number),
        kind: match random.below(3) {
            0 => OrderKind::Add(verdict),
            1 => OrderKind::Change(verdict),
            _ => OrderKind::Remove,
        },
    }
}

/// The results of all orders.
#[derive(Default, Debug)]
pub(crate) struct Ordered {
    done: u64,
    full: u64,
    other: u64,
    pub(crate) rounds: u64,
}

impl Ordered {
    /// Checks that there really was a race.
    pub(crate) fn check(&self) {
        assert!(self.done > 100 * self.rounds / 5 && self.full > 0);
        assert!(self.rounds > 50);
    }
}

/// Lets this thread run as soon as it is due. Otherwise a round would wait for a sender's time
/// slice, so that there would be one every 3 ms.
fn go_first() {
    rustix::process::setpriority_process(None, -20).unwrap();
}

/// Writes random rows while packets arrive.
pub(crate) struct Writer {
    table: KernelTable,
    taps: TapRing,
    random: Random,
    next_ns: u64,
    outcomes: Vec<Outcome>,
    pub(crate) ordered: Ordered,
}

impl Writer {
    pub(crate) fn new(Offload { table, taps }: Offload) -> Self {
        Self {
            table: KernelTable::new(table, ROWS),
            taps,
            random: Random::new(5),
            next_ns: wall_ns(),
            outcomes: Vec::new(),
            ordered: Ordered::default(),
        }
    }

    /// Waits until a millisecond has passed since the last round, and orders rows.
    pub(crate) fn round(&mut self, drops: impl Fn(u32) -> bool) {
        let times = Times {
            now_ns: 0,
            idle_ns: SECOND_NS,
            linger_ns: SECOND_NS,
        };
        if self.ordered.rounds == 0 {
            go_first();
        }
        // The senders fill all CPUs: polling would make this thread wait for their time slices.
        self.taps.pause(self.next_ns.saturating_sub(wall_ns()));
        self.next_ns = wall_ns() + ROUND_NS;
        self.ordered.rounds += 1;
        let random = &mut self.random;
        let orders: Vec<_> = (0..100).map(|_| order(random, &drops)).collect();
        self.table
            .program(&orders, times, &mut self.outcomes)
            .unwrap();
        for outcome in self.outcomes.drain(..) {
            match outcome {
                Outcome::Done => self.ordered.done += 1,
                Outcome::Full => self.ordered.full += 1,
                Outcome::Exists | Outcome::Absent => self.ordered.other += 1,
                wrong => panic!("{wrong:?}"),
            }
        }
        self.taps.read(usize::MAX, |_| ()).unwrap();
    }
}

/// Orders rows every millisecond while packets arrive. Returns the results of both.
fn race(drops: impl Fn(u32) -> bool) -> Option<(Totals, KernelEngine, Ordered)> {
    let mut engine = load_for_all_cpus(&fired(ROWS, FLOWS))?;
    let mut writer = Writer::new(engine.open_offload().unwrap());
    let (mut totals, mut batch) = (Totals::default(), MicroflowBatch::default());
    let tester = engine.tester();
    fire(&tester, PACKETS, || {
        writer.round(&drops);
        collect(&mut engine, &mut batch);
        totals.take(&mut batch);
    });
    engine.finish().unwrap();
    collect(&mut engine, &mut batch);
    totals.take(&mut batch);
    Some((totals, engine, writer.ordered))
}

fn check(totals: &Totals, engine: &KernelEngine, ordered: &Ordered) -> OffloadCounters {
    let counters = engine.counters().unwrap();
    let offload = engine.offload_counters().unwrap();
    let returned = engine.tester().returned().unwrap();
    eprintln!("{ordered:?}, {offload:?}, {returned:?}");
    assert_eq!(counters.received(), PACKETS);
    assert_eq!(counters.packets_metered, PACKETS);
    assert_eq!(totals.packets + counters.packets_dropped, PACKETS);
    let bytes = totals.bytes + counters.bytes_dropped;
    assert_eq!(bytes, PACKETS * LENGTH_BYTES);
    assert_eq!(offload.hits + offload.misses, PACKETS);
    assert_eq!(
        offload.bytes_dropped,
        offload.packets_dropped * LENGTH_BYTES
    );
    assert_eq!(returned[XDP_DROP], offload.packets_dropped);
    assert_eq!(returned[XDP_PASS], PACKETS - offload.packets_dropped);
    assert_eq!(returned.iter().sum::<u64>(), PACKETS);
    assert!(offload.hits > PACKETS / 20 && offload.misses > PACKETS / 20);
    ordered.check();
    offload
}

#[test]
fn no_packet_is_lost_while_verdicts_change() {
    let Some((totals, engine, ordered)) = race(|_| true) else {
        return;
    };
    let offload = check(&totals, &engine, &ordered);
    assert!(offload.packets_dropped > PACKETS / 100);
    assert_eq!(totals.flows(), FLOWS as usize);
}

/// Only flows without packets are ever dropped, while the memory of rows passes from flow to flow.
#[test]
fn no_flow_gets_the_verdict_of_another() {
    let Some((totals, engine, ordered)) = race(|number| number >= FLOWS) else {
        return;
    };
    let offload = check(&totals, &engine, &ordered);
    assert_eq!(offload.packets_dropped, 0);
}
