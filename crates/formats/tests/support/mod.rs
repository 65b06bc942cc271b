// SPDX-License-Identifier: Apache-2.0
//! Schemas and batches for the tests.
#![allow(dead_code, reason = "every test file uses a part of it")]

use std::net::IpAddr;
use std::path::Path;

use netflow_parser::variable_versions::ipfix::FlowSetBody;
use netflow_parser::{NetflowPacket, NetflowParser};
use proptest::prelude::*;
use turboflow_formats::wire::WireOptions;
use turboflow_formats::{Format, ParquetTypes, WriteOptions, create, read};
use turboflow_merge::Layout;
use turboflow_record::{Column, ColumnKind, Definition, ElementOptions, FlowBatch, Schema, Value};

/// A value that owns its content.
#[derive(Clone, Debug)]
pub(crate) enum Owned {
    Absent,
    Address(IpAddr),
    Unsigned(u64),
    Float(f64),
    List(Vec<u64>),
    Text(String),
}

impl Owned {
    /// Clears the top bit of a number, so that it fits in a signed one.
    pub(crate) fn make_signed(&mut self) {
        if let Self::Unsigned(number) = self {
            *number &= i64::MAX as u64;
        }
    }

    pub(crate) fn as_value(&self) -> Value<'_> {
        match self {
            Self::Absent => Value::Absent,
            Self::Address(address) => Value::Address(*address),
            Self::Unsigned(number) => Value::Unsigned(*number),
            Self::Float(float) => Value::Float(*float),
            Self::List(list) => Value::List(list),
            Self::Text(text) => Value::Text(text),
        }
    }
}

pub(crate) type Rows = Vec<Vec<Owned>>;

pub(crate) fn batch(schema: &Schema, rows: &[Vec<Owned>]) -> FlowBatch {
    let mut batch = FlowBatch::new(schema);
    for row in rows {
        let values: Vec<Value<'_>> = row.iter().map(Owned::as_value).collect();
        batch.push_row(&values);
    }
    batch
}

pub(crate) fn default_schema() -> Schema {
    Layout::compile(&Definition::default(), false)
        .expect("the default definition compiles")
        .schema()
        .clone()
}

/// Options with which every format can write the default definition.
pub(crate) fn default_options() -> WriteOptions {
    let elements = Definition::default().elements(false, &ElementOptions::default());
    WriteOptions {
        wire: WireOptions {
            elements,
            ..WireOptions::default()
        },
        ..WriteOptions::default()
    }
}

/// Number of flow records in a file of any format; IPFIX is read by another decoder.
pub(crate) fn records_in(path: &Path) -> u64 {
    if !path.display().to_string().contains(".ipfix") {
        return read_all(path).1.rows() as u64;
    }
    let parsed = NetflowParser::default().parse_bytes(&std::fs::read(path).unwrap());
    assert!(parsed.error.is_none(), "{:?}", parsed.error);
    let mut records = 0;
    for packet in &parsed.packets {
        let NetflowPacket::IPFix(packet) = packet else {
            panic!("{packet:?}")
        };
        for set in &packet.flowsets {
            if let FlowSetBody::Data(data) = &set.body {
                records += data.fields.len() as u64;
            }
        }
    }
    records
}

/// One record of the default definition per line of text.
pub(crate) fn default_batch(lines: &[&str]) -> FlowBatch {
    batch(&default_schema(), &default_rows(lines))
}

/// The values of one record of the default definition per line of text.
pub(crate) fn default_rows(lines: &[&str]) -> Rows {
    lines
        .iter()
        .map(|line| {
            let value = |(index, text): (usize, &str)| match index {
                0 | 1 => Owned::Address(text.parse().unwrap()),
                _ => Owned::Unsigned(text.parse().unwrap()),
            };
            line.split(' ').enumerate().map(value).collect()
        })
        .collect()
}

fn kind() -> impl Strategy<Value = ColumnKind> {
    prop_oneof![
        Just(ColumnKind::Address),
        prop::sample::select(vec![8, 16, 32, 64]).prop_map(|bits| ColumnKind::Unsigned { bits }),
        Just(ColumnKind::TimestampNs),
        Just(ColumnKind::Mac),
        Just(ColumnKind::Float),
        Just(ColumnKind::List),
        Just(ColumnKind::Text),
    ]
}

fn number(bits: u32) -> BoxedStrategy<u64> {
    let max = u64::MAX >> (64 - bits);
    prop_oneof![Just(0), Just(max), 0..=max, 0..=max.min(20)].boxed()
}

fn value(kind: ColumnKind, nullable: bool) -> BoxedStrategy<Owned> {
    let there = match kind {
        ColumnKind::Address => any::<IpAddr>().prop_map(Owned::Address).boxed(),
        ColumnKind::Unsigned { bits } => number(u32::from(bits)).prop_map(Owned::Unsigned).boxed(),
        ColumnKind::TimestampNs => number(63).prop_map(Owned::Unsigned).boxed(),
        ColumnKind::Mac => number(48).prop_map(Owned::Unsigned).boxed(),
        ColumnKind::Float => prop_oneof![
            any::<f64>().prop_filter("finite", |f| f.is_finite()),
            Just(3.0)
        ]
        .prop_map(Owned::Float)
        .boxed(),
        ColumnKind::List => prop::collection::vec(number(63), 0..5)
            .prop_map(Owned::List)
            .boxed(),
        // Excludes texts that text files would show to be of another kind.
        ColumnKind::Text => "[ \",;'\\\\é]{0,3}x[ -~é]{0,20}"
            .prop_map(Owned::Text)
            .boxed(),
    };
    if nullable {
        prop_oneof![3 => there, 1 => Just(Owned::Absent)].boxed()
    } else {
        there
    }
}

/// A random schema and rows for it.
pub(crate) fn table(rows: std::ops::Range<usize>) -> impl Strategy<Value = (Schema, Rows)> {
    prop::collection::vec((kind(), any::<bool>()), 1..7).prop_flat_map(move |columns| {
        let schema: Schema = columns
            .iter()
            .enumerate()
            .map(|(index, &(kind, nullable))| Column {
                name: format!("c{index}"),
                kind,
                nullable,
            })
            .collect();
        let row: Vec<_> = columns
            .into_iter()
            .map(|(kind, null)| value(kind, null))
            .collect();
        (Just(schema), prop::collection::vec(row, rows.clone()))
    })
}

pub(crate) fn write(path: &Path, format: Format, schema: &Schema, batches: &[FlowBatch]) {
    write_as(path, format, ParquetTypes::default(), schema, batches);
}

pub(crate) fn write_as(
    path: &Path,
    format: Format,
    parquet_types: ParquetTypes,
    schema: &Schema,
    batches: &[FlowBatch],
) {
    let options = WriteOptions {
        parquet_types,
        row_group_records: 50,
        ..WriteOptions::default()
    };
    let mut writer = create(path, format, schema, &options).unwrap();
    batches
        .iter()
        .for_each(|batch| writer.write(batch).unwrap());
    let summary = writer.finish().unwrap();
    let records: usize = batches.iter().map(FlowBatch::rows).sum();
    assert_eq!(summary.records, records as u64);
    assert_eq!(summary.bytes, path.metadata().unwrap().len());
}

/// All records of a file in one batch, and its schema.
pub(crate) fn read_all(path: &Path) -> (Schema, FlowBatch) {
    let reader = read(path).unwrap();
    let schema = reader.schema().clone();
    let mut all = FlowBatch::new(&schema);
    for batch in reader {
        let batch = batch.unwrap();
        for row in 0..batch.rows() {
            let values: Vec<_> = (0..schema.len())
                .map(|column| batch.value(row, column))
                .collect();
            all.push_row(&values);
        }
    }
    (schema, all)
}
