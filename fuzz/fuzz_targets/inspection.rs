// SPDX-License-Identifier: Apache-2.0
//! Any packets of a few flows, through the shim and the library: nothing crashes, and what is found
//! has its bounds.
//!
//! Input: packets, each preceded by a byte that chooses the flow and what happens to it, and by its
//! length in two bytes.

#![no_main]

use std::cell::RefCell;

use libfuzzer_sys::fuzz_target;
use turboflow_inspect::{Facts, Inspector, MAX_TEXT_BYTES, NdpiInspector, Progress, Sight, Text};

/// Flows at a time.
const FLOWS: usize = 4;
/// The most packets of a flow, as the product has it.
const MAX_PACKETS: usize = 32;

thread_local! {
    // Setting it up takes 0.1 s. Its caches of hosts are bounded.
    static INSPECTOR: RefCell<NdpiInspector> = RefCell::new(NdpiInspector::new().unwrap());
}

fuzz_target!(|input: &[u8]| {
    INSPECTOR.with_borrow_mut(|inspector| run(inspector, input));
});

fn run(inspector: &mut NdpiInspector, input: &[u8]) {
    let mut flows: [Option<(_, usize, _)>; FLOWS] = [const { None }; FLOWS];
    let mut facts = Facts::default();
    let mut time_ns = 1_000_000_000;
    let mut rest = input;
    while let Some(([what, high, low], behind)) = rest.split_first_chunk::<3>() {
        let length = usize::from(u16::from_be_bytes([*high, *low])).min(behind.len());
        let (datagram, behind) = behind.split_at(length);
        rest = behind;
        time_ns += u64::from(*what) * 1_000_000;
        let place = &mut flows[usize::from(*what) % FLOWS];
        let protocol = protocol(datagram);
        if place.as_ref().is_some_and(|(_, _, its)| *its != protocol) {
            *place = None;
        }
        let (flow, packets, _) =
            place.get_or_insert_with(|| (inspector.open().expect("there is memory"), 0, protocol));
        let sight = Sight {
            datagram,
            time_ns,
            is_reversed: what & 0x80 != 0,
        };
        let progress = inspector.inspect(flow, &sight, &mut facts);
        check(&facts);
        if what & 0x40 != 0 {
            inspector.guess(flow, &mut facts);
            check(&facts);
        }
        *packets += 1;
        let is_over = progress == Progress::Complete || *packets == MAX_PACKETS;
        if is_over || what & 0x20 != 0 {
            let (flow, ..) = place.take().expect("it was just there");
            if progress == Progress::Undecided {
                inspector.give_up(flow, &mut facts);
                check(&facts);
            }
        }
    }
}

/// Version and protocol: a flow has one of each. The library leaks memory where that changes.
fn protocol(datagram: &[u8]) -> (u8, u8) {
    let version = datagram.first().map_or(0, |first| first >> 4);
    let at = if version == 4 { 9 } else { 6 };
    (version, datagram.get(at).copied().unwrap_or(0))
}

fn check(facts: &Facts) {
    for text in Text::ALL {
        assert!(facts.text(text).len() <= MAX_TEXT_BYTES);
    }
    assert!(facts.text(Text::Ja3).len() <= 32 && facts.text(Text::Ja4).len() <= 36);
}
