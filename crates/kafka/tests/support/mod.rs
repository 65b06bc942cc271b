// SPDX-License-Identifier: Apache-2.0
//! Records for the tests.

use turboflow_formats::{Identity, TextOptions};
use turboflow_kafka::{KafkaTarget, Records};
use turboflow_record::{Column, ColumnKind, FlowBatch, Schema, Value};

pub(crate) fn schema() -> Schema {
    let number = |bits| ColumnKind::Unsigned { bits };
    [
        ("src_addr", ColumnKind::Address),
        ("dst_addr", ColumnKind::Address),
        ("src_port", number(16)),
        ("dst_port", number(16)),
        ("protocol", number(8)),
        ("packets", number(64)),
        ("bytes", number(64)),
        ("first_ns", ColumnKind::TimestampNs),
        ("last_ns", ColumnKind::TimestampNs),
    ]
    .map(|(name, kind)| Column {
        name: name.to_owned(),
        kind,
        nullable: false,
    })
    .to_vec()
}

pub(crate) fn identity() -> Identity {
    Identity::new("tap-7", 14).unwrap()
}

pub(crate) fn target(text: &str) -> KafkaTarget {
    text.parse().unwrap()
}

pub(crate) fn records<'a>(schema: &'a Schema, identity: &'a Identity) -> Records<'a> {
    Records {
        schema,
        key_columns: 5,
        is_biflow: false,
        identity,
        metadata: &[],
        text: TextOptions::default(),
    }
}

/// Records of many flows, in both directions, with sequence numbers from `first` on.
pub(crate) fn batch(first: u64, rows: u64) -> FlowBatch {
    let mut batch = FlowBatch::new(&schema());
    for number in first..first + rows {
        let flow = number / 2;
        let host = Value::Address(std::net::Ipv4Addr::from_bits(flow as u32).into());
        let server = Value::Address([192, 0, 2, 1].into());
        let (port, service) = (Value::Unsigned(flow % 60_000), Value::Unsigned(443));
        let ends = match number % 2 {
            0 => [host, server, port, service],
            _ => [server, host, service, port],
        };
        let rest = [6, number, 2 * number, 2, 3].map(Value::Unsigned);
        let row: Vec<_> = ends.into_iter().chain(rest).collect();
        batch.push_row(&row);
    }
    batch.number_from(first);
    batch
}
