// SPDX-License-Identifier: Apache-2.0
//! Group keys as arrays of words, which are compared and hashed without knowing their contents.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use turboflow_record::{FlowBatch, Value, masked};

use crate::answer::Cell;
use crate::field::Field;
use crate::group::GroupKey;
use crate::numbers::Numbers;

/// The form of one field of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyForm {
    /// A whole number: the record's number, rounded down to a multiple of `width`.
    Number {
        width: u64,
    },
    Address,
    /// The network of an address, with these prefix lengths.
    Network {
        v4: u8,
        v6: u8,
    },
    Float,
    Text,
}

/// Tags of a value: absent, present, or present as an IPv6 address. Their order is the sort order
/// of the values.
const ABSENT: u64 = 0;
const THERE: u64 = 1;
const V6: u64 = 2;

/// Number of bits of a tag.
const TAG_BITS: usize = 2;
/// Number of tags in a word.
const TAGS: usize = 64 / TAG_BITS;

/// Positions of the fields in a key: the tags of all fields first, then their values.
pub(crate) struct KeyLayout {
    forms: Vec<KeyForm>,
    places: Vec<usize>,
    words: usize,
}

impl KeyLayout {
    pub(crate) fn of(keys: &[GroupKey]) -> Self {
        let forms: Vec<KeyForm> = keys.iter().map(GroupKey::form).collect();
        let mut words = forms.len().div_ceil(TAGS);
        let mut places = Vec::with_capacity(forms.len());
        for form in &forms {
            places.push(words);
            words += match form {
                KeyForm::Address | KeyForm::Network { .. } => 2,
                KeyForm::Number { .. } | KeyForm::Float | KeyForm::Text => 1,
            };
        }
        Self {
            forms,
            places,
            words,
        }
    }

    /// Number of words in a key.
    pub(crate) const fn words(&self) -> usize {
        self.words
    }

    /// Writes one field into the keys of these records. `keys` holds the keys one after another.
    pub(crate) fn write(
        &self,
        index: usize,
        field: Field,
        (batch, rows): (&FlowBatch, &[u32]),
        texts: &mut Texts,
        keys: &mut [u64],
    ) {
        let pairs = keys.chunks_exact_mut(self.words).zip(rows);
        let pairs = pairs.map(|(key, row)| (key, *row as usize));
        match self.forms[index] {
            KeyForm::Number { width } => {
                let numbers = Numbers::of(field, batch);
                for (key, row) in pairs {
                    match numbers.get(row) {
                        Some(number) => self.put_number(index, key, floor(number, width)),
                        None => self.put(index, key, ABSENT, &[0]),
                    }
                }
            }
            KeyForm::Address => pairs.for_each(|(key, row)| match field.value(batch, row) {
                Value::Address(address) => self.put_address(index, key, address),
                _ => self.put(index, key, ABSENT, &[0, 0]),
            }),
            KeyForm::Network { v4, v6 } => {
                pairs.for_each(|(key, row)| match field.value(batch, row) {
                    Value::Address(address) => {
                        let length = if address.is_ipv4() { v4 } else { v6 };
                        self.put_address(index, key, masked(address, length));
                    }
                    _ => self.put(index, key, ABSENT, &[0, 0]),
                });
            }
            KeyForm::Float => pairs.for_each(|(key, row)| match field.value(batch, row) {
                Value::Float(float) => self.put_number(index, key, float.to_bits()),
                _ => self.put(index, key, ABSENT, &[0]),
            }),
            KeyForm::Text => pairs.for_each(|(key, row)| match field.value(batch, row) {
                Value::Text(text) => self.put_number(index, key, texts.number(text)),
                _ => self.put(index, key, ABSENT, &[0]),
            }),
        }
    }

    pub(crate) fn put_number(&self, index: usize, key: &mut [u64], number: u64) {
        self.put(index, key, THERE, &[number]);
    }

    #[inline]
    fn put_address(&self, index: usize, key: &mut [u64], address: IpAddr) {
        match address {
            IpAddr::V4(address) => self.put(index, key, THERE, &[0, u64::from(address.to_bits())]),
            IpAddr::V6(address) => {
                let bits = address.to_bits();
                self.put(index, key, V6, &[(bits >> 64) as u64, bits as u64]);
            }
        }
    }

    #[inline]
    fn put(&self, index: usize, key: &mut [u64], tag: u64, value: &[u64]) {
        let shift = index % TAGS * TAG_BITS;
        let tags = &mut key[index / TAGS];
        *tags = *tags & !(0b11 << shift) | tag << shift;
        key[self.places[index]..][..value.len()].copy_from_slice(value);
    }

    const fn tag(index: usize, key: &[u64]) -> u64 {
        key[index / TAGS] >> (index % TAGS * TAG_BITS) & 0b11
    }

    /// The value of a field of the key.
    pub(crate) fn cell(&self, index: usize, key: &[u64], texts: &Texts) -> Cell {
        let tag = Self::tag(index, key);
        let place = self.places[index];
        let address = || match tag {
            V6 => {
                let bits = u128::from(key[place]) << 64 | u128::from(key[place + 1]);
                IpAddr::V6(Ipv6Addr::from_bits(bits))
            }
            _ => IpAddr::V4(Ipv4Addr::from_bits(key[place + 1] as u32)),
        };
        match self.forms[index] {
            _ if tag == ABSENT => Cell::Absent,
            KeyForm::Number { .. } => Cell::Unsigned(key[place]),
            KeyForm::Address => Cell::Address(address()),
            KeyForm::Network { v4, v6 } => {
                Cell::Network(address(), if tag == V6 { v6 } else { v4 })
            }
            KeyForm::Float => Cell::Float(f64::from_bits(key[place])),
            KeyForm::Text => Cell::Text(texts.text(key[place]).into()),
        }
    }

    /// The order of keys, field by field.
    pub(crate) fn compare(&self, left: &[u64], right: &[u64], texts: &Texts) -> Ordering {
        let fields = 0..self.forms.len();
        let orders = fields.map(|index| self.compare_field(index, left, right, texts));
        orders
            .into_iter()
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
    }

    /// The order of one field. Absent values come first.
    pub(crate) fn compare_field(
        &self,
        index: usize,
        left: &[u64],
        right: &[u64],
        texts: &Texts,
    ) -> Ordering {
        let tags = Self::tag(index, left).cmp(&Self::tag(index, right));
        let place = self.places[index];
        tags.then_with(|| match self.forms[index] {
            KeyForm::Number { .. } => left[place].cmp(&right[place]),
            KeyForm::Address | KeyForm::Network { .. } => {
                left[place..place + 2].cmp(&right[place..place + 2])
            }
            KeyForm::Float => {
                let [left, right] = [left, right].map(|key| f64::from_bits(key[place]));
                left.total_cmp(&right)
            }
            KeyForm::Text if Self::tag(index, left) == ABSENT => Ordering::Equal,
            KeyForm::Text => texts.text(left[place]).cmp(texts.text(right[place])),
        })
    }
}

/// The number, rounded down to a multiple of `width`.
#[inline]
const fn floor(number: u64, width: u64) -> u64 {
    match width {
        1 => number,
        width => number - number % width,
    }
}

/// Interned texts: each text has a number.
#[derive(Default)]
pub(crate) struct Texts {
    numbers: HashMap<Arc<str>, u64>,
    texts: Vec<Arc<str>>,
}

impl Texts {
    fn number(&mut self, text: &str) -> u64 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.texts.len() as u64;
        let text: Arc<str> = text.into();
        self.texts.push(Arc::clone(&text));
        self.numbers.insert(text, number);
        number
    }

    fn text(&self, number: u64) -> &str {
        &self.texts[number as usize]
    }
}
