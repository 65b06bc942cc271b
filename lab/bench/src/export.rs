// SPDX-License-Identifier: Apache-2.0
//! The cost of encoding flow records: from batches of columns to complete messages with headers and
//! sequence numbers, without the socket.
//!
//! | design | what |
//! |---|---|
//! | `ipfix`, `netflow9`, `netflow5` | the default definition in datagrams |
//! | `ipfix_stream` | the same in messages for TCP |
//! | `ipfix_rich` | eight more features, among them a list and some that are absent now and then |

use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};

use turboflow_formats::wire::{
    DATAGRAM_BYTES, Encode, Protocol, Refresh, STREAM_MESSAGE_BYTES, Session, WireOptions, encoder,
};
use turboflow_merge::Layout;
use turboflow_record::{
    Column, ColumnKind, Definition, ElementOptions, Feature, FlowBatch, Input, Op, Value,
};

use crate::report::{Measured, in_turn, median};
use crate::{Options, Row, Timer};

/// Records per batch, as in the pipeline.
const BATCH: u64 = 4_096;
/// Batches encoded in turn. Together they exceed L2.
const BATCHES: u64 = 8;
const NOW_MS: u64 = 1_700_000_100_000;

pub(crate) fn run(options: &Options, row: &mut dyn FnMut(Row)) {
    let (default, rich) = (Definition::default(), rich());
    let designs: Vec<Box<dyn Measured>> = vec![
        Box::new(Run::new("ipfix", Protocol::Ipfix, DATAGRAM_BYTES, &default)),
        Box::new(Run::new(
            "ipfix_stream",
            Protocol::Ipfix,
            STREAM_MESSAGE_BYTES,
            &default,
        )),
        Box::new(Run::new(
            "ipfix_rich",
            Protocol::Ipfix,
            DATAGRAM_BYTES,
            &rich,
        )),
        Box::new(Run::new(
            "netflow9",
            Protocol::Netflow9,
            DATAGRAM_BYTES,
            &default,
        )),
        Box::new(Run::new(
            "netflow5",
            Protocol::Netflow5,
            DATAGRAM_BYTES,
            &default,
        )),
    ];
    in_turn(designs, options, row);
}

/// The default definition with more features, to measure absent values and a list.
fn rich() -> Definition {
    let mut definition = Definition::default();
    let more = [
        ("frame_bytes", Op::Sum, Some(Input::FrameLength)),
        ("mean_length", Op::Mean, Some(Input::IpLength)),
        ("lengths", Op::List { k: 4 }, Some(Input::IpLength)),
        ("longest_gap_ns", Op::GapMax, None),
        ("mean_gap_ns", Op::GapMean, None),
        ("largest_window", Op::Max, Some(Input::TcpWindow)),
        ("payload_bytes", Op::Sum, Some(Input::PayloadLength)),
        ("vlan", Op::First, Some(Input::Vlan)),
    ];
    for (name, op, of) in more {
        definition.features.push(Feature {
            name: name.to_owned(),
            op,
            of,
            per_biflow: false,
        });
    }
    definition
}

/// One format, its batches, and the time it took to encode them.
struct Run {
    design: &'static str,
    encoder: Box<dyn Encode>,
    session: Session,
    batches: Vec<FlowBatch>,
    rounds: Vec<Row>,
}

impl Run {
    fn new(
        design: &'static str,
        protocol: Protocol,
        message_bytes: usize,
        definition: &Definition,
    ) -> Self {
        let layout = Layout::compile(definition, false).expect("the definitions compile");
        let wire = WireOptions {
            elements: definition.elements(false, &ElementOptions::default()),
            message_bytes,
            ..WireOptions::default()
        };
        let schema = layout.schema();
        let encoder = encoder(protocol, schema, &wire, design).expect("the format holds them");
        let batch = |number| {
            let mut batch = FlowBatch::new(schema);
            for record in number * BATCH..(number + 1) * BATCH {
                let row: Vec<_> = schema.iter().map(|column| value(column, record)).collect();
                batch.push_row(&row);
            }
            batch
        };
        Self {
            design,
            encoder,
            session: Session::new(protocol, &wire, Refresh::DATAGRAMS),
            batches: (0..BATCHES).map(batch).collect(),
            rounds: Vec::new(),
        }
    }
}

/// A column value like that of real traffic. Every eighth nullable value is absent.
fn value(column: &Column, record: u64) -> Value<'static> {
    const T0_NS: u64 = 1_700_000_000_000_000_000;
    let mixed = record.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16;
    if column.nullable && mixed.is_multiple_of(8) {
        return Value::Absent;
    }
    match column.kind {
        ColumnKind::Address => Value::Address(IpAddr::V4(Ipv4Addr::from_bits(mixed as u32))),
        ColumnKind::Float => Value::Float(mixed as f64 / 3.0),
        ColumnKind::List => Value::List(&[60, 1_500, 52, 1_500]),
        ColumnKind::Text => Value::Text(["TLS.NetFlix", "DNS", "QUIC"][mixed as usize % 3]),
        ColumnKind::TimestampNs => Value::Unsigned(T0_NS + record * 1_000),
        _ if column.name == "tcp_flags" => Value::Unsigned(mixed & 0x1f),
        ColumnKind::Unsigned { bits: 16 } => Value::Unsigned(mixed & 0xffff),
        _ => Value::Unsigned(mixed & 0xff),
    }
}

impl Measured for Run {
    fn round(&mut self, items: u64) {
        let rounds = items.div_ceil(BATCH);
        let (mut timer, mut bytes) = (Timer::default(), 0);
        timer.time(|| {
            for round in 0..rounds {
                let batch = &self.batches[(round % BATCHES) as usize];
                let session = &mut self.session;
                let mut send = |message: turboflow_formats::wire::Message| {
                    bytes += black_box(message).bytes.len();
                };
                self.encoder
                    .encode(batch, &mut |unit| session.unit(&unit, NOW_MS, &mut send));
                self.encoder
                    .flush(&mut |unit| session.unit(&unit, NOW_MS, &mut send));
            }
        });
        assert_eq!(self.encoder.unexportable().total(), 0);
        let (items, took) = (rounds * BATCH, timer.total());
        let mut row = Row::new("export", self.design, items, "-", items, took);
        row.bytes_per_flow = Some(bytes as f64 / items as f64);
        self.rounds.push(row);
    }

    fn finish(self: Box<Self>) -> Row {
        median(self.rounds)
    }
}
