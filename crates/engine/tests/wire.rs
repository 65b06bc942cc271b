// SPDX-License-Identifier: Apache-2.0
//! The wire format: records of any definition survive encoding, and invalid messages are rejected.
#![allow(clippy::unwrap_used, reason = "in tests a panic is the report")]

use proptest::prelude::*;
use turboflow_engine::wire::{Decoder, Encoder, HEADER_BYTES, WireError, layout_id, message_bytes};
use turboflow_engine::{EngineCounters, MicroflowBatch, RecordShape};
use turboflow_merge::{KeyWidths, Layout, MicroflowRecord};
use turboflow_record::{Definition, InputValues, Packet, Rejected};
use turboflow_workload::definitions::random_definition;
use turboflow_workload::sequences::{SequenceShape, random_packets};

/// Enough state words for every definition.
const N: usize = 504;

/// One record per packet, as a remote engine hands them over.
fn batch_of(layout: &Layout, packets: &[(Packet, InputValues)]) -> MicroflowBatch {
    let mut batch = MicroflowBatch::default();
    let shape = RecordShape::of(layout);
    for (packet, values) in packets {
        if layout.key_widths() == KeyWidths::Wide {
            push(&mut batch, &layout.open::<16, N>(packet, values), 16, shape);
        } else if packet.tuple.words().len() == 2 {
            push(&mut batch, &layout.open::<2, N>(packet, values), 2, shape);
        } else {
            push(&mut batch, &layout.open::<5, N>(packet, values), 5, shape);
        }
    }
    batch
}

fn push<const K: usize>(
    batch: &mut MicroflowBatch,
    record: &MicroflowRecord<K, N>,
    key_words: usize,
    shape: RecordShape,
) {
    let key_words = shape.wide_key_words.unwrap_or(key_words);
    let mut row = record.base.words().to_vec();
    row.extend(&record.state[..shape.state_words]);
    row.extend(&record.key[..key_words]);
    assert!(batch.push_row(row.into_iter(), shape));
}

/// All records, padded to one width.
fn records(batch: &MicroflowBatch, layout: &Layout) -> Vec<String> {
    match layout.key_widths() {
        KeyWidths::Wide => batch.wide::<N>().map(|it| format!("{it:?}")).collect(),
        KeyWidths::ByFamily => {
            let v4 = batch.v4::<N>().map(|it| format!("{it:?}"));
            v4.chain(batch.v6::<N>().map(|it| format!("{it:?}")))
                .collect()
        }
    }
}

fn messages(encoder: &mut Encoder, batch: &MicroflowBatch) -> Vec<Vec<u8>> {
    let mut messages = Vec::new();
    encoder.records(batch, |message| messages.push(message.to_vec()));
    messages
}

fn default_layout() -> Layout {
    Layout::compile(&Definition::default(), false).unwrap()
}

fn packets(seed: u64) -> Vec<(Packet, InputValues)> {
    random_packets(seed, &SequenceShape::default())
        .into_iter()
        .take(200)
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn records_of_any_definition_survive_encoding(seed: u64, biflow: bool, message_bytes in 64usize..4_096) {
        let definition = random_definition(seed, biflow);
        if let Ok(layout) = Layout::compile(&definition, biflow) {
            let batch = batch_of(&layout, &packets(seed));
            let mut decoder = Decoder::new(&layout);
            let mut read = MicroflowBatch::default();
            let mut encoder = Encoder::new(&layout, 7, message_bytes);
            for message in messages(&mut encoder, &batch) {
                prop_assert_eq!(length_said(&message), message.len());
                let decoded = decoder.decode(&message, &mut read).unwrap();
                prop_assert_eq!(decoded.engine_id, 7);
                prop_assert!(decoded.records > 0);
            }
            prop_assert_eq!(records(&read, &layout), records(&batch, &layout));
            prop_assert_eq!((decoder.lost(), decoder.repeated()), (0, 0));
        }
    }

    #[test]
    fn a_message_with_a_changed_byte_is_decoded_or_rejected(seed: u64, at: prop::sample::Index, to: u8) {
        let layout = default_layout();
        let batch = batch_of(&layout, &packets(seed));
        let mut message = messages(&mut Encoder::new(&layout, 1, 1_400), &batch).swap_remove(0);
        let at = at.index(message.len());
        message[at] = to;
        let mut read = MicroflowBatch::default();
        let decoded = Decoder::new(&layout).decode(&message, &mut read);
        prop_assert_eq!(decoded.map_or(0, |decoded| decoded.records), read.len());
    }
}

fn length_said(message: &[u8]) -> usize {
    message_bytes(message).unwrap().unwrap()
}

#[test]
fn counters_and_watermarks_survive_encoding() {
    let layout = default_layout();
    let mut counters = EngineCounters {
        packets_received: 11,
        packets_metered: 9,
        bytes_metered: u64::MAX,
        microflows_dropped: 3,
        source_dropped: 7,
        ..EngineCounters::default()
    };
    counters.evicted.bypass = 4;
    counters.evicted.collision = 5;
    counters.rejected_packets[Rejected::Arp.index()] = 2;
    counters.rejected_bytes[Rejected::VersionMismatch.index()] = 120;
    let mut encoder = Encoder::new(&layout, 1, 1_400);
    let mut decoder = Decoder::new(&layout);
    for (watermark_ns, is_end) in [(5, false), (0, true)] {
        let mut batch = MicroflowBatch::default();
        encoder.counters(&counters, watermark_ns, is_end, |message| {
            let decoded = decoder.decode(message, &mut batch).unwrap();
            assert_eq!(decoded.counters, Some(counters));
            assert_eq!(
                decoded.watermark_ns,
                (watermark_ns > 0).then_some(watermark_ns)
            );
            assert_eq!(decoded.is_end, is_end);
        });
        assert!(batch.is_empty());
    }
}

#[test]
fn lost_and_repeated_messages_are_counted() {
    let layout = default_layout();
    let batch = batch_of(&layout, &packets(1));
    let messages = messages(&mut Encoder::new(&layout, 1, 200), &batch);
    let mut decoder = Decoder::new(&layout);
    let mut read = MicroflowBatch::default();
    let mut decode = |place: usize, decoder: &mut Decoder| {
        decoder.decode(&messages[place], &mut read).unwrap().records as u64
    };
    decode(0, &mut decoder);
    let lost = decode(2, &mut Decoder::new(&layout)) + decode(1, &mut Decoder::new(&layout));
    decode(3, &mut decoder);
    assert_eq!(decoder.lost(), lost);
    let second = decode(2, &mut decoder);
    assert_eq!(decoder.lost(), lost - second);
    assert_eq!((decode(2, &mut decoder), decoder.repeated()), (0, second));
}

#[test]
fn rejects_invalid_messages_and_other_layouts() {
    let layout = default_layout();
    let batch = batch_of(&layout, &packets(1));
    let message = messages(&mut Encoder::new(&layout, 1, 1_400), &batch).swap_remove(0);
    let refused = |change: &dyn Fn(&mut Vec<u8>), layout: &Layout| {
        let mut message = message.clone();
        change(&mut message);
        let mut read = MicroflowBatch::default();
        let error = Decoder::new(layout)
            .decode(&message, &mut read)
            .unwrap_err();
        assert!(read.is_empty());
        error
    };
    let with = |at: usize, to: u8| move |message: &mut Vec<u8>| message[at] = to;
    assert_eq!(
        refused(&with(0, 0), &layout),
        WireError::Magic { found: 0x66 }
    );
    assert_eq!(
        refused(&with(2, 9), &layout),
        WireError::Version { found: 9 }
    );
    assert_eq!(refused(&with(3, 9), &layout), WireError::Kind { found: 9 });
    assert_eq!(
        refused(&with(3, 3), &layout),
        WireError::Family { found: 3 }
    );
    assert_eq!(
        refused(&with(4, 0xff), &layout),
        WireError::Length {
            found: 0xff00_0000 | message.len() as u32
        }
    );
    let no_packet = |message: &mut Vec<u8>| message[HEADER_BYTES..HEADER_BYTES + 8].fill(0);
    assert_eq!(refused(&no_packet, &layout), WireError::Record { index: 0 });
    let cut = |message: &mut Vec<u8>| message.truncate(HEADER_BYTES + 1);
    assert!(matches!(
        refused(&cut, &layout),
        WireError::Truncated { .. }
    ));
    let other = Layout::compile(&Definition::default(), true).unwrap();
    assert_ne!(layout_id(&layout), layout_id(&other));
    assert!(matches!(
        refused(&|_: &mut Vec<u8>| (), &other),
        WireError::Layout { .. }
    ));
}

#[test]
fn the_layout_id_of_the_default_definition_is_stable() {
    // A change breaks every deployed sender: raise the version instead.
    assert_eq!(layout_id(&default_layout()), DEFAULT_LAYOUT_ID);
}

const DEFAULT_LAYOUT_ID: u64 = 0x9f36_ee11_f052_0ef3;
