// SPDX-License-Identifier: Apache-2.0
//! When messages are sent, and how they are numbered.

use netflow_parser::{NetflowPacket, NetflowParser};
use turboflow_formats::wire::{Message, Protocol, Refresh, Session, WireOptions, encoder};
use turboflow_formats::{Format, to_writer};
use turboflow_record::{Definition, TimeUnit};

use super::decode::{NOW_MS, decode, ipfix_records, messages, options, schema_of, send};
use super::templates::{rich, rich_row};
use crate::support;
use crate::support::default_schema;

#[test]
fn sessions_begin_with_templates_and_repeat_them_in_time() {
    let (schema, definition) = (default_schema(), Definition::default());
    let options = options(&definition, TimeUnit::Milliseconds);
    let mut session = Session::new(Protocol::Ipfix, &options, Refresh::DATAGRAMS);
    let mut encoder = encoder(Protocol::Ipfix, &schema, &options, "test").unwrap();
    let line = "192.0.2.1 192.0.2.2 1 2 6 1 40 1 2 2 40 40 64 64 0 4";
    let mut units = Vec::new();
    encoder.encode(&support::default_batch(&[line]), &mut |unit| {
        units.push(unit)
    });
    encoder.flush(&mut |unit| units.push(unit));
    let mut sent = Vec::new();
    let count = |sent: &mut Vec<Message>| std::mem::take(sent).len();
    for unit in &units {
        session.unit(unit, 1_000, &mut |message| sent.push(message));
    }
    assert_eq!(sent[0].bytes[16..18], [0, 2], "the first set has templates");
    assert_eq!(count(&mut sent), 2);
    session.tick(30_999, &mut |message| sent.push(message));
    assert_eq!(count(&mut sent), 0);
    session.tick(31_000, &mut |message| sent.push(message));
    assert_eq!(sent[0].bytes[16..18], [0, 2]);
    send(&mut session, &mut sent[0]);
    assert_eq!(count(&mut sent), 1);
    session.restart();
    session.unit(&units[1], 31_500, &mut |message| sent.push(message));
    session.number(&mut sent[0]);
    assert_eq!(sent[0].bytes[8..12], [0; 4], "a new session counts from 0");
    assert_eq!(sent[0].bytes[16..18], [0, 2]);
}

#[test]
fn messages_that_are_never_sent_leave_no_gap() {
    let (schema, definition) = (default_schema(), Definition::default());
    let options = options(&definition, TimeUnit::Milliseconds);
    let line = "192.0.2.1 192.0.2.2 1 2 6 1 40 1 2 2 40 40 64 64 0 4";
    for (protocol, at, first, one) in [
        // Three data records of options, and one flow per message.
        (Protocol::Ipfix, 8, 3, 1),
        (Protocol::Netflow9, 12, 1, 1),
        (Protocol::Netflow5, 16, 0, 1),
    ] {
        let mut session = Session::new(protocol, &options, Refresh::DATAGRAMS);
        let mut encoder = encoder(protocol, &schema, &options, "test").unwrap();
        let mut messages = Vec::new();
        for _ in 0..3 {
            let batch = support::default_batch(&[line]);
            let mut send =
                |unit| session.unit(&unit, NOW_MS, &mut |message| messages.push(message));
            encoder.encode(&batch, &mut send);
            encoder.flush(&mut send);
        }
        let flows = messages
            .iter()
            .position(|message| message.flows > 0)
            .unwrap();
        let mut sequences = Vec::new();
        for (index, message) in messages.iter_mut().enumerate() {
            session.number(message);
            let sequence = message.bytes[at..at + 4].try_into().unwrap();
            sequences.push(u32::from_be_bytes(sequence));
            // Sending the first message with flows fails.
            if index != flows {
                session.count_sent(message);
            }
        }
        assert_eq!(
            sequences[flows..],
            [first, first, first + one],
            "{protocol}"
        );
    }
}

/// A stream that can be read while it is written.
#[derive(Clone, Default)]
struct Shared(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

impl std::io::Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_flush_writes_every_record() {
    let (schema, stream) = (default_schema(), Shared::default());
    let mut writer = to_writer(
        Box::new(stream.clone()),
        "standard output",
        Format::Ipfix,
        &schema,
        &support::default_options(),
    )
    .unwrap();
    let line = "192.0.2.1 192.0.2.2 1 2 6 1 40 1 2 2 40 40 64 64 0 4";
    let flows = |bytes: &[u8]| {
        let parsed = NetflowParser::default().parse_bytes(bytes);
        assert!(parsed.error.is_none(), "{:?}", parsed.error);
        let mut flows = Vec::new();
        for packet in &parsed.packets {
            let NetflowPacket::IPFix(packet) = packet else {
                panic!("{packet:?}")
            };
            ipfix_records(packet, &mut flows);
        }
        flows.len()
    };
    for count in 1..=3 {
        writer.write(&support::default_batch(&[line])).unwrap();
        writer.flush().unwrap();
        assert_eq!(flows(&stream.0.lock().unwrap()), count);
    }
    assert_eq!(writer.finish().unwrap().records, 3);
}

#[test]
fn without_options_there_are_templates_and_flows_alone() {
    let definition = rich();
    let schema = schema_of(&definition, false);
    let row = rich_row("10.0.0.1", Some(7), Some(9), vec![1, 2]);
    let with = options(&definition, TimeUnit::Milliseconds);
    let without = WireOptions {
        has_options: false,
        ..with.clone()
    };
    let rows = [row.clone(), row];
    let sent = |options| messages(Protocol::Ipfix, &schema, options, &rows).0;
    let (with, without) = (sent(&with), sent(&without));
    assert_eq!(decode(&with), decode(&without), "the same flows");
    assert_eq!(decode(&without).len(), 2);
    // Only the last message has data, so the messages before it are not counted.
    let sequence = |message: &Message| message.bytes[8..12].to_vec();
    assert!(without.iter().all(|message| sequence(message) == [0; 4]));
    assert!(with.iter().any(|message| sequence(message) != [0; 4]));
}
