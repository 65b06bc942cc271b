// SPDX-License-Identifier: Apache-2.0
//! Microflow records as columns of words. In this form, the records of a probe leave a run in the
//! same way as flow records: through the same queues and to outputs of the same kind.

use turboflow_merge::{Layout, MicroflowRecord};
use turboflow_record::{Column, ColumnKind, FlowBatch, Schema, ValueData, Values};

use crate::{BASE_WORDS, MicroflowBatch, RecordShape};

/// The columns of a layout's microflow records. One column is the number of words of a record,
/// which determines its address family. The others are its words; unused words are 0.
#[derive(Clone, Debug)]
pub struct WordColumns {
    shape: RecordShape,
    schema: Schema,
}

impl WordColumns {
    /// The columns for records of `layout`, which has no biflows in two-way form.
    #[must_use]
    pub fn new(layout: &Layout) -> Self {
        let shape = RecordShape::of(layout);
        let column = |name: String| Column {
            name,
            kind: ColumnKind::Unsigned { bits: 64 },
            nullable: false,
        };
        let most = shape.words_v4().max(shape.words_v6());
        let words = (0..most).map(|at| column(format!("word_{at}")));
        Self {
            shape,
            schema: std::iter::once(column("words".to_owned()))
                .chain(words)
                .collect(),
        }
    }

    /// The schema of the batches.
    #[must_use]
    pub const fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Appends records of `K` words of key.
    pub fn append<const K: usize, const N: usize>(
        &self,
        records: &[MicroflowRecord<K, N>],
        batch: &mut FlowBatch,
    ) {
        let state = self.shape.state_words;
        // `K` may exceed the number of key words that the layout of a wide key uses.
        let key = self.shape.wide_key_words.unwrap_or(K);
        let words = BASE_WORDS + state + key;
        batch.extend(records.len(), |before, values| {
            let ValueData::Unsigned(values) = &mut values.data else {
                unreachable!("all columns are numbers");
            };
            match before.len().checked_sub(1) {
                None => values.extend(records.iter().map(|_| words as u64)),
                Some(at) if at < BASE_WORDS => {
                    values.extend(records.iter().map(|record| record.base.words()[at]));
                }
                Some(at) if at < BASE_WORDS + state => {
                    values.extend(records.iter().map(|record| record.state[at - BASE_WORDS]));
                }
                Some(at) if at < words => {
                    let at = at - BASE_WORDS - state;
                    values.extend(records.iter().map(|record| record.key[at]));
                }
                Some(_) => values.extend(records.iter().map(|_| 0)),
            }
        });
    }

    /// Appends the records of a batch with these columns to `to`.
    pub fn read(&self, batch: &FlowBatch, to: &mut MicroflowBatch) {
        let columns: Vec<&[u64]> = batch.columns().iter().map(numbers).collect();
        let [words, columns @ ..] = &columns[..] else {
            return;
        };
        for row in 0..batch.rows() {
            let record = columns.iter().take(words[row] as usize);
            let is_record = to.push_row(record.map(|column| column[row]), self.shape);
            debug_assert!(is_record, "it was made of a record of this shape");
        }
    }
}

fn numbers(values: &Values) -> &[u64] {
    match &values.data {
        ValueData::Unsigned(numbers) => numbers,
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use turboflow_merge::WORDS_WIDE;
    use turboflow_record::{Definition, WORDS_V4, WORDS_V6};

    use super::*;

    fn record<const K: usize, const N: usize>(first: u64) -> MicroflowRecord<K, N> {
        MicroflowRecord {
            key: std::array::from_fn(|at| first + at as u64),
            base: turboflow_merge::Base {
                packets: first,
                first_ns: 3,
                last_ns: 9,
                ..turboflow_merge::Base::default()
            },
            state: std::array::from_fn(|at| 100 * first + at as u64),
        }
    }

    #[test]
    fn records_come_back_as_they_were() {
        let layout = Layout::compile(&Definition::default(), false).unwrap();
        let columns = WordColumns::new(&layout);
        let mut batch = FlowBatch::new(columns.schema());
        let (v4, v6) = (record::<WORDS_V4, 0>(7), record::<WORDS_V6, 0>(8));
        columns.append(&[v4, v4], &mut batch);
        columns.append(&[v6], &mut batch);
        let mut read = MicroflowBatch::default();
        columns.read(&batch, &mut read);
        assert_eq!(read.v4::<0>().collect::<Vec<_>>(), [v4, v4]);
        assert_eq!(read.v6::<0>().collect::<Vec<_>>(), [v6]);
    }

    #[test]
    fn states_and_keys_have_as_many_words_as_their_layout() {
        let text = "[key]\nfields = [\"source_address\"]\n[[feature]]\nname = \"n\"\nop = \"sum\"\nof = \"ttl\"\n";
        let definition = Definition::parse(text).unwrap();
        let layout = Layout::compile(&definition, false).unwrap();
        let columns = WordColumns::new(&layout);
        let shape = RecordShape::of(&layout);
        let mut batch = FlowBatch::new(columns.schema());
        columns.append(&[record::<WORDS_WIDE, 8>(7)], &mut batch);
        let mut read = MicroflowBatch::default();
        columns.read(&batch, &mut read);
        let back = read.wide::<8>().next().unwrap();
        let (state, key) = (shape.state_words, shape.wide_key_words.unwrap());
        let sent = record::<WORDS_WIDE, 8>(7);
        assert_eq!(back.key[..key], sent.key[..key]);
        assert_eq!(back.state[..state], sent.state[..state]);
        assert_eq!(back.base, sent.base);
        assert!(state > 0 && key > 0);
    }
}
