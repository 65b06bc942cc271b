// SPDX-License-Identifier: Apache-2.0
//! Reads several files of flow records as one.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use turboflow_enrich::{Enricher, Enrichment};
use turboflow_formats::{FlowReader, read, read_again};
use turboflow_record::{Column, ColumnKind, Definition, Feature, FlowBatch, Op, Schema, Values};

use crate::{QueryError, RecordShape};

/// The records of one or more files with the same columns.
pub struct Input {
    columns: Columns,
    /// Computes the enrichment columns.
    enricher: Option<Enricher>,
    /// The columns of the files, then the enrichment columns.
    schema: Schema,
    /// Files still to be read, the next one last. The reader of a pipe is kept, because a pipe
    /// cannot be opened twice.
    waiting: Vec<(PathBuf, Option<FlowReader>)>,
    open: Option<FlowReader>,
    left_out: Vec<String>,
    damages: Vec<String>,
    /// The columns that every batch has at once, and those that [`Input::complete`] adds.
    apart: Option<(Vec<usize>, Vec<usize>)>,
    /// Once set, the rest is not read.
    stop: Option<Arc<AtomicBool>>,
}

impl Input {
    /// Opens every file (`-` is standard input) and compares their columns before it reads any
    /// record, so that incompatible files are reported at once. Without files, there are no records
    /// and no columns.
    ///
    /// # Errors
    /// [`QueryError::Read`], and [`QueryError::Schema`] with the file and column that differ.
    pub fn open<P: AsRef<Path>>(paths: &[P]) -> Result<Self, QueryError> {
        let (mut waiting, mut left_out) = (Vec::new(), Vec::new());
        let mut columns = Columns::default();
        for path in paths {
            let path = path.as_ref();
            let place = path.display().to_string();
            let mut reader = read(path)?;
            columns.widen(&mut reader);
            if let Some(difference) = columns.difference(&reader) {
                let first = columns.place;
                return Err(QueryError::Schema {
                    place,
                    first,
                    difference,
                });
            }
            columns.join(place, &reader);
            let others = reader
                .left_out()
                .iter()
                .filter(|name| !left_out.contains(*name));
            left_out.extend(others.cloned().collect::<Vec<_>>());
            // A pipe cannot be reopened; thousands of files cannot all stay open.
            let keep = !path.is_file();
            waiting.push((path.to_owned(), keep.then_some(reader)));
        }
        waiting.reverse();
        Ok(Self {
            schema: columns.schema.clone(),
            columns,
            enricher: None,
            waiting,
            open: None,
            left_out,
            damages: Vec::new(),
            apart: None,
            stop: None,
        })
    }

    /// Reads some of these files again, with the common columns of all files. This does not work
    /// for pipes, which can be read only once.
    #[must_use]
    pub fn again<P: AsRef<Path>>(&self, paths: &[P]) -> Self {
        let paths = paths.iter().rev();
        Self {
            columns: self.columns.clone(),
            enricher: None,
            schema: self.columns.schema.clone(),
            waiting: paths.map(|path| (path.as_ref().to_owned(), None)).collect(),
            open: None,
            left_out: Vec::new(),
            damages: Vec::new(),
            apart: None,
            stop: None,
        }
    }

    /// Adds columns with what `enrichment` says about addresses and ports. Returns the names of
    /// those that the records already have; these columns keep the records' own values.
    pub fn enrich(&mut self, enrichment: impl Into<Arc<Enrichment>>) -> Vec<String> {
        let enricher = Enricher::new(enrichment, &self.columns.schema);
        let taken = enricher.taken().to_vec();
        self.schema = self.columns.schema.clone();
        self.schema.extend(enricher.columns().cloned());
        self.enricher = Some(enricher);
        taken
    }

    /// The columns of every batch.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Descriptions of the columns that are not read: the name, and what the column holds.
    #[must_use]
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// Where damaged files end early, among the files read so far. The complete records before that
    /// point were used.
    #[must_use]
    pub fn damages(&self) -> &[String] {
        &self.damages
    }

    /// The columns, and the definition if the files contain one.
    #[must_use]
    pub fn shape(&self) -> RecordShape<'_> {
        RecordShape {
            schema: &self.schema,
            definition: self.columns.definition.as_ref(),
        }
    }

    /// Stops reading once the flag is set: [`Input::next_batch`] then fails with
    /// [`QueryError::Stopped`].
    pub fn stop_where(&mut self, flag: Arc<AtomicBool>) {
        self.stop = Some(flag);
    }

    pub(crate) fn stop_flag(&self) -> Option<Arc<AtomicBool>> {
        self.stop.clone()
    }

    /// Lets batches contain only the columns of `first`. [`Input::complete`] adds the columns of
    /// `then` where they are needed. Files that cannot read columns separately deliver all columns
    /// at once.
    pub fn read_apart(&mut self, first: Vec<usize>, then: Vec<usize>) {
        self.apart = Some((first, then));
    }

    /// Fills in the columns of `then` for the last batch that was returned.
    ///
    /// # Errors
    /// As [`Input::next_batch`].
    pub fn complete(&mut self, batch: &mut FlowBatch) -> Result<(), QueryError> {
        if let Some(reader) = &mut self.open {
            reader.complete(batch)?;
        }
        let (Some(enricher), Some((_, then))) = (&mut self.enricher, &self.apart) else {
            return Ok(());
        };
        let files = self.columns.schema.len();
        for index in then.iter().filter(|index| **index >= files) {
            let values = enricher.values(index - files, batch);
            batch.fill(*index, values);
        }
        Ok(())
    }

    /// The next records; `None` at the end.
    ///
    /// # Errors
    /// [`QueryError::Read`]; [`QueryError::Changed`] if a file's columns are no longer the ones
    /// that it was opened with; [`QueryError::Stopped`].
    pub fn next_batch(&mut self) -> Result<Option<FlowBatch>, QueryError> {
        let is_set = |flag: &Arc<AtomicBool>| flag.load(Ordering::Relaxed);
        if self.stop.as_ref().is_some_and(is_set) {
            return Err(QueryError::Stopped);
        }
        loop {
            if let Some(reader) = &mut self.open {
                if let Some(batch) = reader.next_batch()? {
                    return Ok(Some(self.enriched(batch)));
                }
                self.damages
                    .extend(reader.damage().map(|damage| damage.to_string()));
                self.open = None;
            }
            let Some((path, reader)) = self.waiting.pop() else {
                return Ok(None);
            };
            let schema = &self.columns.schema;
            let mut reader = match reader {
                Some(mut reader) => {
                    reader.take_kinds(schema);
                    reader
                }
                None => {
                    let mut reader = read_again(&path, schema)?;
                    if self.columns.is_loose {
                        reader.take_columns(schema);
                    }
                    if let Some(difference) = self.columns.change(&reader) {
                        let place = path.display().to_string();
                        return Err(QueryError::Changed { place, difference });
                    }
                    reader
                }
            };
            if let Some((first, then)) = &self.apart {
                reader.read_apart(&self.in_files(first, &[]), &self.in_files(then, first));
            }
            self.open = Some(reader);
        }
    }

    /// The file columns that `columns` need, including the sources of enrichment columns, without
    /// those that `before` already needs.
    fn in_files(&self, columns: &[usize], before: &[usize]) -> Vec<usize> {
        let files = self.columns.schema.len();
        let of = |index: usize| match &self.enricher {
            Some(enricher) if index >= files => enricher.sources(index - files),
            _ => vec![index],
        };
        let before: Vec<usize> = before.iter().flat_map(|index| of(*index)).collect();
        let columns = columns.iter().flat_map(|index| of(*index));
        columns.filter(|index| !before.contains(index)).collect()
    }

    /// Appends the enrichment columns; those that are not needed yet stay empty.
    fn enriched(&mut self, mut batch: FlowBatch) -> FlowBatch {
        let files = self.columns.schema.len();
        if let Some(enricher) = &mut self.enricher {
            for (index, column) in self.schema.iter().enumerate().skip(files) {
                let is_asked = |(first, _): &(Vec<usize>, _)| first.contains(&index);
                let values = match self.apart.as_ref().is_none_or(is_asked) {
                    true => enricher.values(index - files, &batch),
                    false => Values::none(column.kind),
                };
                batch.append(values);
            }
        }
        batch
    }
}

impl Iterator for Input {
    type Item = Result<FlowBatch, QueryError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().transpose()
    }
}

/// The common columns of all files.
#[derive(Clone, Default)]
struct Columns {
    schema: Schema,
    /// For each column, whether some file has revealed its kind.
    shown: Vec<bool>,
    /// The first file with known columns; empty if there is none.
    place: String,
    /// The definition of the first file that contains one.
    definition: Option<Definition>,
    /// Whether the records of all files may lack columns. Then whole files may lack columns, too.
    is_loose: bool,
}

impl Columns {
    /// If records may lack columns, gives this file and the previous ones the same columns, in
    /// which missing values are absent.
    fn widen(&mut self, reader: &mut FlowReader) {
        if !reader.has_columns() {
            return;
        }
        let own = reader.schema().clone();
        self.is_loose = (self.place.is_empty() || self.is_loose) && reader.take_columns(&own);
        if !self.is_loose {
            return;
        }
        for column in own {
            if self.place.is_empty() || self.schema.iter().any(|its| its.name == column.name) {
                continue;
            }
            self.schema.push(column);
            self.shown.push(true);
        }
        if !self.place.is_empty() {
            let fits = self.schema.iter().all(|its| {
                let mut twins = reader.schema().iter().filter(|twin| twin.name == its.name);
                twins.all(|twin| holds(twin.kind) == holds(its.kind))
            });
            // If not, the comparison of the columns reports the difference.
            if fits {
                reader.take_columns(&self.schema);
            }
        }
    }

    /// Takes over what is known about the columns of a compatible file.
    fn join(&mut self, place: String, reader: &FlowReader) {
        if self.place.is_empty() {
            self.schema.clone_from(reader.schema());
            self.shown = vec![false; self.schema.len()];
        }
        if !reader.has_columns() {
            return;
        }
        if self.definition.is_none() {
            self.definition = reader.definition().cloned();
        }
        if self.place.is_empty() {
            self.place = place;
        }
        let columns = self.schema.iter_mut().zip(&mut self.shown);
        for (index, ((column, shown), other)) in columns.zip(reader.schema()).enumerate() {
            if !*shown && reader.shows_kind(index) {
                (column.kind, *shown) = (other.kind, true);
            }
        }
    }

    /// The first column in which a file differs. Widths and nullability depend on the format, and
    /// unknown kinds are compatible with every kind.
    fn difference(&self, reader: &FlowReader) -> Option<String> {
        if self.place.is_empty() || !reader.has_columns() {
            return None;
        }
        let is_known = |index| self.shown.get(index) == Some(&true) && reader.shows_kind(index);
        let columns = difference(&self.schema, reader.schema(), is_known);
        columns.or_else(|| self.meaning(reader))
    }

    /// The first column whose feature differs, if both files contain a definition.
    fn meaning(&self, reader: &FlowReader) -> Option<String> {
        let (first, other) = (self.definition.as_ref()?, reader.definition()?);
        let twin = |feature: &Feature| {
            let mut twins = first.features.iter();
            twins.find(|twin| twin.name == feature.name)
        };
        let mut pairs = other.features.iter().filter_map(|f| Some((twin(f)?, f)));
        let (left, right) =
            pairs.find(|(left, right)| (&left.op, left.of) != (&right.op, right.of))?;
        let (name, left, right) = (&left.name, made(left), made(right));
        Some(format!("column {name:?} is {right}, not {left}"))
    }

    /// The first column that changed after the question was bound.
    fn change(&self, reader: &FlowReader) -> Option<String> {
        if !reader.has_columns() {
            return None;
        }
        if self.place.is_empty() {
            return Some("it had no records".to_owned());
        }
        let is_known = |index| reader.shows_kind(index);
        let columns = difference(&self.schema, reader.schema(), is_known);
        columns.or_else(|| self.meaning(reader))
    }
}

/// The first column in which two schemas differ, as far as their kinds are known.
fn difference(
    first: &[Column],
    other: &[Column],
    is_known: impl Fn(usize) -> bool,
) -> Option<String> {
    for index in 0..first.len().max(other.len()) {
        let number = index + 1;
        let known = is_known(index);
        match (first.get(index), other.get(index)) {
            (Some(left), Some(right)) if left.name != right.name => {
                let (left, right) = (&left.name, &right.name);
                return Some(format!("column {number} is {right:?}, not {left:?}"));
            }
            (Some(left), Some(right)) if known && holds(left.kind) != holds(right.kind) => {
                let (left, right, name) = (holds(left.kind), holds(right.kind), &left.name);
                return Some(format!("column {name:?} holds {right}, not {left}"));
            }
            (Some(left), None) => return Some(format!("it has no column {:?}", left.name)),
            (None, Some(right)) => {
                return Some(format!("it has the additional column {:?}", right.name));
            }
            _ => {}
        }
    }
    None
}

/// The op and input of a feature, in words.
fn made(feature: &Feature) -> String {
    let op = feature.op.name();
    let mut text = match feature.of {
        Some(of) => format!("{op} of {}", of.name()),
        None => op.to_owned(),
    };
    match &feature.op {
        Op::Nth { k } | Op::List { k } => text.push_str(&format!(" (k = {k})")),
        Op::Histogram { edges } => text.push_str(&format!(" (edges = {edges:?})")),
        _ => {}
    }
    text
}

/// The content of a column of this kind, in words.
const fn holds(kind: ColumnKind) -> &'static str {
    match kind {
        ColumnKind::Address => "IP addresses",
        ColumnKind::Unsigned { .. } => "whole numbers",
        ColumnKind::TimestampNs => "times",
        ColumnKind::Mac => "MAC addresses",
        ColumnKind::Float => "numbers with fractions",
        ColumnKind::List => "lists",
        ColumnKind::Text => "texts",
    }
}
