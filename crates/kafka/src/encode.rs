// SPDX-License-Identifier: Apache-2.0
//! Encodes records into messages. All records of a message belong to one lane.

use turboflow_formats::{ArrowMessages, Goflow2Messages, Identity, JsonMessages};
use turboflow_record::{FlowBatch, ValueData};

use crate::lanes::{FlowHash, LANES, lane_of};
use crate::{KafkaError, KafkaTarget, MessageFormat, Records};

/// Size in bytes at which a message is complete, whatever its number of records: brokers refuse
/// messages of more than about a million bytes.
const MESSAGE_BYTES: usize = 900_000;

/// A message with records of one lane.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// The key of the message, which determines its partition: see
    /// [`partition_of`](crate::partition_of).
    pub key: &'a [u8],
    /// The records.
    pub bytes: &'a [u8],
    /// Totals of the records.
    pub totals: Totals,
}

/// Totals of some records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Number of records.
    pub records: u64,
    /// Packets of the records.
    pub packets: u64,
    /// Octets of the records.
    pub octets: u64,
}

impl Totals {
    /// Adds another total; the sums wrap at 2^64.
    pub const fn add(&mut self, other: Self) {
        self.records += other.records;
        self.packets = self.packets.wrapping_add(other.packets);
        self.octets = self.octets.wrapping_add(other.octets);
    }
}

/// Encodes batches into messages. In goflow2 and JSON, a record is appended to the unfinished
/// message of its lane, which waits until it is full or flushed.
pub struct Encoder {
    form: Form,
    identity: Identity,
    hash: FlowHash,
    /// Hashes of the current batch's flows.
    hashes: Vec<u64>,
    /// Indices of the columns that count packets and bytes.
    sums: [Option<usize>; 2],
    /// Index of the column with the time of the first packet.
    first: Option<usize>,
    /// Maximum number of records in a message.
    records: usize,
    lanes: Vec<Lane>,
    left_out: Vec<String>,
    out_of_range: u64,
}

enum Form {
    Goflow2(Box<Goflow2Messages>),
    Json(JsonMessages),
    Arrow(Box<ArrowMessages>),
}

/// An unfinished message.
#[derive(Default)]
struct Lane {
    bytes: Vec<u8>,
    totals: Totals,
    /// Rows of the current batch that go into an Arrow message.
    rows: Vec<usize>,
}

impl Encoder {
    /// An encoder of these records in the target's format.
    ///
    /// # Errors
    /// [`KafkaError::Format`] if the format cannot hold them.
    pub fn new(target: &KafkaTarget, records: &Records<'_>) -> Result<Self, KafkaError> {
        let format = target.format;
        let refused = |reason: String| KafkaError::Format {
            place: target.to_string(),
            format: format.name(),
            reason,
        };
        let schema = Identity::schema(records.schema).map_err(|taken| {
            refused(format!(
                "the definition has a column `{taken}`, and so has the identity of a record: \
                 rename the feature"
            ))
        })?;
        let mut left_out = Vec::new();
        let form = match format {
            MessageFormat::Goflow2 if records.is_biflow => {
                return Err(refused(
                    "FlowMessage has one direction, and these records have two: leave \
                     `flow.biflow` out, or use format=arrow or format=json"
                        .to_owned(),
                ));
            }
            MessageFormat::Goflow2 => {
                let messages = Goflow2Messages::new(records.schema, records.identity);
                left_out = messages.left_out().to_vec();
                Form::Goflow2(Box::new(messages))
            }
            MessageFormat::Json => Form::Json(JsonMessages::new(&schema, records.text)),
            MessageFormat::Arrow => {
                Form::Arrow(Box::new(ArrowMessages::new(&schema, records.metadata)))
            }
        };
        let at = |name| schema.iter().position(|column| column.name == name);
        Ok(Self {
            form,
            identity: records.identity.clone(),
            hash: FlowHash::new(records.schema, records.key_columns),
            hashes: Vec::new(),
            sums: ["packets", "bytes"].map(at),
            first: at("first_ns"),
            records: target.records,
            lanes: (0..LANES).map(|_| Lane::default()).collect(),
            left_out,
            out_of_range: 0,
        })
    }

    /// Names of the columns for which the format has no field.
    #[must_use]
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// Number of records that were left out because the format cannot hold their times.
    #[must_use]
    pub const fn out_of_range(&self) -> u64 {
        self.out_of_range
    }

    /// Number of records in a batch whose first packet is before `time_ns`, in nanoseconds since
    /// 1970.
    #[must_use]
    pub fn records_before(&self, time_ns: u64, batch: &FlowBatch) -> u64 {
        match self.first.map(|column| &batch.column(column).data) {
            Some(ValueData::Unsigned(times)) => {
                times.iter().filter(|first_ns| **first_ns < time_ns).count() as u64
            }
            _ => 0,
        }
    }

    /// Encodes a batch, and calls `put` with each message that is full.
    pub fn encode(&mut self, batch: &FlowBatch, put: &mut dyn FnMut(Message<'_>)) {
        match &self.form {
            Form::Goflow2(_) => self.encode_rows(batch, put),
            Form::Json(_) => {
                let identified = self.identity.identified(batch);
                self.encode_rows(&identified, put);
            }
            Form::Arrow(_) => {
                let identified = self.identity.identified(batch);
                self.encode_columns(&identified, put);
            }
        }
    }

    fn encode_rows(&mut self, batch: &FlowBatch, put: &mut dyn FnMut(Message<'_>)) {
        self.hash.of_rows(batch, &mut self.hashes);
        let (sums, most) = (self.sums, self.records);
        let mut add = |lane: &mut Lane, row: usize, index: usize, hash: u64| {
            lane.totals.add(totals(sums, batch, row));
            if most == 1 {
                lane.put(&hash.to_be_bytes(), put);
            } else if lane.totals.records as usize == most || lane.bytes.len() >= MESSAGE_BYTES {
                lane.put(&[index as u8], put);
            }
        };
        match &mut self.form {
            Form::Goflow2(messages) => messages.encode(batch, |row, bytes| {
                let index = lane_of(self.hashes[row]);
                let lane = &mut self.lanes[index];
                lane.bytes.extend_from_slice(bytes);
                add(lane, row, index, self.hashes[row]);
            }),
            Form::Json(messages) => {
                for (row, &hash) in self.hashes.iter().enumerate() {
                    let index = lane_of(hash);
                    let lane = &mut self.lanes[index];
                    messages.append(batch, row, &mut lane.bytes);
                    add(lane, row, index, hash);
                }
            }
            Form::Arrow(_) => unreachable!("Arrow has columns"),
        }
    }

    fn encode_columns(&mut self, batch: &FlowBatch, put: &mut dyn FnMut(Message<'_>)) {
        let Form::Arrow(messages) = &mut self.form else {
            unreachable!("other forms have rows")
        };
        self.hash.of_rows(batch, &mut self.hashes);
        let held = messages.rows_held(batch);
        let mut left_out = batch.rows() as u64;
        for row in held.into_iter().flatten() {
            left_out -= 1;
            self.lanes[lane_of(self.hashes[row])].rows.push(row);
        }
        self.out_of_range += left_out;
        for (index, lane) in self.lanes.iter_mut().enumerate() {
            let rows = std::mem::take(&mut lane.rows);
            let mut rest = &rows[..];
            let mut most = self.records;
            while !rest.is_empty() {
                let (part, later) = rest.split_at(most.min(rest.len()));
                messages.encode(batch, part, &mut lane.bytes);
                if lane.bytes.len() > MESSAGE_BYTES && part.len() > 1 {
                    most = part.len() / 2;
                    lane.bytes.clear();
                    continue;
                }
                for row in part {
                    lane.totals.add(totals(self.sums, batch, *row));
                }
                lane.put(&[index as u8], put);
                rest = later;
            }
            lane.rows = rows;
            lane.rows.clear();
        }
    }

    /// Also calls `put` with the unfinished messages.
    pub fn flush(&mut self, put: &mut dyn FnMut(Message<'_>)) {
        for (index, lane) in self.lanes.iter_mut().enumerate() {
            if lane.totals.records > 0 {
                lane.put(&[index as u8], put);
            }
        }
    }
}

fn totals(sums: [Option<usize>; 2], batch: &FlowBatch, row: usize) -> Totals {
    let number = |column: Option<usize>| match column.map(|its| &batch.column(its).data) {
        Some(ValueData::Unsigned(numbers)) => numbers[row],
        _ => 0,
    };
    let [packets, octets] = sums.map(number);
    Totals {
        records: 1,
        packets,
        octets,
    }
}

impl Lane {
    fn put(&mut self, key: &[u8], put: &mut dyn FnMut(Message<'_>)) {
        put(Message {
            key,
            bytes: &self.bytes,
            totals: self.totals,
        });
        self.bytes.clear();
        self.totals = Totals::default();
    }
}
