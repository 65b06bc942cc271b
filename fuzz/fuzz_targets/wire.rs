// SPDX-License-Identifier: Apache-2.0
//! Any values of any definition, exported: messages keep their size limit and can be walked by
//! their own lengths, templates come first, and sequence numbers match the decoded records.
//!
//! Input: four bytes of choices, then values of eight bytes.

#![no_main]

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use libfuzzer_sys::fuzz_target;
use turboflow_formats::wire::{Message, Protocol, Refresh, Session, Unit, WireOptions, encoder};
use turboflow_merge::Layout;
use turboflow_record::{Column, ColumnKind, Definition, ElementOptions, FlowBatch, Value};

/// Optional values, lists, and several features of one kind.
const RICH: &str = r#"
key = { fields = ["source_address", "destination_address", "protocol", "vlan", "vni"] }
feature = [
    { name = "packets", op = "count" },
    { name = "bytes", op = "sum", of = "ip_length" },
    { name = "spread", op = "variance", of = "frame_length" },
    { name = "lowest_ttl", op = "min", of = "ttl" },
    { name = "first_window", op = "first", of = "tcp_window" },
    { name = "second", op = "nth", of = "ip_length", k = 2 },
    { name = "jitter", op = "gap_variance" },
    { name = "lengths", op = "list", of = "ip_length", k = 30 },
    { name = "gaps", op = "histogram", of = "gap", edges = [1000, 1000000] },
]
"#;

fuzz_target!(|input: &[u8]| {
    let Some((&[kind, size, every, seed], values)) = input.split_first_chunk::<4>() else {
        return;
    };
    let definition = match kind & 1 {
        0 => Definition::default(),
        _ => Definition::parse(RICH).expect("the definition is valid"),
    };
    let protocol =
        [Protocol::Ipfix, Protocol::Netflow9, Protocol::Netflow5][usize::from(kind >> 1) % 3];
    let biflow = kind & 8 != 0 && protocol == Protocol::Ipfix;
    let layout = Layout::compile(&definition, biflow).expect("it compiles");
    let options = WireOptions {
        elements: definition.elements(biflow, &ElementOptions::default()),
        domain: 7,
        message_bytes: 512 + usize::from(size) * 4,
        has_options: kind & 16 == 0,
        applications: None,
        interface: (kind & 32 != 0).then_some(u32::from(size)),
    };
    let schema = layout.schema();
    let Ok(mut encoder) = encoder(protocol, schema, &options, "fuzz") else {
        return;
    };
    let refresh = Refresh {
        interval_ms: None,
        messages: (every > 0).then_some(u64::from(every)),
        templates: true,
    };
    let mut session = Session::new(protocol, &options, refresh);
    let mut collector = Collector::new(protocol, options.message_bytes);
    let mut rows = 0;
    let mut values = values
        .as_chunks::<8>()
        .0
        .iter()
        .map(|bytes| u64::from_le_bytes(*bytes));
    let mut batch = FlowBatch::new(schema);
    let mut units = Vec::new();
    while let Some(first) = values.next() {
        let mut next = || values.next().unwrap_or(first ^ u64::from(seed));
        push(&mut batch, schema, first, &mut next);
        rows += 1;
        if first & 7 == 0 {
            encoder.encode(&batch, &mut |unit| units.push(unit));
            batch.clear();
        }
    }
    encoder.encode(&batch, &mut |unit| units.push(unit));
    encoder.flush(&mut |unit| units.push(unit));
    let flows: u64 = units
        .iter()
        .map(|unit| match unit {
            Unit::Data(data) => u64::from(data.flows),
            Unit::Template(_) | Unit::Name(_) | Unit::Complete(_) => 0,
        })
        .sum();
    assert_eq!(flows + encoder.unexportable().total(), rows);
    for unit in &units {
        let mut messages = Vec::new();
        session.unit(unit, 1_700_000_000_000, &mut |message| {
            messages.push(message)
        });
        messages
            .into_iter()
            .for_each(|message| send(&mut session, &mut collector, message));
    }
    let mut messages = Vec::new();
    session.finish(1_700_000_000_000, &mut |message| messages.push(message));
    messages
        .into_iter()
        .for_each(|message| send(&mut session, &mut collector, message));
    assert_eq!(session.counters().flows, flows);
});

fn send(session: &mut Session, collector: &mut Collector, mut message: Message) {
    session.number(&mut message);
    session.count_sent(&message);
    collector.take(&message.bytes);
}

/// Adds a record with those values.
fn push(batch: &mut FlowBatch, schema: &[Column], first: u64, next: &mut impl FnMut() -> u64) {
    let v6 = first & 8 != 0;
    let lists: Vec<Vec<u64>> = schema
        .iter()
        .map(|_| (0..next() % 40).map(|_| next() >> (next() & 63)).collect())
        .collect();
    let row = schema.iter().zip(&lists).map(|(column, list)| {
        let number = next();
        match column.kind {
            _ if column.nullable && number & 3 == 0 => Value::Absent,
            ColumnKind::Address if v6 => Value::Address(IpAddr::V6(Ipv6Addr::from_bits(
                u128::from(number) << 64 | 1,
            ))),
            ColumnKind::Address => Value::Address(IpAddr::V4(Ipv4Addr::from_bits(number as u32))),
            ColumnKind::Unsigned { bits } => Value::Unsigned(number >> (64 - bits)),
            ColumnKind::TimestampNs => Value::Unsigned(number >> 1),
            ColumnKind::Mac => Value::Unsigned(number >> 16),
            ColumnKind::Float => Value::Float(number as f64),
            ColumnKind::List => Value::List(list),
            ColumnKind::Text => Value::Text(["TLS.NetFlix", "DNS", "a"][number as usize % 3]),
        }
    });
    batch.push_row(&row.collect::<Vec<_>>());
}

/// Lengths of a template's fields; 65,535 means that each value has its own length.
type Template = Vec<usize>;

/// Walks messages as a collector does.
struct Collector {
    protocol: Protocol,
    message_bytes: usize,
    templates: HashMap<u16, Template>,
    /// The next expected sequence number.
    sequence: u32,
}

fn number(bytes: &[u8], at: usize, length: usize) -> usize {
    bytes[at..at + length]
        .iter()
        .fold(0, |sum, byte| sum << 8 | usize::from(*byte))
}

impl Collector {
    fn new(protocol: Protocol, message_bytes: usize) -> Self {
        Self {
            protocol,
            message_bytes,
            templates: HashMap::new(),
            sequence: 0,
        }
    }

    fn take(&mut self, message: &[u8]) {
        assert!(
            message.len() <= self.message_bytes,
            "{} bytes",
            message.len()
        );
        let (header, sequence_at, records) = match self.protocol {
            Protocol::Ipfix => {
                assert_eq!(number(message, 0, 2), 10);
                assert_eq!(number(message, 2, 2), message.len());
                (16, 8, self.sets(&message[16..]))
            }
            Protocol::Netflow9 => {
                assert_eq!(number(message, 0, 2), 9);
                self.sets(&message[20..]);
                (20, 12, 1)
            }
            Protocol::Netflow5 => {
                assert_eq!(number(message, 0, 2), 5);
                let records = number(message, 2, 2);
                assert_eq!(message.len(), 24 + 48 * records);
                (24, 16, records as u32)
            }
        };
        assert!(message.len() >= header);
        assert_eq!(
            number(message, sequence_at, 4),
            self.sequence as usize,
            "sequence"
        );
        self.sequence += records;
    }

    /// Number of data records in the sets.
    fn sets(&mut self, mut sets: &[u8]) -> u32 {
        let mut records = 0;
        while !sets.is_empty() {
            let (id, length) = (number(sets, 0, 2) as u16, number(sets, 2, 2));
            let body = &sets[4..length];
            match (self.protocol, id) {
                (Protocol::Ipfix, 2) | (_, 0) => self.learn(body, 4),
                (Protocol::Ipfix, 3) => self.learn(body, 6),
                (_, 1) => self.learn_options_of_netflow(body),
                _ => records += self.data_records(id, body),
            }
            sets = &sets[length..];
        }
        records
    }

    fn learn(&mut self, mut body: &[u8], header: usize) {
        while body.len() > header {
            let (id, fields) = (number(body, 0, 2), number(body, 2, 2));
            let mut at = header;
            let mut template = Template::new();
            for _ in 0..fields {
                template.push(number(body, at + 2, 2));
                let is_enterprise = self.protocol == Protocol::Ipfix && body[at] & 0x80 != 0;
                at += if is_enterprise { 8 } else { 4 };
            }
            self.templates.insert(id as u16, template);
            body = &body[at..];
        }
    }

    fn learn_options_of_netflow(&mut self, mut body: &[u8]) {
        while body.len() > 6 {
            let fields = (number(body, 2, 2) + number(body, 4, 2)) / 4;
            let lengths = (0..fields).map(|field| number(body, 6 + field * 4 + 2, 2));
            self.templates
                .insert(number(body, 0, 2) as u16, lengths.collect());
            body = &body[6 + fields * 4..];
        }
    }

    fn data_records(&self, id: u16, mut body: &[u8]) -> u32 {
        let template = &self.templates[&id];
        let shortest = template
            .iter()
            .map(|&length| if length == 65_535 { 1 } else { length })
            .sum();
        let mut records = 0;
        while body.len() >= shortest {
            for &length in template {
                let (skipped, length) = match length {
                    65_535 if body[0] == 255 => (3, number(body, 1, 2)),
                    65_535 => (1, usize::from(body[0])),
                    length => (0, length),
                };
                body = &body[skipped + length..];
            }
            records += 1;
        }
        assert!(body.iter().all(|byte| *byte == 0), "padding");
        records
    }
}
