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
    /// Makes further columns.
    enricher: Option<Enricher>,
    /// The columns of the files and the further ones.
    schema: Schema,
    /// Files to read, the next one last. A reader of a pipe is kept, because it cannot be opened
    /// twice.
    waiting: Vec<(PathBuf, Option<FlowReader>)>,
    open: Option<FlowReader>,
    left_out: Vec<String>,
    damages: Vec<String>,
    /// The columns that are read first, and those that are read then.
    apart: Option<(Vec<usize>, Vec<usize>)>,
    /// Set where the rest is to be left unread.
    stop: Option<Arc<AtomicBool>>,
}

impl Input {
    /// Opens every file (`-` is standard input) and compares their columns before reading records,
    /// so that errors come first. Without files there are no records and no columns.
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
            // A pipe cannot be opened again, and not all of thousands of files can stay open.
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

    /// The records of some of these files once more, with the columns of all. Not of pipes, which
    /// can be read once.
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

    /// Adds columns of what an enrichment says of addresses and ports. Returns the names of those
    /// that the records have already, which stay theirs.
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

    /// Names of the columns that are not read, each with what it holds.
    #[must_use]
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// Where files were cut that have been read: their whole records were taken.
    #[must_use]
    pub fn damages(&self) -> &[String] {
        &self.damages
    }

    /// The columns, and the definition if the files contain it.
    #[must_use]
    pub fn shape(&self) -> RecordShape<'_> {
        RecordShape {
            schema: &self.schema,
            definition: self.columns.definition.as_ref(),
        }
    }

    /// Reads no further once the flag is set: the next batch is then [`QueryError::Stopped`].
    pub fn stop_where(&mut self, flag: Arc<AtomicBool>) {
        self.stop = Some(flag);
    }

    pub(crate) fn stop_flag(&self) -> Option<Arc<AtomicBool>> {
        self.stop.clone()
    }

    /// Has batches with the columns of `first` alone, and those of `then` where
    /// [`Input::complete`] asks for them, if a file has columns apart.
    pub fn read_apart(&mut self, first: Vec<usize>, then: Vec<usize>) {
        self.apart = Some((first, then));
    }

    /// Fills the further columns of the batch that came last.
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
    /// [`QueryError::Read`], [`QueryError::Changed`] where a file is another one than before, and
    /// [`QueryError::Stopped`].
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

    /// The columns of files among these, and those that the further columns are made of, without
    /// those that are read before.
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

    /// The batch with the further columns, as far as they are asked for now.
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
    /// Which columns have shown their kind in some file.
    shown: Vec<bool>,
    /// The first file with known columns; empty if there is none.
    place: String,
    /// The definition of the first file that contains one.
    definition: Option<Definition>,
    /// Whether the records of all files may lack columns, so that the files may, too.
    is_loose: bool,
}

impl Columns {
    /// Makes the columns of a file and those of the files before the same, where records lack
    /// those that are absent.
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
            // Otherwise the difference is found where columns are compared.
            if fits {
                reader.take_columns(&self.schema);
            }
        }
    }

    /// Adds a compatible file.
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

    /// The first column that has changed since the question was bound.
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
                return Some(format!("it has a column {:?} more", right.name));
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
