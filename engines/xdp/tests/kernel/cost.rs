// SPDX-License-Identifier: Apache-2.0
//! What a packet costs in the kernel, over a program that does nothing. A measurement, not a test:
//! `cargo test --release -p turboflow-engine-xdp --features kernel cost -- --ignored --nocapture`.

use turboflow_engine_xdp::{Clock, KernelConfig, KernelEngine, TestedProgram};

use crate::support::{config, load, tcp};

const REPETITIONS: u32 = 5_000_000;
const RUNS: usize = 5;

/// The fastest of some runs: the others shared the machine.
fn packet_ns(engine: &KernelEngine, program: TestedProgram) -> u64 {
    let frame = tcp(1, 0x10);
    let run = || engine.test_run(program, &frame, REPETITIONS).unwrap();
    (0..RUNS).map(|_| run().duration_ns).min().unwrap_or(0)
}

#[test]
#[ignore = "a measurement: minutes, and nothing to fail"]
fn cost_of_a_packet() {
    let precise = config(65_536);
    let coarse = KernelConfig {
        clock: Clock::Coarse,
        ..precise.clone()
    };
    let (Some(precise), Some(coarse)) = (load(&precise), load(&coarse)) else {
        return;
    };
    let empty = packet_ns(&precise, TestedProgram::Pass);
    let rows = [
        ("parse", packet_ns(&precise, TestedProgram::Parse)),
        (
            "table, precise clock",
            packet_ns(&precise, TestedProgram::Microflows),
        ),
        (
            "table, coarse clock",
            packet_ns(&coarse, TestedProgram::Microflows),
        ),
    ];
    eprintln!("empty program: {empty} ns a packet");
    for (name, ns) in rows {
        eprintln!(
            "{name}: {ns} ns a packet, {} over the empty program",
            ns - empty
        );
    }
}
