// SPDX-License-Identifier: Apache-2.0
//! Where records are cut: the rules of `docs/decisions/0001-cells.md` for engines.

use turboflow_engine::MicroflowBatch;
use turboflow_engine_xdp::{Clock, KernelConfig, KernelCounters, KernelEngine};
use turboflow_merge::Marks;
use turboflow_record::{TCP_ACK, TCP_FIN, TCP_SYN};

use crate::support::{SECOND_NS, config, finish, load, meter, tcp, wall_ns};

/// A cell that ends long after the test.
const ENDLESS_NS: u64 = 1_000_000 * SECOND_NS;

/// Packets of the records that one flow with these flags is cut into, the last one by the flush.
fn cuts(config: &KernelConfig, flags: &[u16]) -> Option<(Vec<u64>, KernelCounters)> {
    let engine = load(config)?;
    Some(finish_with(engine, flags))
}

fn finish_with(engine: KernelEngine, flags: &[u16]) -> (Vec<u64>, KernelCounters) {
    flags
        .iter()
        .for_each(|&flags| meter(&engine, &tcp(1, flags as u8)));
    let mut batch = MicroflowBatch::default();
    let counters = finish(engine, &mut batch);
    let packets = batch.v4::<0>().map(|record| record.base.packets).collect();
    (packets, counters)
}

fn endless() -> KernelConfig {
    KernelConfig {
        cell_ns: ENDLESS_NS,
        ..config(8)
    }
}

/// The sequence, and the records, of the same test in `engines/software`.
#[test]
fn a_syn_joins_only_a_record_that_cannot_have_ended() {
    let flags = [
        TCP_ACK,
        TCP_SYN,
        TCP_SYN,
        TCP_ACK | TCP_FIN,
        TCP_ACK,
        TCP_SYN,
    ];
    let Some((packets, counters)) = cuts(&endless(), &flags) else {
        return;
    };
    assert_eq!(packets, [1, 4, 1]);
    assert_eq!(counters.evicted_cut, 2);
}

#[test]
fn with_a_linger_of_0_nothing_joins_after_an_end() {
    let config = KernelConfig {
        evict_after: Marks::ENDS,
        ..endless()
    };
    let Some((packets, _)) = cuts(&config, &[TCP_ACK, TCP_FIN, TCP_ACK, TCP_ACK]) else {
        return;
    };
    assert_eq!(packets, [2, 2]);
}

/// In cells of a nanosecond every packet is alone.
#[test]
fn nothing_joins_a_record_of_an_earlier_cell() {
    let config = KernelConfig {
        cell_ns: 1,
        ..config(8)
    };
    let Some((packets, counters)) = cuts(&config, &[TCP_ACK; 5]) else {
        return;
    };
    assert_eq!(packets, [1; 5]);
    assert_eq!(counters.evicted_age, 4);
    assert_eq!(counters.evicted_flush, 1);
}

/// A coarse time is that of the last tick: up to a tick too early, and never late but by what finding the ticks was off by.
#[test]
fn both_clocks_tell_the_wall_clocks_time() {
    const LONGEST_TICK_NS: u64 = 10_000_000;
    const SLACK_NS: u64 = 2_000_000;
    for (clock, early_ns) in [(Clock::Precise, 0), (Clock::Coarse, LONGEST_TICK_NS)] {
        let config = KernelConfig { clock, ..endless() };
        let Some(engine) = load(&config) else {
            return;
        };
        // A record each, by flags that cut, over more than a tick.
        let mut read_ns = Vec::new();
        while read_ns
            .first()
            .is_none_or(|first| wall_ns() - first < 3 * LONGEST_TICK_NS)
        {
            read_ns.push(wall_ns());
            meter(&engine, &tcp(1, TCP_SYN as u8));
            meter(&engine, &tcp(1, TCP_FIN as u8));
        }
        read_ns.push(wall_ns());
        let mut batch = MicroflowBatch::default();
        finish(engine, &mut batch);
        let stamped_ns: Vec<u64> = batch.v4::<0>().map(|record| record.base.first_ns).collect();
        assert_eq!(stamped_ns.len() + 1, read_ns.len());
        for (stamped_ns, around_ns) in stamped_ns.iter().zip(read_ns.windows(2)) {
            assert!(stamped_ns + early_ns + SLACK_NS > around_ns[0], "{clock:?}");
            assert!(*stamped_ns < around_ns[1] + SLACK_NS, "{clock:?}");
        }
    }
}

#[test]
fn what_cannot_be_configured_is_refused_with_its_number() {
    let refused = |config: KernelConfig| match KernelEngine::load(&config) {
        Ok(_) => panic!("{config:?} was taken"),
        Err(error) => error.to_string(),
    };
    let slots = refused(config(0));
    assert_eq!(slots, "the number of microflow slots is 0: 1 to 4194304");
    let ring = refused(KernelConfig {
        ring_bytes: 5_000,
        ..config(1)
    });
    assert!(ring.starts_with("the size of the ring is 5000"), "{ring}");
}
