// SPDX-License-Identifier: Apache-2.0
//! What a packet costs in the kernel, over a program that does nothing. A measurement, not a test: a JSON object a row from
//! `cargo test -p turboflow-engine-xdp --features kernel cost -- --ignored --nocapture`.

use turboflow_engine_xdp::{Clock, KernelConfig, KernelEngine, Tables, Tested, TestedProgram};

use crate::support::{config, load, tcp};

const REPETITIONS: u32 = 2_000_000;
const ROUNDS: usize = 15;

/// One packet again and again: a hit in the table every time.
fn packet_ns(engine: &KernelEngine, program: TestedProgram) -> u64 {
    let run = engine.tester().run(program, &tcp(1, 0x10), REPETITIONS);
    run.unwrap().duration_ns
}

#[test]
#[ignore = "a measurement: it takes long, and nothing can fail"]
fn cost_of_a_packet() {
    let precise = KernelConfig {
        tested: Some(Tested::default()),
        ..config(65_536)
    };
    let coarse = KernelConfig {
        clock: Clock::Coarse,
        ..precise.clone()
    };
    let shared = KernelConfig {
        tables: Tables::RowLock,
        ..precise.clone()
    };
    let loaded = (load(&precise), load(&coarse), load(&shared));
    let (Some(precise), Some(coarse), Some(shared)) = loaded else {
        return;
    };
    let rows = [
        ("empty", &precise, TestedProgram::Pass),
        ("parse", &precise, TestedProgram::Parse),
        ("table_precise_clock", &precise, TestedProgram::Microflows),
        ("table_coarse_clock", &coarse, TestedProgram::Microflows),
        ("row_lock_precise_clock", &shared, TestedProgram::Microflows),
    ];
    // In turns, so that whoever else is on the machine meets all of them.
    let mut runs = [const { Vec::new() }; 5];
    for _ in 0..ROUNDS {
        for (runs, (_, engine, program)) in runs.iter_mut().zip(rows) {
            runs.push(packet_ns(engine, program));
        }
    }
    runs.iter_mut().for_each(|runs| runs.sort_unstable());
    let empty = (runs[0][0], runs[0][ROUNDS / 2]);
    for ((name, ..), runs) in rows.into_iter().zip(&runs) {
        let (least, median) = (runs[0], runs[ROUNDS / 2]);
        println!(
            r#"{{"program":"{name}","least_ns":{least},"median_ns":{median},"least_over_empty_ns":{},"median_over_empty_ns":{},"runs_ns":{runs:?}}}"#,
            least.saturating_sub(empty.0),
            median.saturating_sub(empty.1),
        );
    }
}
