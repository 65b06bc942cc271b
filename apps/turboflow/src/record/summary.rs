// SPDX-License-Identifier: Apache-2.0
//! The summary that a run without an output prints: a few sums and the largest records, in bounded
//! memory.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::ops::AddAssign;
use std::sync::{Arc, Mutex, PoisonError};

use turboflow_formats::{ExportError, FlowWriter, WriteSummary};
use turboflow_merge::Layout;
use turboflow_record::{Column, ColumnKind, Definition, FlowBatch, Input, KeyField, Op, Value};

/// How many of the largest records are kept.
const TOP: usize = 10;
/// Maximum number of applications that are counted separately: more than an inspection library
/// knows, even in combination with protocols.
const MOST_APPLICATIONS: usize = 4_096;
/// The key for flows without an application, and for applications beyond [`MOST_APPLICATIONS`].
const NO_APPLICATION: &str = "";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    pub(super) records: u64,
    pub(super) packets: u64,
    pub(super) bytes: u64,
}

impl AddAssign for Sums {
    fn add_assign(&mut self, other: Self) {
        self.records += other.records;
        self.packets += other.packets;
        self.bytes += other.bytes;
    }
}

/// The columns that the summary uses.
#[derive(Clone, Debug)]
struct Columns {
    protocol: Option<usize>,
    application: Option<usize>,
    /// Columns of packets. A biflow has one per direction, as for all columns below.
    packets: Vec<usize>,
    bytes: Vec<usize>,
    /// Columns with the time of the first and of the last packet.
    first: Vec<usize>,
    last: Vec<usize>,
    shown: Vec<usize>,
}

/// The sums and the largest records so far.
#[derive(Debug)]
pub(super) struct Summary {
    columns: Columns,
    /// The names and kinds of the columns in `top`.
    pub(super) shown: Vec<Column>,
    /// Sums by protocol number. If the key lacks the protocol, everything is under 0.
    by_protocol: Vec<Sums>,
    by_application: HashMap<String, Sums>,
    top: BinaryHeap<Reverse<(u64, u64, Vec<String>)>>,
    records: u64,
    /// Times of the first and of the last packet in the records.
    times_ns: Option<(u64, u64)>,
}

impl Summary {
    pub(super) fn new(definition: &Definition, layout: &Layout) -> Self {
        let columns = Columns::new(definition, layout);
        let shown = columns
            .shown
            .iter()
            .map(|&index| layout.schema()[index].clone())
            .collect();
        Self {
            columns,
            shown,
            by_protocol: vec![Sums::default(); 256],
            by_application: HashMap::new(),
            top: BinaryHeap::new(),
            records: 0,
            times_ns: None,
        }
    }

    /// Times of the first and of the last packet, if the records have them.
    pub(super) fn times_ns(&self) -> Option<(u64, u64)> {
        self.times_ns
    }

    /// Packets and bytes of all records.
    pub(super) fn total(&self) -> Sums {
        self.by_protocol
            .iter()
            .fold(Sums::default(), |total, sums| Sums {
                records: total.records + sums.records,
                packets: total.packets + sums.packets,
                bytes: total.bytes + sums.bytes,
            })
    }

    /// What records are ranked by: bytes if they have them, otherwise packets. `None` without both.
    pub(super) fn ranked_by(&self) -> Option<&'static str> {
        match (&self.columns.bytes[..], &self.columns.packets[..]) {
            ([_, ..], _) => Some("bytes"),
            ([], [_, ..]) => Some("packets"),
            ([], []) => None,
        }
    }

    /// Whether the key includes the protocol.
    pub(super) fn knows_protocols(&self) -> bool {
        self.columns.protocol.is_some()
    }

    /// Protocols, in descending order of bytes.
    pub(super) fn protocols(&self) -> Vec<(usize, Sums)> {
        let seen = self.by_protocol.iter().copied().enumerate();
        let mut seen: Vec<_> = seen.filter(|(_, sums)| sums.records > 0).collect();
        seen.sort_by_key(|(_, sums)| Reverse((sums.bytes, sums.packets, sums.records)));
        seen
    }

    /// Applications, in descending order of bytes. Empty if the records have no such column.
    pub(super) fn applications(&self) -> Vec<(&str, Sums)> {
        let seen = self.by_application.iter();
        let mut seen: Vec<_> = seen.map(|(name, sums)| (name.as_str(), *sums)).collect();
        seen.sort_by_key(|(name, sums)| {
            (
                Reverse((sums.bytes, sums.packets, sums.records)),
                name.to_owned(),
            )
        });
        seen
    }

    /// The largest records, in descending order.
    pub(super) fn top(&self) -> Vec<Vec<String>> {
        let mut top: Vec<_> = self.top.iter().map(|Reverse(entry)| entry).collect();
        top.sort_by_key(|(size, number, _)| (Reverse(*size), *number));
        top.into_iter().map(|(_, _, row)| row.clone()).collect()
    }

    fn add(&mut self, batch: &FlowBatch) {
        for row in 0..batch.rows() {
            let sum =
                |columns: &[usize]| columns.iter().map(|&c| number(batch, row, c)).sum::<u64>();
            let (packets, bytes) = (sum(&self.columns.packets), sum(&self.columns.bytes));
            let protocol = self
                .columns
                .protocol
                .map_or(0, |column| number(batch, row, column));
            let sums = Sums {
                records: 1,
                packets,
                bytes,
            };
            self.by_protocol[protocol as usize & 0xff] += sums;
            if let Some(column) = self.columns.application {
                self.add_application(batch.value(row, column), sums);
            }
            self.rank(
                batch,
                row,
                if self.columns.bytes.is_empty() {
                    packets
                } else {
                    bytes
                },
            );
            self.records += 1;
            self.see_times(batch, row);
        }
    }

    fn add_application(&mut self, name: Value<'_>, sums: Sums) {
        let name = match name {
            Value::Text(name) => name,
            _ => NO_APPLICATION,
        };
        match self.by_application.get_mut(name) {
            Some(known) => *known += sums,
            None => {
                let is_full = self.by_application.len() >= MOST_APPLICATIONS;
                let name = if is_full { NO_APPLICATION } else { name };
                *self.by_application.entry(name.to_owned()).or_default() += sums;
            }
        }
    }

    fn see_times(&mut self, batch: &FlowBatch, row: usize) {
        let time_ns = |column: &usize| match batch.value(row, *column) {
            Value::Unsigned(time_ns) => Some(time_ns),
            _ => None,
        };
        let first = self.columns.first.iter().filter_map(time_ns).min();
        let last = self.columns.last.iter().filter_map(time_ns).max();
        if let Some((first_ns, last_ns)) = first.zip(last) {
            let (from_ns, to_ns) = self.times_ns.unwrap_or((first_ns, last_ns));
            self.times_ns = Some((from_ns.min(first_ns), to_ns.max(last_ns)));
        }
    }

    fn rank(&mut self, batch: &FlowBatch, row: usize, size: u64) {
        if self.top.len() == TOP {
            match self.top.peek() {
                Some(Reverse((smallest, _, _))) if *smallest < size => self.top.pop(),
                _ => return,
            };
        }
        let cells = self.columns.shown.iter().zip(&self.shown);
        let cells = cells.map(|(&column, shown)| match batch.value(row, column) {
            Value::Unsigned(number) => name_of(&shown.name, number)
                .map_or_else(|| text(Value::Unsigned(number), shown.kind), str::to_owned),
            value => text(value, shown.kind),
        });
        self.top
            .push(Reverse((size, self.records, cells.collect())));
    }
}

impl Columns {
    fn new(definition: &Definition, layout: &Layout) -> Self {
        let at = |name: &str| {
            layout
                .schema()
                .iter()
                .position(|column| column.name == name)
        };
        let folding = |wanted: Op, of: Option<Input>| -> Vec<usize> {
            let is_wanted = |f: &&turboflow_record::Feature| f.op == wanted && f.of == of;
            let Some(feature) = definition.features.iter().find(is_wanted) else {
                return Vec::new();
            };
            let reverse = format!("reverse_{}", feature.name);
            [at(&feature.name), at(&reverse)]
                .into_iter()
                .flatten()
                .collect()
        };
        let packets = folding(Op::Count, None);
        let bytes = folding(Op::Sum, Some(Input::IpLength));
        let applications = definition.features.iter();
        let mut applications = applications.filter(|its| its.of == Some(Input::Application));
        let first = folding(Op::Min, Some(Input::Timestamp));
        let last = folding(Op::Max, Some(Input::Timestamp));
        let mut shown: Vec<usize> = (0..definition.key.len()).collect();
        shown.extend(packets.iter().chain(&bytes));
        shown.extend(at("end_reason"));
        Self {
            protocol: at(KeyField::Protocol.column_name()),
            application: applications.next().and_then(|its| at(&its.name)),
            packets,
            bytes,
            first,
            last,
            shown,
        }
    }
}

fn number(batch: &FlowBatch, row: usize, column: usize) -> u64 {
    match batch.value(row, column) {
        Value::Unsigned(number) => number,
        _ => 0,
    }
}

/// The name of a number, as `turboflow show` has it.
fn name_of(column: &str, number: u64) -> Option<&'static str> {
    match column {
        "protocol" => turboflow_query::protocol_name(number),
        "end_reason" => turboflow_query::end_reason_name(number),
        _ => None,
    }
}

/// Formats a value for people.
pub(super) fn text(value: Value<'_>, kind: ColumnKind) -> String {
    match (value, kind) {
        (Value::Absent, _) => String::new(),
        (Value::Address(address), _) => address.to_string(),
        (Value::Unsigned(mac), ColumnKind::Mac) => {
            let bytes = mac.to_be_bytes();
            bytes[2..]
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect::<Vec<_>>()
                .join(":")
        }
        (Value::Unsigned(number), _) => number.to_string(),
        (Value::Float(number), _) => number.to_string(),
        (Value::List(list), _) => format!("{list:?}"),
        (Value::Text(text), _) => text.to_owned(),
    }
}

/// The summary as an output.
pub(super) struct SummaryWriter {
    summary: Arc<Mutex<Summary>>,
    records: u64,
}

impl SummaryWriter {
    pub(super) fn new(summary: Arc<Mutex<Summary>>) -> Self {
        Self {
            summary,
            records: 0,
        }
    }
}

impl FlowWriter for SummaryWriter {
    fn write(&mut self, batch: &FlowBatch) -> Result<(), ExportError> {
        self.records += batch.rows() as u64;
        self.summary
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .add(batch);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<WriteSummary, ExportError> {
        Ok(WriteSummary {
            records: self.records,
            bytes: 0,
        })
    }
}
