// SPDX-License-Identifier: Apache-2.0
//! The cost of features.
//!
//! | design | what a record holds |
//! |---|---|
//! | `4_features` | packets, bytes, first, last: the paper's four |
//! | `8_features` | four more of the kind the paper adds (TurboFlow, Table 9): largest and mean size, largest gap and mean of a measured value |
//! | `default` | the default definition's ten |
//! | `default_and_4` | those and four more |

use turboflow_aggregate::FlowCache;
use turboflow_merge::{Layout, MicroflowRecord};
use turboflow_record::{Definition, Feature, FiveTuple, Input, InputValues, Op, Packet, WORDS_V4};

use crate::microflows::{BATCH, Microflows, cache, every_flow};
use crate::report::{Measured, in_turn, median};
use crate::{Options, Row, Spread, Timer};

pub(crate) fn run(options: &Options, row: &mut dyn FnMut(Row)) {
    for &flows in &options.flows {
        for spread in Spread::ALL {
            let designs = vec![
                with_words(&definition(4, false), flows, spread, "4_features"),
                with_words(&definition(4, true), flows, spread, "8_features"),
                with_words(&definition(10, false), flows, spread, "default"),
                with_words(&definition(10, true), flows, spread, "default_and_4"),
            ];
            in_turn(designs, options, row);
        }
    }
}

/// The first `count` features of the default definition, with four more if `four_more`.
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
    design: &'static str,
) -> Box<dyn Measured> {
    let layout = Layout::compile(definition, false).expect("the benchmark's definitions compile");
    match layout.state_words() {
        0 => Box::new(Run::<0>::new(&layout, flows, spread, design)),
        8 => Box::new(Run::<8>::new(&layout, flows, spread, design)),
        words => unreachable!("these definitions need {words} words"),
    }
}

/// One definition, its flows, and the time it took to merge records into them.
struct Run<const N: usize> {
    design: &'static str,
    table: FlowCache<WORDS_V4, N>,
    exported: Vec<MicroflowRecord<WORDS_V4, N>>,
    state: [u64; N],
    microflows: Microflows,
    flows: u64,
    spread: Spread,
    rounds: Vec<Row>,
}

impl<const N: usize> Run<N> {
    fn new(layout: &Layout, flows: u64, spread: Spread, design: &'static str) -> Self {
        let mut table = cache::<N>(layout, flows as usize);
        let mut exported = Vec::new();
        let state = some_state::<N>(layout);
        every_flow::<N>(flows, |batch| {
            let mut batch = batch.to_vec();
            batch.iter_mut().for_each(|record| record.state = state);
            table.merge(&batch, &mut exported);
        });
        Self {
            design,
            table,
            exported,
            state,
            microflows: Microflows::new(flows, spread),
            flows,
            spread,
            rounds: Vec::new(),
        }
    }
}

impl<const N: usize> Measured for Run<N> {
    fn round(&mut self, items: u64) {
        let mut batch: Vec<MicroflowRecord<WORDS_V4, N>> = Vec::with_capacity(BATCH);
        let batches = items.div_ceil(BATCH as u64);
        let mut timer = Timer::default();
        for _ in 0..batches {
            self.microflows.fill(&mut batch);
            batch
                .iter_mut()
                .for_each(|record| record.state = self.state);
            timer.time(|| self.table.merge(&batch, &mut self.exported));
        }
        let (items, traffic) = (batches * BATCH as u64, self.spread.name());
        let took = timer.total();
        self.rounds.push(Row::new(
            "features",
            self.design,
            self.flows,
            traffic,
            items,
            took,
        ));
    }

    fn finish(self: Box<Self>) -> Row {
        let mut row = median(self.rounds);
        row.bytes_per_flow = Some(self.table.size_bytes() as f64 / self.flows as f64);
        row
    }
}

/// The state of features after one packet.
fn some_state<const N: usize>(layout: &Layout) -> [u64; N] {
    let packet = Packet {
        tuple: FiveTuple::v4([10, 0, 0, 1, 10, 0, 0, 2], [0, 80, 1, 2], 6),
        timestamp_ns: 1,
        ip_length_bytes: 600,
        frame_length_bytes: 614,
        tcp_flags: 0x10,
        ttl: 60,
        tos: 0,
        is_echo_reply: false,
    };
    let mut values = InputValues::default();
    values.set(Input::TcpWindow, 4_096);
    layout.open::<WORDS_V4, N>(&packet, &values).state
}
