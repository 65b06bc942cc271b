// SPDX-License-Identifier: Apache-2.0
//! Two halves of the columns, encoded side by side.
//!
//! At the end of a run all records leave at once and nothing else is left to do: encoding is then
//! what the user waits for, and columns know nothing of each other.

use std::num::NonZero;
use std::ops::Range;
use std::thread;

use bytes::Bytes;
use parquet::basic::Compression as Codec;
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::Result;
use turboflow_record::{Column, Values};

use crate::Compression;
use crate::parquet::chunk::Chunk;
use crate::parquet::page::Compressor;

/// Fewer rows are encoded sooner than a thread is there.
const MIN_ROWS: usize = 1_024;

/// A chunk's bytes and what the footer says of it.
pub(crate) type Closed = (Bytes, ColumnCloseResult);

/// The compressors of the two halves: columns with even and with odd numbers, so that source and
/// destination addresses, which cost most, part.
pub(crate) struct Halves {
    compressors: [Compressor; 2],
    /// Whether the machine has a second processor.
    parallel: bool,
}

impl Halves {
    pub(crate) fn new(compression: Compression) -> std::io::Result<Self> {
        Ok(Self {
            compressors: [Compressor::new(compression)?, Compressor::new(compression)?],
            parallel: thread::available_parallelism()
                .is_ok_and(|count| count > NonZero::<usize>::MIN),
        })
    }

    /// Encodes the values of `rows` of every column.
    pub(crate) fn write<'a>(
        &mut self,
        chunks: &mut [Chunk],
        columns: impl Iterator<Item = (&'a Column, &'a Values)>,
        rows: Range<usize>,
    ) -> Result<()> {
        let parallel = rows.len() >= MIN_ROWS;
        let work = chunks.iter_mut().zip(columns).collect();
        self.run(work, parallel, |(chunk, (column, values)), compressor| {
            chunk.write(column, values, rows.clone(), compressor)
        })?;
        Ok(())
    }

    /// Ends every chunk, in their order.
    pub(crate) fn close(&mut self, chunks: Vec<Chunk>, codec: Codec) -> Result<Vec<Closed>> {
        self.run(chunks, true, |chunk, compressor| {
            chunk.close(codec, compressor)
        })
    }

    /// Does each piece of work with the compressor of its half; outcomes in the order of the work.
    fn run<W: Send, O: Send>(
        &mut self,
        work: Vec<W>,
        parallel: bool,
        each: impl Fn(W, &mut Compressor) -> Result<O> + Sync,
    ) -> Result<Vec<O>> {
        let [first, second] = &mut self.compressors;
        let count = work.len();
        let (mut even, mut odd) = (Vec::new(), Vec::new());
        for (index, piece) in work.into_iter().enumerate() {
            if index % 2 == 0 {
                even.push(piece)
            } else {
                odd.push(piece)
            }
        }
        let half = |work: Vec<W>, compressor: &mut Compressor| -> Result<Vec<O>> {
            work.into_iter()
                .map(|piece| each(piece, compressor))
                .collect()
        };
        let (even, odd) = if parallel && self.parallel && count > 1 {
            thread::scope(|scope| {
                let odd = scope.spawn(|| half(odd, second));
                let even = half(even, first);
                let odd = odd
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                (even, odd)
            })
        } else {
            (half(even, first), half(odd, second))
        };
        let (mut even, mut odd) = (even?.into_iter(), odd?.into_iter());
        let next = |index| {
            if index % 2 == 0 {
                even.next()
            } else {
                odd.next()
            }
        };
        Ok((0..count).filter_map(next).collect())
    }
}
