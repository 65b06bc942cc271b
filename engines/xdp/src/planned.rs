// SPDX-License-Identifier: Apache-2.0
//! Takes a plan's records out of the tables: the plan's base, state and key words.

use std::sync::atomic::{AtomicU64, Ordering};

use turboflow_engine::{MicroflowBatch, RecordShape};

use crate::layout::record_word;
use crate::memory::SharedMemory;

/// Words between two rows of a table: whole cache lines.
pub(crate) const fn row_words(words: usize) -> usize {
    words.next_multiple_of(8)
}

/// Moves the records of a half of both tables to `to`; returns how many there were.
pub(crate) fn take_rows(
    [table_v4, table_v6]: [&SharedMemory; 2],
    half: u64,
    shape: RecordShape,
    in_use: &[bool],
    to: &mut MicroflowBatch,
) -> u64 {
    let mut take = |table: &SharedMemory, words: usize| {
        table.take_rows(half, in_use, row_words(words), |row| {
            let is_record = to.push_row(loaded(&row[..words]), shape);
            debug_assert!(
                is_record,
                "rows have the shape that their table was made for"
            );
        })
    };
    let of_v6 = take(table_v6, shape.words_v6());
    match shape.wide_key_words {
        Some(_) => of_v6,
        None => of_v6 + take(table_v4, shape.words_v4()),
    }
}

/// The words of a row, without the padding after them.
fn loaded(row: &[AtomicU64]) -> impl ExactSizeIterator<Item = u64> + '_ {
    let words = row.iter().enumerate();
    words.map(|(at, word)| record_word(at, word.load(Ordering::Relaxed)))
}
