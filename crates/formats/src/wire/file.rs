// SPDX-License-Identifier: Apache-2.0
//! IPFIX files (RFC 5655): a sequence of messages, templates first.

use turboflow_merge::Layout;
use turboflow_record::{
    Column, DOCUMENTATION_ENTERPRISE, Definition, FlowBatch, REVERSE_ENTERPRISE,
};

use super::options::FileDefinition;
use super::session::Message;
use super::{Encode, Protocol, Refresh, STREAM_MESSAGE_BYTES, Session, Unit, WireOptions, encoder};
use crate::destination::{Destination, Keep};
use crate::{DEFINITION_KEY, ExportError, FlowWriter, WriteOptions, WriteProgress, WriteSummary};

/// Approximate size of the chunks written to the system.
const CHUNK_BYTES: usize = 256 << 10;

/// A [`FlowWriter`] of IPFIX messages. The export time of a message is the latest time in its
/// records, so the same capture always gives an identical file.
struct FileWriter {
    encoder: Box<dyn Encode>,
    session: Session,
    chunk: Chunk,
    output: Option<Destination>,
    records: u64,
    now_ms: u64,
}

/// Messages not yet written: their octets, and the length and the number of flow records of each.
#[derive(Default)]
struct Chunk {
    bytes: Vec<u8>,
    messages: Vec<(usize, u64)>,
}

/// Writes messages to `output`. The record definition comes from the metadata in the options.
pub(crate) fn writer(
    output: Destination,
    schema: &[Column],
    options: &WriteOptions,
) -> Result<Box<dyn FlowWriter>, ExportError> {
    let definition = definition(schema, options);
    let options = WireOptions {
        message_bytes: STREAM_MESSAGE_BYTES,
        ..options.wire.clone()
    };
    let mut session = Session::new(Protocol::Ipfix, &options, Refresh::FILE);
    if let Some(definition) = definition {
        session.define(definition);
    }
    Ok(Box::new(FileWriter {
        encoder: encoder(Protocol::Ipfix, schema, &options, output.place())?,
        session,
        chunk: Chunk::default(),
        output: Some(output),
        records: 0,
        now_ms: 0,
    }))
}

/// The definition of the records, if it is known and results in these columns.
fn definition(schema: &[Column], options: &WriteOptions) -> Option<FileDefinition> {
    let mut pairs = options.metadata.iter();
    let (_, text) = pairs.find(|(key, _)| key == DEFINITION_KEY)?;
    let definition = Definition::parse(text).ok()?;
    let names = |columns: &[Column]| columns.iter().map(|its| its.name.clone()).collect();
    let wanted: Vec<String> = names(schema);
    let is_biflow = [false, true].into_iter().find(|is_biflow| {
        let layout = Layout::compile(&definition, *is_biflow);
        layout.is_ok_and(|layout| wanted == names(layout.schema()))
    })?;
    let mut elements = options.wire.elements.iter();
    let enterprise = elements.find_map(|column| {
        let its = column.v4.enterprise;
        its.filter(|its| *its != REVERSE_ENTERPRISE)
    });
    Some(FileDefinition {
        text: text.clone(),
        is_biflow,
        enterprise: enterprise.unwrap_or(DOCUMENTATION_ENTERPRISE),
    })
}

impl Chunk {
    fn push(&mut self, session: &mut Session, mut message: Message) {
        session.number(&mut message);
        session.count_sent(&message);
        self.bytes.extend_from_slice(&message.bytes);
        self.messages.push((message.bytes.len(), message.flows));
    }

    /// Number of octets and of flow records of the complete messages in the first `accepted`
    /// octets.
    fn whole(&self, accepted: usize) -> (usize, u64) {
        let mut whole = (0, 0);
        for (bytes, flows) in &self.messages {
            if whole.0 + bytes > accepted {
                break;
            }
            whole = (whole.0 + bytes, whole.1 + flows);
        }
        whole
    }
}

impl FileWriter {
    fn put(&mut self, unit: &Unit) {
        if let Unit::Data(data) = unit {
            self.now_ms = self.now_ms.max(data.latest_ms);
        }
        let Self {
            session,
            chunk,
            now_ms,
            ..
        } = self;
        let mut sent = Vec::new();
        session.unit(unit, *now_ms, &mut |message| sent.push(message));
        for message in sent {
            chunk.push(session, message);
        }
    }

    /// Makes a message of the buffered records.
    fn complete_message(&mut self) {
        let mut units = Vec::new();
        self.encoder.flush(&mut |unit| units.push(unit));
        units.iter().for_each(|unit| self.put(unit));
    }

    /// Writes the messages of the chunk.
    fn hand_over(&mut self) -> Result<(), ExportError> {
        let Some(output) = &mut self.output else {
            return Ok(());
        };
        let before = output.written_bytes();
        if let Err(interrupted) = output.write_all(&self.chunk.bytes) {
            let (bytes, flows) = self.chunk.whole(interrupted.accepted_bytes);
            let keep = Keep {
                records: self.records + flows,
                length_bytes: before + bytes as u64,
                tail: &[],
                counts_in_streams: true,
            };
            let output = self.output.take().expect("the output just failed");
            return Err(output.fail(keep, interrupted.source));
        }
        self.records += self.chunk.whole(usize::MAX).1;
        self.chunk.bytes.clear();
        self.chunk.messages.clear();
        Ok(())
    }
}

impl FlowWriter for FileWriter {
    fn write(&mut self, batch: &FlowBatch) -> Result<(), ExportError> {
        if self.output.is_none() {
            return Ok(());
        }
        let mut units = Vec::new();
        self.encoder.encode(batch, &mut |unit| units.push(unit));
        for unit in units {
            self.put(&unit);
            if self.chunk.bytes.len() >= CHUNK_BYTES {
                self.hand_over()?;
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), ExportError> {
        if self.output.is_none() {
            return Ok(());
        }
        self.complete_message();
        self.hand_over()
    }

    fn progress(&self) -> WriteProgress {
        match &self.output {
            Some(output) => output.progress(self.records),
            None => WriteProgress::default(),
        }
    }

    fn finish(mut self: Box<Self>) -> Result<WriteSummary, ExportError> {
        self.complete_message();
        let unexportable = self.encoder.unexportable();
        self.session.count_lost(unexportable.total(), 0, 0);
        let Self {
            session,
            chunk,
            now_ms,
            ..
        } = &mut *self;
        let mut last = Vec::new();
        session.finish(*now_ms, &mut |message| last.push(message));
        for message in last {
            chunk.push(session, message);
        }
        self.hand_over()?;
        let Some(output) = self.output.take() else {
            return Ok(WriteSummary::default());
        };
        let (place, bytes) = (output.place().to_owned(), output.written_bytes());
        output
            .complete()
            .map_err(|source| ExportError::unfinished(place.clone(), source))?;
        if unexportable.total() > 0 {
            return Err(ExportError::NotSent {
                place,
                records: self.records,
                bytes,
                lost: 0,
                unexportable,
                source: None,
            });
        }
        Ok(WriteSummary {
            records: self.records,
            bytes,
        })
    }
}
