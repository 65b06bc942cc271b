// SPDX-License-Identifier: Apache-2.0
//! What features cost.
//!
//! | design | what a record holds |
//! |---|---|
//! | `4_features` | packets, bytes, first, last: the paper's four |
//! | `8_features` | four more of the kind the paper adds (TurboFlow, Table 9): largest and mean size, largest gap and mean of a measured value |
//! | `default` | the default definition's ten |
//! | `default_and_4` | those and four more |

use turboflow_record::{
    Definition, Feature, FiveTuple, Input, InputValues, Layout, MicroflowRecord, Op, Packet,
    WORDS_V4,
};

use crate::microflows::{BATCH, Microflows, cache, every_flow};
use crate::report::median;
use crate::{Options, Row, Spread, Timer};

pub(crate) fn run(options: &Options, row: &mut dyn FnMut(Row)) {
    for &flows in &options.flows {
        for spread in Spread::ALL {
            let four = with_words(&definition(4, false), flows, spread, options, "4_features");
            row(four);
            row(with_words(
                &definition(4, true),
                flows,
                spread,
                options,
                "8_features",
            ));
            row(with_words(
                &definition(10, false),
                flows,
                spread,
                options,
                "default",
            ));
            row(with_words(
                &definition(10, true),
                flows,
                spread,
                options,
                "default_and_4",
            ));
        }
    }
}

/// The first `count` features of the default definition, and four more if asked for.
fn definition(count: usize, four_more: bool) -> Definition {
    let mut definition = Definition::default();
    definition.features.truncate(count);
    if four_more {
        let more = [
            ("max_frame_length", Op::Max, Input::FrameLength),
            ("mean_frame_length", Op::Mean, Input::FrameLength),
            ("max_gap_ns", Op::GapMax, Input::Timestamp),
            ("mean_tcp_window", Op::Mean, Input::TcpWindow),
        ];
        for (name, op, input) in more {
            let of = (op != Op::GapMax).then_some(input);
            definition.features.push(Feature {
                name: name.to_owned(),
                op,
                of,
                per_biflow: false,
            });
        }
    }
    definition
}

fn with_words(
    definition: &Definition,
    flows: u64,
    spread: Spread,
    options: &Options,
    design: &str,
) -> Row {
    let layout = Layout::compile(definition, false).expect("the benchmark's definitions compile");
    match layout.state_words() {
        0 => measure::<0>(&layout, flows, spread, options, design),
        8 => measure::<8>(&layout, flows, spread, options, design),
        words => unreachable!("these definitions need {words} words"),
    }
}

fn measure<const N: usize>(
    layout: &Layout,
    flows: u64,
    spread: Spread,
    options: &Options,
    design: &str,
) -> Row {
    let mut table = cache::<N>(layout, flows as usize);
    let mut exported = Vec::new();
    let state = some_state::<N>(layout);
    every_flow::<N>(flows, |batch| table.merge(batch, &mut exported));
    let mut microflows = Microflows::new(flows, spread);
    let mut batch: Vec<MicroflowRecord<WORDS_V4, N>> = Vec::with_capacity(BATCH);
    let batches = options.items.div_ceil(BATCH as u64);
    let mut runs = Vec::new();
    for _ in 0..options.repetitions {
        let mut timer = Timer::default();
        for _ in 0..batches {
            microflows.fill(&mut batch);
            batch.iter_mut().for_each(|record| record.state = state);
            timer.time(|| table.merge(&batch, &mut exported));
        }
        let items = batches * BATCH as u64;
        runs.push(Row::new(
            "features",
            design,
            flows,
            spread.name(),
            items,
            timer.total(),
        ));
    }
    let mut row = median(runs);
    row.bytes_per_flow = Some(table.size_bytes() as f64 / flows as f64);
    row
}

/// The state that a packet's features have.
fn some_state<const N: usize>(layout: &Layout) -> [u64; N] {
    let packet = Packet {
        tuple: FiveTuple::v4([10, 0, 0, 1, 10, 0, 0, 2], [0, 80, 1, 2], 6),
        timestamp_ns: 1,
        ip_length_bytes: 600,
        frame_length_bytes: 614,
        tcp_flags: 0x10,
        ttl: 60,
        tos: 0,
    };
    let mut values = InputValues::default();
    values.set(Input::TcpWindow, 4_096);
    layout.open::<WORDS_V4, N>(&packet, &values).state
}
