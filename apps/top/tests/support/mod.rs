// SPDX-License-Identifier: Apache-2.0
//! Records as delivered by the meter.
#![allow(dead_code, reason = "every test file uses a part of it")]

use std::net::IpAddr;

use turboflow_merge::Layout;
use turboflow_record::{Definition, Feature, FlowBatch, Input, Op, Schema, Value};
use turboflow_top::{FlowKey, Sums};

/// The traffic of a flow in a range of time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delta {
    pub(crate) key: FlowKey,
    pub(crate) sums: Sums,
    pub(crate) first_ns: u64,
    pub(crate) last_ns: u64,
}

/// The columns of the default definition.
pub(crate) fn schema() -> Schema {
    let layout = Layout::compile(&Definition::default(), false);
    layout.expect("the default compiles").schema().clone()
}

/// The columns of the default definition, followed by the application.
pub(crate) fn schema_with_applications() -> Schema {
    let mut definition = Definition::default();
    let application = Feature::new("application", Op::Last, Some(Input::Application));
    definition.features.push(application);
    let layout = Layout::compile(&definition, false);
    layout.expect("the definition compiles").schema().clone()
}

/// Records of the default definition; columns that the screen does not use are 0.
pub(crate) fn batch(deltas: &[Delta]) -> FlowBatch {
    let unnamed: Vec<_> = deltas.iter().map(|delta| (*delta, None)).collect();
    records(&schema(), &unnamed)
}

/// Records with an application, if it is known.
pub(crate) fn named_batch(deltas: &[(Delta, Option<&'static str>)]) -> FlowBatch {
    records(&schema_with_applications(), deltas)
}

fn records(schema: &Schema, deltas: &[(Delta, Option<&'static str>)]) -> FlowBatch {
    let mut batch = FlowBatch::new(schema);
    for (delta, application) in deltas {
        let value = |name: &str| match name {
            "application" => application.map_or(Value::Absent, Value::Text),
            "src_addr" => Value::Address(delta.key.source),
            "dst_addr" => Value::Address(delta.key.destination),
            "src_port" => Value::Unsigned(delta.key.source_port.into()),
            "dst_port" => Value::Unsigned(delta.key.destination_port.into()),
            "protocol" => Value::Unsigned(delta.key.protocol.into()),
            "packets" => Value::Unsigned(delta.sums.packets),
            "bytes" => Value::Unsigned(delta.sums.bytes),
            "first_ns" => Value::Unsigned(delta.first_ns),
            "last_ns" => Value::Unsigned(delta.last_ns),
            _ => Value::Unsigned(0),
        };
        let row: Vec<_> = schema.iter().map(|column| value(&column.name)).collect();
        batch.push_row(&row);
    }
    batch
}

/// `10.0.0.1:1234 > 10.0.0.2:80/6`
pub(crate) fn key(text: &str) -> FlowKey {
    let (ends, protocol) = text.rsplit_once('/').expect("a protocol");
    let (from, to) = ends.split_once(" > ").expect("two ends");
    let end = |text: &str| -> (IpAddr, u16) {
        let (address, port) = text.rsplit_once(':').expect("a port");
        let address = address.trim_matches(['[', ']']).parse();
        (
            address.expect("an address"),
            port.parse().expect("a number"),
        )
    };
    let ((source, source_port), (destination, destination_port)) = (end(from), end(to));
    FlowKey {
        source,
        destination,
        source_port,
        destination_port,
        protocol: protocol.parse().expect("a number"),
    }
}
