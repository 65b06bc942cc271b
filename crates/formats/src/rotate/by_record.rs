// SPDX-License-Identifier: Apache-2.0
//! Files that each hold one period of the records' own time, so that a table can be partitioned by
//! it.
//!
//! Flows of a period may end up to the active timeout after that period. So the files of a few
//! periods are open at the same time, and a file is complete when a whole period of the clock has
//! passed in which nothing was written to it.

use std::io;
use std::mem;
use std::path::PathBuf;
use std::sync::Arc;

use turboflow_record::{ColumnKind, FlowBatch, Value};

use super::{Current, Place};
use crate::{ExportError, FlowWriter, WriteProgress, WriteSummary, to_writer};

/// Maximum number of files open at once, so that memory is bounded whatever times records have.
/// When one more is needed, the file that was written to least recently is completed.
const MAX_OPEN: usize = 4;

/// Without an interval, records are divided by hours.
const HOUR_MS: u64 = 3_600_000;
const NS_PER_MS: u64 = 1_000_000;

/// An open file.
struct Open {
    file: Current,
    /// Start of its period, in milliseconds since 1970.
    begins_ms: u64,
    /// Whether a record was written to it since the clock entered its current period.
    is_fresh: bool,
}

struct RecordRotatingWriter {
    place: Place,
    /// Index of the column with the time of a record.
    column: usize,
    every_ms: u64,
    /// Open files, the most recently written one last.
    open: Vec<Open>,
    /// Number of the clock's current period.
    period: u64,
    /// After a failure, nothing is tried before this time, in milliseconds since 1970.
    paused_until_ms: u64,
    turns: u64,
}

/// A writer of one file per period of the records' own time.
pub(super) fn writer(place: Place) -> Result<Box<dyn FlowWriter>, ExportError> {
    let mut columns = place.schema.iter();
    let column = columns.position(|its| its.kind == ColumnKind::TimestampNs && !its.nullable);
    let column = column.ok_or_else(|| ExportError::Encode {
        place: place.pattern.to_string(),
        format: place.format.name(),
        reason: "no column is a time that every record has, by which to choose its file: add a \
                 feature with op `min` of `timestamp`"
            .to_owned(),
    })?;
    // Checks the format now, because no file is started before the first record.
    let name = place.pattern.to_string();
    drop(to_writer(
        Box::new(io::sink()),
        &name,
        place.format,
        &place.schema,
        &place.write,
    )?);
    let folder = place.pattern.fixed_folder();
    if !folder.is_dir() {
        return Err(ExportError::NoDirectory {
            path: PathBuf::from(name),
            directory: folder,
        });
    }
    let options = place.options;
    let every_ms = options.every_ms.unwrap_or(HOUR_MS);
    Ok(Box::new(RecordRotatingWriter {
        place,
        column,
        every_ms,
        open: Vec::new(),
        period: (options.wall_ms)() / every_ms,
        paused_until_ms: 0,
        turns: (options.turns_asked)(),
    }))
}

impl RecordRotatingWriter {
    /// Completes the files whose periods are over, which are full, or for which a rotation was
    /// requested.
    fn turn(&mut self) {
        let options = self.place.options;
        let turns = (options.turns_asked)();
        let period = (options.wall_ms)() / self.every_ms;
        let (is_asked, is_over) = (turns != self.turns, period != self.period);
        let place = &self.place;
        let mut ended = Vec::new();
        if is_asked || is_over || options.size_bytes.is_some() {
            let ends = |open: &mut Open| {
                is_asked || place.is_full(&open.file) || (is_over && !mem::take(&mut open.is_fresh))
            };
            ended.extend(self.open.extract_if(.., ends));
        }
        (self.turns, self.period) = (turns, period);
        let any = !ended.is_empty();
        ended.into_iter().for_each(|open| self.complete(open));
        if any || is_over {
            self.place.remove_oldest();
        }
    }

    fn complete(&mut self, open: Open) {
        if let Err(error) = self.place.complete(open.file) {
            self.fail(error);
        }
    }

    fn fail(&mut self, error: ExportError) {
        self.paused_until_ms = self.place.fail(error);
    }

    /// Start of the period of a record, in milliseconds since 1970.
    fn period_of(&self, batch: &FlowBatch, row: usize) -> u64 {
        let Value::Unsigned(time_ns) = batch.value(row, self.column) else {
            return 0;
        };
        let time_ms = time_ns / NS_PER_MS;
        time_ms - time_ms % self.every_ms
    }

    /// Writes a batch whose records all belong to one period.
    fn write_period(&mut self, begins_ms: u64, batch: &FlowBatch) {
        let found = self
            .open
            .iter()
            .position(|open| open.begins_ms == begins_ms);
        let mut open = match found {
            Some(at) => self.open.remove(at),
            None if (self.place.options.wall_ms)() < self.paused_until_ms => return,
            None => {
                if self.open.len() == MAX_OPEN {
                    let oldest = self.open.remove(0);
                    self.complete(oldest);
                }
                match self.place.start(begins_ms / 1_000) {
                    Ok(file) => Open {
                        file,
                        begins_ms,
                        is_fresh: true,
                    },
                    Err(error) => return self.fail(error),
                }
            }
        };
        open.is_fresh = true;
        open.file.given += batch.rows() as u64;
        match open.file.writer.write(batch) {
            Ok(()) => self.open.push(open),
            Err(error) => self.fail(error),
        }
    }

    /// The records of one period, in their original order.
    fn rows_of(&self, batch: &FlowBatch, periods: &[u64], wanted: u64) -> FlowBatch {
        let mut part = FlowBatch::new(&self.place.schema);
        let mut values = Vec::with_capacity(self.place.schema.len());
        let rows = periods.iter().enumerate();
        for (row, _) in rows.filter(|(_, period)| **period == wanted) {
            values.clear();
            values.extend((0..self.place.schema.len()).map(|column| batch.value(row, column)));
            part.push_row(&values);
        }
        part
    }
}

impl FlowWriter for RecordRotatingWriter {
    fn write(&mut self, batch: &FlowBatch) -> Result<(), ExportError> {
        self.turn();
        self.place.given += batch.rows() as u64;
        let periods: Vec<u64> = (0..batch.rows())
            .map(|row| self.period_of(batch, row))
            .collect();
        let mut distinct = periods.clone();
        distinct.sort_unstable();
        distinct.dedup();
        match distinct[..] {
            [] => {}
            [period] => self.write_period(period, batch),
            _ => {
                for period in distinct {
                    let part = self.rows_of(batch, &periods, period);
                    self.write_period(period, &part);
                }
            }
        }
        Ok(())
    }

    fn write_several(&mut self, batches: &[Arc<FlowBatch>]) -> Result<(), ExportError> {
        batches.iter().try_for_each(|batch| self.write(batch))
    }

    fn flush(&mut self) -> Result<(), ExportError> {
        self.turn();
        for mut open in mem::take(&mut self.open) {
            match open.file.writer.flush() {
                Ok(()) => self.open.push(open),
                Err(error) => self.fail(error),
            }
        }
        Ok(())
    }

    fn is_failing(&self) -> bool {
        (self.place.options.wall_ms)() < self.paused_until_ms
    }

    fn progress(&self) -> WriteProgress {
        let waiting = self.open.iter().map(|open| open.file.given).sum();
        self.place.progress(waiting)
    }

    fn finish(mut self: Box<Self>) -> Result<WriteSummary, ExportError> {
        for open in mem::take(&mut self.open) {
            self.complete(open);
        }
        self.place.end()
    }
}
