// SPDX-License-Identifier: Apache-2.0
//! Gathers numbers from many records, one field at a time. This is the only part of the export that
//! is compiled for every record format.

use super::form::{BaseField, Number};
use super::two_way::{SideWord, by_direction, joined};
use crate::{Base, Marks, MicroflowRecord};

/// A run of records of any format.
pub(super) trait Rows {
    /// Which records were initiated by the destination of their key.
    fn flips(&self) -> &[bool];

    /// Appends one number per record.
    fn number(&self, number: Number, out: &mut Vec<u64>);

    /// Appends `count` words of the state, record by record.
    fn state(&self, start: [u16; 2], count: usize, out: &mut Vec<u64>);

    /// Appends one word of the key per record.
    fn key(&self, word: [u8; 2], out: &mut Vec<u64>);
}

pub(super) struct RecordRows<'a, const K: usize, const N: usize> {
    records: &'a [MicroflowRecord<K, N>],
    flips: &'a [bool],
    two_way: Option<TwoWay<'a>>,
}

/// The buffers for a run of records.
#[derive(Debug, Default)]
pub(super) struct RowBuffers {
    flips: Vec<bool>,
    /// In the two-way form: the initiator's packets, then the responder's.
    of_rows: Vec<[Base; 2]>,
}

/// Both sides of a run of records in the two-way form.
struct TwoWay<'a> {
    /// What each state word of the plain form would hold.
    words: &'a [SideWord],
    /// The initiator's packets, then the responder's.
    of_rows: &'a [[Base; 2]],
}

/// Where records keep the packets of the two directions apart.
#[derive(Clone, Copy)]
pub(super) enum Sides<'a> {
    /// In state words. In biflows, the words that count the packets of each direction.
    Words(Option<[u16; 2]>),
    /// In the two-way form. What the state words of the plain form would hold.
    TwoWay(&'a [SideWord]),
}

impl<'a, const K: usize, const N: usize> RecordRows<'a, K, N> {
    pub(super) fn new(
        records: &'a [MicroflowRecord<K, N>],
        buffers: &'a mut RowBuffers,
        sides: Sides<'a>,
    ) -> Self {
        let RowBuffers { flips, of_rows } = buffers;
        flips.clear();
        of_rows.clear();
        let words = match sides {
            Sides::TwoWay(words) => words,
            Sides::Words(sent) => return Self::plain(records, flips, sent),
        };
        for record in records {
            let mut of_row = by_direction(record);
            let has_sent = |reversed: bool| of_row[usize::from(reversed)].packets > 0;
            let flip = is_initiated_by_destination(record.base.marks, has_sent);
            if flip {
                of_row.swap(0, 1);
            }
            flips.push(flip);
            of_rows.push(of_row);
        }
        Self {
            records,
            flips,
            two_way: Some(TwoWay { words, of_rows }),
        }
    }

    fn plain(
        records: &'a [MicroflowRecord<K, N>],
        flips: &'a mut Vec<bool>,
        sent: Option<[u16; 2]>,
    ) -> Self {
        flips.extend(records.iter().map(|record| {
            let has_sent = |reversed: bool| {
                sent.is_some_and(|words| {
                    let word = usize::from(words[usize::from(reversed)]);
                    record.state[word] > 0
                })
            };
            is_initiated_by_destination(record.base.marks, has_sent)
        }));
        Self {
            records,
            flips,
            two_way: None,
        }
    }

    fn base(&self, out: &mut Vec<u64>, field: impl Fn(&Base) -> u64) {
        match &self.two_way {
            None => out.extend(self.records.iter().map(|record| field(&record.base))),
            Some(two_way) => {
                let rows = self.records.iter().zip(two_way.of_rows);
                out.extend(rows.map(|(record, sides)| field(&joined(&record.base, sides))));
            }
        }
    }

    fn each_flipped(&self) -> impl Iterator<Item = (&'a MicroflowRecord<K, N>, usize)> {
        self.records
            .iter()
            .zip(self.flips.iter().map(|flip| usize::from(*flip)))
    }
}

/// Whether the key's destination is the initiator. The initiator is the only side that sent a SYN
/// without ACK (RFC 5103, section 4, and TCP's notion of a client). If there is no such side, it is
/// the sender of the first packet or, if that packet is an answer and the other side has sent
/// packets, the other side. An initiator always has packets.
fn is_initiated_by_destination(marks: Marks, has_sent: impl Fn(bool) -> bool) -> bool {
    match (marks.any(Marks::SYN), marks.any(Marks::REVERSE_SYN)) {
        (true, false) => false,
        (false, true) => true,
        _ => {
            let reversed = marks.any(Marks::STARTS_REVERSED);
            reversed != (marks.any(Marks::STARTS_WITH_ANSWER) && has_sent(!reversed))
        }
    }
}

impl<const K: usize, const N: usize> Rows for RecordRows<'_, K, N> {
    fn flips(&self) -> &[bool] {
        self.flips
    }

    fn number(&self, number: Number, out: &mut Vec<u64>) {
        let field = match number {
            Number::Word(word) => return self.state(word, 1, out),
            Number::Base(field) => field,
        };
        match field {
            BaseField::Bytes => self.base(out, |base| base.bytes),
            BaseField::EndReason => self.base(out, |base| base.end_reason.into()),
            BaseField::FirstNs => self.base(out, |base| base.first_ns),
            BaseField::LastNs => self.base(out, |base| base.last_ns),
            BaseField::MaxLength => self.base(out, |base| base.max_length_bytes.into()),
            BaseField::MaxTtl => self.base(out, |base| base.max_ttl.into()),
            BaseField::MinLength => self.base(out, |base| base.min_length_bytes.get().into()),
            BaseField::MinTtl => self.base(out, |base| base.min_ttl.get().into()),
            BaseField::Packets => self.base(out, |base| base.packets),
            BaseField::TcpFlags => self.base(out, |base| base.tcp_flags.into()),
            BaseField::Tos => self.base(out, |base| base.tos.into()),
        }
    }

    fn state(&self, start: [u16; 2], count: usize, out: &mut Vec<u64>) {
        let start = start.map(usize::from);
        if let Some(TwoWay { words, of_rows }) = &self.two_way {
            // Either start names the same field; `is_reverse` takes the key's source as initiator.
            let word = words[start[0]];
            let rows = of_rows.iter();
            return word.append(rows.map(|pair| &pair[usize::from(word.is_reverse)]), out);
        }
        if count == 1 {
            out.extend(
                self.each_flipped()
                    .map(|(record, flip)| record.state[start[flip]]),
            );
            return;
        }
        for (record, flip) in self.each_flipped() {
            out.extend_from_slice(&record.state[start[flip]..start[flip] + count]);
        }
    }

    fn key(&self, word: [u8; 2], out: &mut Vec<u64>) {
        let word = word.map(usize::from);
        out.extend(
            self.each_flipped()
                .map(|(record, flip)| record.key[word[flip]]),
        );
    }
}
