// SPDX-License-Identifier: Apache-2.0
//! Encodes columns in parallel.
//!
//! At the end of a run all records are written at once, and the user waits for the encoding.
//! Columns are independent of each other.

use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::thread;

use bytes::Bytes;
use parquet::basic::Compression as Codec;
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::Result;
use turboflow_record::FlowBatch;

use crate::Compression;
use crate::parquet::chunk::Chunk;
use crate::parquet::page::Compressor;
use crate::parquet::types::Leaf;

/// Below this number of rows, encoding takes less time than starting a thread.
const MIN_ROWS: usize = 1_024;
/// More threads would only wait for the most expensive column.
const MAX_THREADS: usize = 4;

/// The bytes of a chunk, and its metadata for the footer.
pub(crate) type Closed = (Bytes, ColumnCloseResult);

/// Consecutive rows of a batch.
pub(crate) type Part<'a> = (&'a FlowBatch, Range<usize>);

/// Column encoders: one thread per compressor, as many as there are processors.
pub(crate) struct Encoders {
    compressors: Vec<Compressor>,
}

impl Encoders {
    pub(crate) fn new(compression: Compression) -> std::io::Result<Self> {
        let threads = thread::available_parallelism().map_or(1, |count| count.get());
        let compressors = (0..threads.min(MAX_THREADS)).map(|_| Compressor::new(compression));
        Ok(Self {
            compressors: compressors.collect::<std::io::Result<_>>()?,
        })
    }

    /// Encodes the values of `parts`.
    pub(crate) fn write(
        &mut self,
        chunks: &mut [Chunk],
        leaves: &[Leaf],
        parts: &[Part<'_>],
    ) -> Result<()> {
        let rows: usize = parts.iter().map(|(_, rows)| rows.len()).sum();
        let work = chunks.iter_mut().zip(leaves);
        self.run(work, rows >= MIN_ROWS, |(chunk, leaf), compressor| {
            parts.iter().try_for_each(|(batch, rows)| {
                chunk.write(leaf, batch.column(leaf.source), rows.clone(), compressor)
            })
        })?;
        Ok(())
    }

    /// Ends every chunk; the results are in the order of the chunks.
    pub(crate) fn close(&mut self, chunks: Vec<Chunk>, codec: Codec) -> Result<Vec<Closed>> {
        self.run(chunks.into_iter(), true, |chunk, compressor| {
            chunk.close(codec, compressor)
        })
    }

    /// Does all pieces of work, each with one of the compressors; the results are in the order of
    /// the work. Each thread takes the next piece when it is done, because columns differ in cost.
    fn run<W, O: Send>(
        &mut self,
        work: impl Iterator<Item = W> + Send,
        parallel: bool,
        each: impl Fn(W, &mut Compressor) -> Result<O> + Sync,
    ) -> Result<Vec<O>> {
        let work = Mutex::new(work.enumerate());
        let take = || work.lock().unwrap_or_else(PoisonError::into_inner).next();
        let encode = |compressor: &mut Compressor| -> Result<Vec<(usize, O)>> {
            let mut outcomes = Vec::new();
            while let Some((index, piece)) = take() {
                outcomes.push((index, each(piece, compressor)?));
            }
            Ok(outcomes)
        };
        let (first, others) = self.compressors.split_at_mut(1);
        let others = if parallel { others } else { &mut [] };
        let outcomes: Vec<_> = thread::scope(|scope| {
            let encode = &encode;
            // If a thread cannot be started, the other threads do its work.
            let start = |compressor| {
                let thread = thread::Builder::new().name("columns".to_owned());
                thread.spawn_scoped(scope, move || encode(compressor)).ok()
            };
            let others: Vec<_> = others.iter_mut().filter_map(start).collect();
            let mut outcomes: Vec<_> = first.iter_mut().map(encode).collect();
            let joined = others.into_iter().map(|other| other.join());
            outcomes.extend(joined.map(|other| other.unwrap_or_else(|panic| resume_unwind(panic))));
            outcomes
        });
        let outcomes: Result<Vec<_>> = outcomes.into_iter().collect();
        let mut outcomes: Vec<_> = outcomes?.into_iter().flatten().collect();
        outcomes.sort_unstable_by_key(|(index, _)| *index);
        Ok(outcomes.into_iter().map(|(_, outcome)| outcome).collect())
    }
}
