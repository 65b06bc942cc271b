// SPDX-License-Identifier: Apache-2.0
//! The parser allocates nothing after `Parser::new`, for any frames.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/build.rs"]
mod build;
#[path = "support/generate.rs"]
mod generate;
#[path = "support/marks.rs"]
mod marks;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use build::frame_of;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use turboflow_packet::{
    LinkType, PARSED_INPUTS, Parser, ParserConfig, ReassemblyConfig, TELEMETRY_INPUTS, TunnelSet,
};
use turboflow_record::InputValues;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call goes to the system allocator unchanged; the counter is a plain thread-local
// cell that needs no allocation and no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller upholds `alloc`'s contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds `dealloc`'s contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn nothing_is_allocated_per_packet() {
    let mut runner = TestRunner::deterministic();
    let strategy = generate::frames();
    let mut frames: Vec<Vec<u8>> = (0..2_000)
        .map(|_| strategy.new_tree(&mut runner).unwrap().current())
        .collect();
    // Fragments of more datagrams than the cache holds, with first fragments early and late.
    for id in 0..2_000 {
        for flags in [[0x2000, 3], [3, 0x2000]][usize::from(id % 2)] {
            let datagram = build::ipv4_fragment(17, id, flags, &build::udp(7, id, &[0; 16]));
            frames.push(build::ethernet(0x0800, &datagram));
        }
    }
    let mut parser = Parser::new(ParserConfig {
        decapsulate: TunnelSet::ALL,
        icmp_ports: true,
        reassemble_flows: Some(ReassemblyConfig {
            max_datagrams: 100,
            timeout_ns: 5_000,
        }),
        telemetry: Some(marks::telemetry()),
        needs: PARSED_INPUTS.union(TELEMETRY_INPUTS),
    });
    let mut values = InputValues::default();
    let mut released = Vec::with_capacity(frames.len());
    let before = ALLOCATIONS.get();
    for _ in 0..10 {
        for bytes in &frames {
            let frame = frame_of(bytes, LinkType::Ethernet);
            let _ = parser.parse(&frame);
            let _ = parser.parse_with_inputs(&frame, &mut values);
            parser.release(1_000, &mut released);
            released.clear();
        }
    }
    assert_eq!(ALLOCATIONS.get() - before, 0);
    let telemetry = parser.telemetry_counters().unwrap();
    assert!(telemetry.read > 1_000, "{telemetry:?}");
    let counters = parser.fragment_counters();
    assert!(
        counters.held > 1_000 && counters.attributed > 1_000,
        "{counters:?}"
    );
}
