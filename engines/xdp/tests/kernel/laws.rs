// SPDX-License-Identifier: Apache-2.0
//! Rules that the suite of `conformance.rs` leaves out: times, and records counted by age.

use turboflow_engine::MicroflowBatch;
use turboflow_engine_xdp::{Clock, KernelConfig, KernelEngine};
use turboflow_record::{TCP_ACK, TCP_FIN, TCP_SYN};

use crate::support::{SECOND_NS, clock_ns, config, finish, load, meter, tcp, wall_ns};

/// A cell that ends long after the test.
const ENDLESS_NS: u64 = 1_000_000 * SECOND_NS;

fn endless() -> KernelConfig {
    KernelConfig {
        cell_ns: ENDLESS_NS,
        ..config(8)
    }
}

/// In cells of a nanosecond every packet has its own record.
#[test]
fn nothing_joins_a_record_of_an_earlier_cell() {
    let config = KernelConfig {
        cell_ns: 1,
        ..config(8)
    };
    let Some(engine) = load(&config) else {
        return;
    };
    (0..5).for_each(|_| meter(&engine, &tcp(1, TCP_ACK as u8)));
    let mut batch = MicroflowBatch::default();
    let counters = finish(engine, &mut batch);
    let packets: Vec<u64> = batch.v4::<0>().map(|record| record.base.packets).collect();
    assert_eq!(packets, [1; 5]);
    assert_eq!(counters.evicted_age, 4);
    assert_eq!(counters.evicted_flush, 1);
}

/// A timestamp is not before the kernel's own clock, read earlier, nor after the wall clock, read
/// later. Coarse ones may be a tick off: ticks and the kernel's coarse clock may be that far apart,
/// and on a busy machine ticks are found late.
#[test]
fn both_clocks_tell_the_wall_clocks_time() {
    const LONGEST_TICK_NS: u64 = 10_000_000;
    const SLACK_NS: u64 = 2_000_000;
    // A busy machine counts its ticks late, and the kernel's coarse clock is then late as well.
    let coarse = rustix::time::ClockId::RealtimeCoarse;
    let wall = rustix::time::ClockId::Realtime;
    for (clock, read_before, off_by_ns) in [
        (Clock::Precise, wall, SLACK_NS),
        (Clock::Coarse, coarse, LONGEST_TICK_NS + SLACK_NS),
    ] {
        let config = KernelConfig { clock, ..endless() };
        let Some(engine) = load(&config) else {
            return;
        };
        // One record for each SYN and its FIN, over more than a tick.
        let mut around_ns = Vec::new();
        let until_ns = wall_ns() + 3 * LONGEST_TICK_NS;
        while wall_ns() < until_ns {
            let before_ns = clock_ns(read_before);
            meter(&engine, &tcp(1, TCP_SYN as u8));
            meter(&engine, &tcp(1, TCP_FIN as u8));
            around_ns.push((before_ns, wall_ns()));
        }
        let mut batch = MicroflowBatch::default();
        finish(engine, &mut batch);
        let stamped_ns: Vec<u64> = batch.v4::<0>().map(|record| record.base.first_ns).collect();
        assert_eq!(stamped_ns.len(), around_ns.len());
        for (stamped_ns, (before_ns, after_ns)) in stamped_ns.into_iter().zip(around_ns) {
            let read_ns = before_ns..=after_ns;
            assert!(
                stamped_ns + off_by_ns > before_ns,
                "{clock:?}: {stamped_ns} {read_ns:?}"
            );
            assert!(
                stamped_ns < after_ns + off_by_ns,
                "{clock:?}: {stamped_ns} {read_ns:?}"
            );
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
    assert_eq!(
        slots,
        "the number of microflow slots is 0, but must be 1 to 4194304"
    );
    let ring = refused(KernelConfig {
        ring_bytes: 5_000,
        ..config(1)
    });
    assert!(ring.starts_with("the size of the ring is 5000"), "{ring}");
}
