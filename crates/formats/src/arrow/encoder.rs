// SPDX-License-Identifier: Apache-2.0
//! Encodes batches as IPC messages, and the footer of a file.

use std::io::Write;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ipc::convert::IpcSchemaEncoder;
use arrow_ipc::writer::{
    DictionaryTracker, EncodedData, IpcDataGenerator, IpcWriteContext, IpcWriteOptions,
    write_message,
};
use arrow_ipc::{Block, FooterBuilder, MetadataVersion};
use arrow_schema::{ArrowError, SchemaRef};
use flatbuffers::FlatBufferBuilder;
use turboflow_record::Column;

use super::arrays::{Part, array};
use super::schema::schema;

/// First bytes of a file, padded to the alignment of its blocks.
pub(super) const MAGIC: &[u8; 8] = b"ARROW1\0\0";
/// The end of a stream: an empty message.
pub(super) const END: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];

/// Encodes batches as IPC messages.
pub(super) struct Encoder {
    columns: Vec<Column>,
    schema: SchemaRef,
    generator: IpcDataGenerator,
    options: IpcWriteOptions,
    context: IpcWriteContext,
    /// There are no dictionaries, but the library requires a tracker.
    tracker: DictionaryTracker,
}

impl Encoder {
    pub(super) fn new(columns: &[Column], metadata: &[(String, String)]) -> Self {
        Self {
            columns: columns.to_vec(),
            schema: Arc::new(schema(columns, metadata)),
            generator: IpcDataGenerator::default(),
            options: IpcWriteOptions::default(),
            context: IpcWriteContext::default(),
            tracker: DictionaryTracker::new(true),
        }
    }

    /// The columns of every batch.
    pub(super) fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Appends the message with the schema, the first of every stream and file.
    pub(super) fn schema(&mut self, bytes: &mut Vec<u8>) -> Result<(), ArrowError> {
        let Self {
            generator, tracker, ..
        } = self;
        let message =
            generator.schema_to_bytes_with_dictionary_tracker(&self.schema, tracker, &self.options);
        self.put(message, bytes).map(|_| ())
    }

    /// Appends a message with the records. Returns the lengths of its header and its body in bytes.
    pub(super) fn records(
        &mut self,
        parts: &[Part<'_>],
        bytes: &mut Vec<u8>,
    ) -> Result<(usize, usize), ArrowError> {
        let columns = self.columns.iter().enumerate();
        let arrays = columns.map(|(index, column)| array(column, index, parts));
        let batch = RecordBatch::try_new(SchemaRef::clone(&self.schema), arrays.collect())?;
        let (_, message) =
            self.generator
                .encode(&batch, &mut self.tracker, &self.options, &mut self.context)?;
        self.put(message, bytes)
    }

    fn put(
        &self,
        message: EncodedData,
        bytes: &mut impl Write,
    ) -> Result<(usize, usize), ArrowError> {
        write_message(bytes, message, &self.options)
    }

    /// What follows the last message of a file: the end of the stream, and the positions of all
    /// blocks.
    pub(super) fn footer(&self, blocks: &[Block]) -> Vec<u8> {
        let mut builder = FlatBufferBuilder::new();
        let dictionaries = builder.create_vector::<Block>(&[]);
        let blocks = builder.create_vector(blocks);
        let schema = IpcSchemaEncoder::new().schema_to_fb_offset(&mut builder, &self.schema);
        let mut footer = FooterBuilder::new(&mut builder);
        footer.add_version(MetadataVersion::V5);
        footer.add_schema(schema);
        footer.add_dictionaries(dictionaries);
        footer.add_recordBatches(blocks);
        let root = footer.finish();
        builder.finish(root, None);
        let footer = builder.finished_data();
        let length = (footer.len() as u32).to_le_bytes();
        [&END, footer, &length, &MAGIC[..6]].concat()
    }
}
