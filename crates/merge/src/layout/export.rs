// SPDX-License-Identifier: Apache-2.0
//! Converts records to columns, one column at a time, so that no decision is made per record.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::form::{BaseField, Form, Moments, Number, Span, Sum};
use super::key::{KeySlot, counterpart};
use super::moments::{mean, rate, variance};
use super::rows::Rows;
use super::texts::TextSource;
use super::words::encode_max;
use turboflow_record::{KeyField, ValueData, Values};

/// A column of a feature, or of the end reason.
#[derive(Clone, Debug)]
pub(super) struct FeatureColumn {
    pub(super) form: Form,
    /// Whether values are directions, which are converted so that they are relative to the
    /// initiator.
    pub(super) is_direction: bool,
}

/// A key column in one record format. Positions are pairs: the first applies if the source of the
/// key initiated the flow, the second if its destination did.
#[derive(Clone, Copy, Debug)]
pub(super) enum KeyColumn {
    Address {
        word: [u8; 2],
        shift: [u8; 2],
        family: FamilySource,
    },
    Number {
        word: [u8; 2],
        shift: [u8; 2],
        bits: u8,
        presence: Option<[u8; 2]>,
        wire: bool,
    },
}

/// What determines the family of an address.
#[derive(Clone, Copy, Debug)]
pub(super) enum FamilySource {
    V4,
    V6,
    /// The byte at this shift in the header of a wide key.
    Header(u8),
}

/// Buffers for the numbers of a run of records.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    a: Vec<u64>,
    b: Vec<u64>,
    c: Vec<u64>,
}

impl Buffers {
    fn clear(&mut self) {
        self.a.clear();
        self.b.clear();
        self.c.clear();
    }
}

impl KeyColumn {
    /// The column of `field` in IPv4 records.
    pub(super) fn in_v4(field: KeyField) -> Self {
        let address = |shift| Self::Address {
            word: [0, 0],
            shift,
            family: FamilySource::V4,
        };
        match field {
            KeyField::SourceAddress => address([0, 32]),
            KeyField::DestinationAddress => address([32, 0]),
            _ => Self::in_transport(field, 1),
        }
    }

    /// The column of `field` in IPv6 records.
    pub(super) fn in_v6(field: KeyField) -> Self {
        let address = |word| Self::Address {
            word,
            shift: [0, 0],
            family: FamilySource::V6,
        };
        match field {
            KeyField::SourceAddress => address([0, 2]),
            KeyField::DestinationAddress => address([2, 0]),
            _ => Self::in_transport(field, 4),
        }
    }

    fn in_transport(field: KeyField, word: u8) -> Self {
        let (shift, bits, wire) = match field {
            KeyField::SourcePort => ([0, 16], 16, true),
            KeyField::DestinationPort => ([16, 0], 16, true),
            KeyField::Protocol => ([32, 32], 8, false),
            _ => unreachable!("a 5-tuple has no other fields"),
        };
        Self::Number {
            word: [word; 2],
            shift,
            bits,
            presence: None,
            wire,
        }
    }

    /// The column of `field` in wide records.
    pub(super) fn in_wide(
        field: KeyField,
        key_slots: &[KeySlot],
        family_shift: u8,
        outer: u8,
    ) -> Self {
        let key_slot = |field| key_slots.iter().find(|key_slot| key_slot.field == field);
        let here = key_slot(field).expect("every field of the key has a place");
        let there = counterpart(field).and_then(key_slot).unwrap_or(here);
        let word = [here.word, there.word];
        let shift = [here.shift, there.shift];
        let family = match field {
            KeyField::SourceAddress | KeyField::DestinationAddress => family_shift,
            KeyField::OuterSourceAddress | KeyField::OuterDestinationAddress => outer,
            _ => {
                let presence = here.presence.zip(there.presence).map(<[u8; 2]>::from);
                return Self::Number {
                    word,
                    shift,
                    bits: here.bits,
                    presence,
                    wire: false,
                };
            }
        };
        Self::Address {
            word,
            shift,
            family: FamilySource::Header(family),
        }
    }

    pub(super) fn fill(&self, rows: &dyn Rows, values: &mut Values, buffers: &mut Buffers) {
        buffers.clear();
        match *self {
            Self::Address {
                word,
                shift,
                family,
            } => {
                rows.key(word, &mut buffers.a);
                if !matches!(family, FamilySource::V4) {
                    rows.key(word.map(|word| word + 1), &mut buffers.b);
                }
                if matches!(family, FamilySource::Header(_)) {
                    rows.key([0, 0], &mut buffers.c);
                }
                fill_addresses(rows.flips(), values, buffers, shift, family);
            }
            Self::Number {
                word,
                shift,
                bits,
                presence,
                wire,
            } => {
                rows.key(word, &mut buffers.a);
                let flips = rows.flips().iter().map(|flip| usize::from(*flip));
                let mask = u64::MAX >> (64 - bits);
                let number = |(word, flip): (&u64, usize)| {
                    let number = word >> shift[flip] & mask;
                    if wire {
                        u64::from((number as u16).swap_bytes())
                    } else {
                        number
                    }
                };
                let Some(presence) = presence else {
                    values
                        .numbers()
                        .extend(buffers.a.iter().zip(flips).map(number));
                    return;
                };
                rows.key([0, 0], &mut buffers.c);
                for ((word, flip), header) in buffers.a.iter().zip(flips).zip(&buffers.c) {
                    let present = header >> presence[flip] & 1 == 1;
                    values.push_number(present.then(|| number((word, flip))));
                }
            }
        }
    }
}

fn fill_addresses(
    flips: &[bool],
    values: &mut Values,
    buffers: &Buffers,
    shift: [u8; 2],
    family: FamilySource,
) {
    let v4 = |low: u64| IpAddr::V4(Ipv4Addr::from((low as u32).to_le_bytes()));
    let v6 = |low: u64, high: u64| {
        let bytes = (u128::from(low) | u128::from(high) << 64).to_le_bytes();
        IpAddr::V6(Ipv6Addr::from(bytes))
    };
    match family {
        FamilySource::V4 => {
            let rows = buffers.a.iter().zip(flips);
            let address = rows.map(|(low, flip)| v4(low >> shift[usize::from(*flip)]));
            values.addresses().extend(address);
        }
        FamilySource::V6 => {
            let rows = buffers.a.iter().zip(&buffers.b);
            values
                .addresses()
                .extend(rows.map(|(low, high)| v6(*low, *high)));
        }
        FamilySource::Header(at) => {
            for ((low, high), header) in buffers.a.iter().zip(&buffers.b).zip(&buffers.c) {
                values.push_address(match header >> at & 0xff {
                    0 => None,
                    4 => Some(v4(*low)),
                    _ => Some(v6(*low, *high)),
                });
            }
        }
    }
}

impl FeatureColumn {
    pub(super) fn fill(
        &self,
        rows: &dyn Rows,
        values: &mut Values,
        buffers: &mut Buffers,
        texts: &TextSource<'_>,
    ) {
        let before = values.data.len();
        match self.form {
            Form::Text { word, of } => {
                buffers.clear();
                rows.state(word, 1, &mut buffers.a);
                texts.fill(of, &buffers.a, values);
            }
            Form::CommunityId { icmp } => {
                buffers.clear();
                rows.state(icmp[0], 1, &mut buffers.a);
                rows.state(icmp[1], 1, &mut buffers.b);
                texts.fill_community_ids(&buffers.a, &buffers.b, values);
            }
            _ => self.form.fill(rows, values, buffers),
        }
        if self.is_direction {
            flip_directions(rows.flips(), values, before);
        }
    }
}

/// Converts directions that are relative to the key so that they are relative to the initiator.
fn flip_directions(flips: &[bool], values: &mut Values, before: usize) {
    match &mut values.data {
        ValueData::Unsigned(numbers) => {
            for (index, flip) in flips.iter().enumerate() {
                let is_there = values.valid.get(before + index) != Some(&false);
                numbers[before + index] ^= u64::from(*flip && is_there);
            }
        }
        ValueData::List { ends, elements } => {
            for (index, flip) in flips.iter().enumerate().map(|(i, flip)| (before + i, flip)) {
                let start = if index == 0 { 0 } else { ends[index - 1] };
                elements[start..ends[index]]
                    .iter_mut()
                    .for_each(|e| *e ^= u64::from(*flip));
            }
        }
        ValueData::Address(_) | ValueData::Float(_) | ValueData::Text { .. } => {
            unreachable!("directions are numbers")
        }
    }
}

impl Form {
    fn fill(&self, rows: &dyn Rows, values: &mut Values, buffers: &mut Buffers) {
        buffers.clear();
        let a = &mut buffers.a;
        match *self {
            Self::Number(number) => rows.number(number, values.numbers()),
            Self::OneLess(number) => {
                rows.number(number, a);
                values
                    .numbers()
                    .extend(a.iter().map(|count| count.saturating_sub(1)));
            }
            Self::Min(word) => {
                rows.state(word, 1, a);
                a.iter()
                    .for_each(|min| values.push_number((*min != u64::MAX).then_some(*min)));
            }
            Self::Max(word) => {
                rows.state(word, 1, a);
                let max = |word: u64| (word != u64::MAX).then(|| encode_max(word));
                a.iter().for_each(|word| values.push_number(max(*word)));
            }
            Self::Stored(word) => {
                rows.state(word, 1, a);
                a.iter()
                    .for_each(|word| values.push_number(word.checked_sub(1)));
            }
            Self::Nth { start, k } => {
                rows.state(start, usize::from(k) + 1, a);
                for list in a.chunks_exact(usize::from(k) + 1) {
                    let reached = list[0] >= u64::from(k);
                    values.push_number(reached.then(|| list[usize::from(k)]));
                }
            }
            Self::List { start, k } => {
                rows.state(start, usize::from(k) + 1, a);
                for list in a.chunks_exact(usize::from(k) + 1) {
                    let count = (list[0] as usize).min(usize::from(k));
                    values.push_list(&list[1..=count]);
                }
            }
            Self::Bins { start, bins } => {
                rows.state(start, usize::from(bins), a);
                a.chunks_exact(usize::from(bins))
                    .for_each(|bins| values.push_list(bins));
            }
            Self::Mean(moments) => {
                let each = moments.gather(rows, buffers);
                each.for_each(|(sum, count)| values.push_float(mean(sum, count)));
            }
            Self::Variance { moments, squares } => {
                fill_variances(moments, squares, rows, values, buffers);
            }
            Self::Duration(span) => {
                span.gather(rows, buffers)
                    .for_each(|duration| values.push_number(duration));
            }
            Self::Rate { amount, span } => fill_rates(amount, span, rows, values, buffers),
            Self::Text { .. } | Self::CommunityId { .. } => {
                unreachable!("texts are filled in from a source of texts")
            }
        }
    }
}

fn fill_variances(
    moments: Moments,
    squares: [u16; 2],
    rows: &dyn Rows,
    values: &mut Values,
    buffers: &mut Buffers,
) {
    rows.state(squares, 2, &mut buffers.c);
    let squares = std::mem::take(&mut buffers.c);
    let each = moments.gather(rows, buffers).zip(squares.chunks_exact(2));
    each.for_each(|((sum, count), squares)| {
        values.push_float(variance(sum, wide(squares), count));
    });
    buffers.c = squares;
}

fn fill_rates(
    amount: Number,
    span: Span,
    rows: &dyn Rows,
    values: &mut Values,
    buffers: &mut Buffers,
) {
    rows.number(amount, &mut buffers.c);
    let amounts = std::mem::take(&mut buffers.c);
    for (duration, amount) in span.gather(rows, buffers).zip(&amounts) {
        values.push_float(duration.and_then(|duration| rate(*amount, duration)));
    }
    buffers.c = amounts;
}

fn wide(words: &[u64]) -> u128 {
    u128::from(words[0]) | u128::from(words[1]) << 64
}

impl Moments {
    /// Sum and number of values for every record.
    fn gather<'a>(
        &self,
        rows: &dyn Rows,
        buffers: &'a mut Buffers,
    ) -> impl Iterator<Item = (u128, u64)> + use<'a> {
        let words = match self.sum {
            Sum::Number(number) => {
                rows.number(number, &mut buffers.a);
                1
            }
            Sum::Wide(word) => {
                rows.state(word, 2, &mut buffers.a);
                2
            }
        };
        rows.number(self.count, &mut buffers.b);
        let less = self.less;
        let sums = buffers.a.chunks_exact(words).map(|words| match words {
            [narrow] => u128::from(*narrow),
            words => wide(words),
        });
        sums.zip(
            buffers
                .b
                .iter()
                .map(move |count| count.saturating_sub(less)),
        )
    }
}

impl Span {
    /// The duration of every record; absent if the record has no packets.
    fn gather<'a>(
        &self,
        rows: &dyn Rows,
        buffers: &'a mut Buffers,
    ) -> impl Iterator<Item = Option<u64>> + use<'a> {
        let is_encoded = match *self {
            Self::Base => {
                rows.number(Number::Base(BaseField::FirstNs), &mut buffers.a);
                rows.number(Number::Base(BaseField::LastNs), &mut buffers.b);
                false
            }
            Self::Words { first, last } => {
                rows.state(first, 1, &mut buffers.a);
                rows.state(last, 1, &mut buffers.b);
                true
            }
        };
        buffers.a.iter().zip(&buffers.b).map(move |(first, last)| {
            let is_empty = is_encoded && *first == u64::MAX;
            let last = if is_encoded { encode_max(*last) } else { *last };
            if is_empty {
                None
            } else {
                last.checked_sub(*first)
            }
        })
    }
}
