// SPDX-License-Identifier: Apache-2.0
//! How many packets of a flow reach user space: its budget, and those that arrive before the card
//! knows the flow. The authors' card took flows over seconds late, and 62 % of all packets reached
//! the host.

use std::collections::VecDeque;

use turboflow_engine_offload::model::{CardProfile, Handled};

use crate::world::{MS, SECOND, World, packet};

/// A new flow every 10 us: 100,000 births a second.
const BIRTH_NS: u64 = 10_000;
/// A flow lives for 10 s, so the flows born in 10 s exist at a time.
const LIFE_NS: u64 = 10 * SECOND;
/// Number of packets that a flow sends at once; it spreads the others over its life.
const AT_ONCE: u64 = 6;
const AT_ONCE_NS: u64 = 2 * MS;
const APART_NS: u64 = SECOND / 2;
/// The number of the packet that decides.
const BUDGET: u32 = 4;
/// How long after that packet others may still reach user space.
const BAR_NS: u64 = 10 * MS;

#[derive(Clone, Copy, Default)]
struct Flow {
    /// Number of packets so far, and of those that reached user space.
    packets: u32,
    at_host: u32,
    decided_ns: u64,
}

/// When the packet with this number comes after the flow's first.
fn offset_ns(number: u64) -> u64 {
    match number < AT_ONCE {
        true => number * AT_ONCE_NS,
        false => (number - AT_ONCE + 1) * APART_NS,
    }
}

/// Flows are born at a steady rate and are all alike. So the packets with one number, over all
/// flows, form a queue, and the next packet is the earliest of the queues' heads.
struct Traffic {
    flows: Vec<Flow>,
    /// For each packet number: the next flow that sends it.
    next: Vec<u64>,
    due_ns: VecDeque<u64>,
}

impl Traffic {
    fn new() -> Self {
        let last = AT_ONCE + LIFE_NS / APART_NS - 1;
        Self {
            flows: Vec::new(),
            next: vec![0; last as usize],
            due_ns: (0..last).map(offset_ns).collect(),
        }
    }

    /// The next packet: its flow, and its time.
    fn next(&mut self) -> (u32, u64) {
        let heads = self.due_ns.iter().enumerate();
        let (number, now_ns) = heads.min_by_key(|(_, due_ns)| **due_ns).unwrap();
        let (flow, now_ns) = (self.next[number], *now_ns);
        self.next[number] += 1;
        self.due_ns[number] += BIRTH_NS;
        if number == 0 {
            self.flows.push(Flow::default());
        }
        (flow as u32, now_ns)
    }
}

#[test]
fn user_space_sees_the_budget_and_ten_milliseconds_of_a_flow() {
    let profile = CardProfile {
        // A load of 76 %, where one row takes 4 accesses.
        rows: 1_300_000,
        learning_rate: 1_000_000,
        programming_delay_ns: MS,
        ..CardProfile::default()
    };
    let mut world = World::new(profile, BUDGET, false);
    let mut traffic = Traffic::new();
    let (mut packets, mut at_host, mut late, mut by_card) = (0u64, 0u64, 0u64, 0u64);
    let mut now_ns = 0;
    while now_ns < LIFE_NS + SECOND {
        let (number, time_ns) = traffic.next();
        now_ns = time_ns;
        let flow = &mut traffic.flows[number as usize];
        flow.packets += 1;
        packets += 1;
        match world.packet(&packet(number, false), now_ns) {
            Handled::ByCard(_) => by_card += 1,
            Handled::ByHost => {
                at_host += 1;
                flow.at_host += 1;
                if flow.at_host == BUDGET {
                    flow.decided_ns = now_ns;
                }
                let is_late = flow.at_host > BUDGET && now_ns > flow.decided_ns + BAR_NS;
                late += u64::from(is_late);
            }
        }
        if packets % 4_000_000 == 0 {
            world.collect();
        }
    }
    let counts = world.counts();
    let most = traffic.flows.iter().map(|flow| flow.at_host).max();
    eprintln!(
        "{} flows, {packets} packets, {at_host} at the host ({:.1} %), at most {most:?} of a flow; {counts:?}",
        traffic.flows.len(),
        at_host as f64 * 100.0 / packets as f64
    );
    assert!(counts.rows_open() > 999_000, "a million flows at a time");
    assert_eq!(counts.refused(), 0);
    assert_eq!(late, 0, "of {packets} packets");
    assert_eq!(packets, at_host + by_card);
    world.collect();
    let collected: u64 = world.by_card.values().map(|sum| sum.packets).sum();
    assert_eq!(collected, by_card, "the card counted what it kept");
    // A flow has 26 packets. It needs 4 of them, and one more may come within 10 ms.
    assert!(at_host * 100 < packets * 40, "{at_host} of {packets}");
}
