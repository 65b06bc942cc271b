// SPDX-License-Identifier: Apache-2.0
//! Encoders for the columns of nearly all records: addresses, numbers and times.
//!
//! Numbers are dictionary-encoded until a page shows that this does not pay, and delta-encoded from
//! then on. Likewise, addresses are dictionary-encoded first, and written as plain text from then
//! on.

use std::mem;
use std::net::IpAddr;
use std::ops::Range;

use bytes::Bytes;
use parquet::basic::{Compression as Codec, Encoding, Type as PhysicalType};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::Result;
use parquet::file::statistics::Statistics;
use parquet::schema::types::ColumnDescPtr;
use turboflow_record::{ColumnKind, ValueData, Values};

use crate::parquet::dictionary::{AddressDictionary, NumberDictionary};
use crate::parquet::encode::{bits_of, delta, hybrid};
use crate::parquet::page::{Compressor, Ending, Pages};
use crate::parquet::texts::{Bounds, PageTexts, plain};
use crate::parquet::types::{Form, Leaf};
use crate::text::{ADDRESS_BYTES, MAC_BYTES, Text};

/// Number of values in a page: 128 KiB of dictionary indices, which stay in the cache until the
/// page is full, or half a MiB of IPv4 addresses as text.
const PAGE_VALUES: usize = 1 << 15;
/// Bytes to reserve for the text of an address.
const ADDRESS_TEXT_BYTES: usize = ADDRESS_BYTES + 4;
/// The dictionary is kept in pages with fewer addresses than this.
const FEW_ADDRESSES: usize = 1 << 13;

/// The encoder of one column chunk of addresses, MAC addresses, numbers or times.
pub(crate) struct FlatChunk {
    kind: ColumnKind,
    /// Divisor of the values: for times, the nanoseconds in the unit of the column.
    unit: u64,
    nullable: bool,
    descriptor: ColumnDescPtr,
    content: Content,
    /// Definition levels of the open page: 1 for a present value. Empty in columns that are not
    /// nullable.
    levels: Vec<u32>,
    page_values: usize,
    pages: Pages,
    page: Vec<u8>,
    rows: u64,
    absent: u64,
    least: i64,
    greatest: i64,
}

/// The values of the open page, and the dictionary.
enum Content {
    Addresses {
        dictionary: AddressDictionary,
        indices: Vec<u32>,
        /// Number of distinct addresses in earlier pages.
        known: usize,
    },
    Texts {
        page: PageTexts,
        bounds: Bounds,
        dictionary: AddressDictionary,
    },
    Numbers {
        dictionary: NumberDictionary,
        indices: Vec<u32>,
        may_leave: bool,
    },
    Deltas {
        values: Vec<i64>,
        dictionary: Option<NumberDictionary>,
    },
}

impl FlatChunk {
    pub(crate) fn new(leaf: &Leaf, descriptor: ColumnDescPtr) -> Self {
        let column = &leaf.column;
        let content = match column.kind {
            ColumnKind::Address => Content::Addresses {
                dictionary: AddressDictionary::new(),
                indices: Vec::with_capacity(PAGE_VALUES),
                known: 0,
            },
            ColumnKind::TimestampNs => Content::Deltas {
                values: Vec::new(),
                dictionary: None,
            },
            kind => Content::Numbers {
                dictionary: NumberDictionary::new(),
                indices: Vec::with_capacity(PAGE_VALUES),
                may_leave: kind != ColumnKind::Mac,
            },
        };
        Self {
            kind: column.kind,
            unit: match leaf.form {
                Form::Micros => 1_000,
                _ => 1,
            },
            nullable: column.nullable,
            descriptor,
            content,
            levels: Vec::new(),
            page_values: 0,
            pages: Pages::new(),
            page: Vec::new(),
            rows: 0,
            absent: 0,
            least: i64::MAX,
            greatest: i64::MIN,
        }
    }

    /// Encodes the values of `rows` of a batch's column; `compressor` is used when a page is full.
    pub(crate) fn write(
        &mut self,
        values: &Values,
        mut rows: Range<usize>,
        compressor: &mut Compressor,
    ) -> Result<()> {
        while !rows.is_empty() {
            let end = rows.end.min(rows.start + PAGE_VALUES - self.page_values);
            let part = rows.start..end;
            let valid = if values.valid.is_empty() {
                &[][..]
            } else {
                &values.valid[part.clone()]
            };
            self.push_levels(valid, part.len());
            match &values.data {
                ValueData::Address(values) => self.push_addresses(&values[part], valid),
                ValueData::Unsigned(values) => self.push_numbers(&values[part], valid),
                _ => unreachable!("floats, lists and texts are encoded by the library"),
            }
            rows.start = end;
            if self.page_values == PAGE_VALUES {
                self.end_page(compressor)?;
            }
        }
        Ok(())
    }

    /// Ends the chunk and returns its bytes.
    pub(crate) fn close(
        mut self,
        codec: Codec,
        compressor: &mut Compressor,
    ) -> Result<(Bytes, ColumnCloseResult)> {
        self.end_page(compressor)?;
        let (dictionary, statistics) = self.summary();
        let dictionary = dictionary.filter(|_| self.pages.use_dictionary());
        let ending = Ending {
            dictionary,
            statistics,
            rows: self.rows,
        };
        self.pages.close(ending, self.descriptor, codec, compressor)
    }

    fn push_levels(&mut self, valid: &[bool], rows: usize) {
        self.page_values += rows;
        self.rows += rows as u64;
        if self.nullable && valid.is_empty() {
            self.levels.resize(self.page_values, 1);
        } else if self.nullable {
            self.levels
                .extend(valid.iter().map(|&valid| u32::from(valid)));
            self.absent += valid.iter().filter(|&&valid| !valid).count() as u64;
        }
    }

    fn push_addresses(&mut self, values: &[IpAddr], valid: &[bool]) {
        if valid.is_empty() {
            return self.push_present_addresses(values.iter());
        }
        let there = values.iter().zip(valid).filter(|(_, valid)| **valid);
        self.push_present_addresses(there.map(|(address, _)| address));
    }

    fn push_present_addresses<'a>(&mut self, values: impl Iterator<Item = &'a IpAddr>) {
        match &mut self.content {
            Content::Addresses {
                dictionary,
                indices,
                ..
            } => indices.extend(values.map(|&address| dictionary.number(address))),
            Content::Texts { page, bounds, .. } => {
                for &address in values {
                    page.push(ADDRESS_TEXT_BYTES, bounds, |text| text.address(address));
                }
            }
            _ => unreachable!("the schema says that this column holds addresses"),
        }
    }

    fn push_numbers(&mut self, values: &[u64], valid: &[bool]) {
        if valid.is_empty() && self.unit == 1 {
            return self.push_present(values);
        }
        let there = (0..values.len()).filter(|&row| valid.get(row) != Some(&false));
        let there: Vec<u64> = there.map(|row| values[row] / self.unit).collect();
        self.push_present(&there);
    }

    fn push_present(&mut self, values: &[u64]) {
        let key = order_key(self.kind);
        for &value in values {
            self.least = self.least.min((value ^ key) as i64);
            self.greatest = self.greatest.max((value ^ key) as i64);
        }
        match &mut self.content {
            Content::Numbers {
                dictionary,
                indices,
                ..
            } => {
                indices.extend(values.iter().map(|&value| dictionary.number(value)));
            }
            Content::Deltas { values: page, .. } => {
                page.extend(values.iter().map(|&value| value as i64));
            }
            _ => unreachable!("the schema says that this column holds numbers"),
        }
    }

    fn end_page(&mut self, compressor: &mut Compressor) -> Result<()> {
        if self.page_values == 0 {
            return Ok(());
        }
        self.leave_dictionary();
        self.page.clear();
        if self.nullable {
            // The levels are preceded by their length in four bytes.
            self.page.extend_from_slice(&[0; 4]);
            hybrid(&mut self.page, &self.levels, 1);
            let length = self.page.len() as u32 - 4;
            self.page[..4].copy_from_slice(&length.to_le_bytes());
            self.levels.clear();
        }
        let (indices, distinct) = match &mut self.content {
            Content::Addresses {
                dictionary,
                indices,
                known,
            } => {
                *known = dictionary.values().len();
                (indices, dictionary.values().len())
            }
            Content::Numbers {
                dictionary,
                indices,
                ..
            } => (indices, dictionary.values().len()),
            Content::Texts { page, .. } => {
                page.end_page(&mut self.page);
                return self.push_page(Encoding::DELTA_LENGTH_BYTE_ARRAY, compressor);
            }
            Content::Deltas { values, .. } => {
                let narrow = self.descriptor.physical_type() == PhysicalType::INT32;
                delta(&mut self.page, values, narrow);
                values.clear();
                return self.push_page(Encoding::DELTA_BINARY_PACKED, compressor);
            }
        };
        let width = bits_of(distinct.saturating_sub(1) as u64).max(1);
        self.page.push(width as u8);
        hybrid(&mut self.page, indices, width);
        indices.clear();
        self.push_page(Encoding::RLE_DICTIONARY, compressor)
    }

    fn push_page(&mut self, encoding: Encoding, compressor: &mut Compressor) -> Result<()> {
        let count = mem::take(&mut self.page_values);
        self.pages.push(&self.page, count, encoding, compressor)
    }

    /// Stops using the dictionary if the open page has so many new values that the dictionary costs
    /// more than it saves.
    fn leave_dictionary(&mut self) {
        let present = self.rows - self.absent;
        match &mut self.content {
            Content::Numbers {
                dictionary,
                indices,
                may_leave: true,
            } if dictionary.values().len() as u64 * 8 > present => {
                let dictionary = mem::replace(dictionary, NumberDictionary::new());
                let number = |&index: &u32| dictionary.values()[index as usize] as i64;
                self.content = Content::Deltas {
                    values: indices.iter().map(number).collect(),
                    dictionary: Some(dictionary),
                };
            }
            // With 250,000 or more uniformly drawn addresses, 15 of 16 in a page are new. Each then
            // occurs at most four times in a row group, and a text takes about three times the
            // bytes of an index.
            Content::Addresses {
                dictionary,
                indices,
                known,
            } if indices.len() >= FEW_ADDRESSES
                && (dictionary.values().len() - *known) * 16 > indices.len() * 15 =>
            {
                let dictionary = mem::replace(dictionary, AddressDictionary::new());
                let (mut page, mut bounds) = (PageTexts::default(), Bounds::default());
                for &index in &*indices {
                    let address = dictionary.values()[index as usize];
                    page.push(ADDRESS_TEXT_BYTES, &mut bounds, |text| {
                        text.address(address)
                    });
                }
                self.content = Content::Texts {
                    page,
                    bounds,
                    dictionary,
                };
            }
            _ => {}
        }
    }

    /// The dictionary (number of values, and `PLAIN` bytes) and the statistics of the chunk.
    fn summary(&mut self) -> (Option<(u32, Vec<u8>)>, Statistics) {
        let absent = Some(self.absent);
        match &mut self.content {
            Content::Addresses { dictionary, .. } => {
                let mut bounds = Bounds::default();
                let bytes = addresses(dictionary, &mut bounds);
                let distinct = Some(u64::from(bytes.0));
                (Some(bytes), text_statistics(&bounds, distinct, absent))
            }
            Content::Texts {
                dictionary, bounds, ..
            } => {
                let bytes = addresses(dictionary, bounds);
                (Some(bytes), text_statistics(bounds, None, absent))
            }
            Content::Numbers { dictionary, .. } if self.kind == ColumnKind::Mac => {
                let mut bounds = Bounds::default();
                let values = dictionary.values();
                let bytes = plain(values, MAC_BYTES, &mut bounds, |text, &mac| text.mac(mac));
                let distinct = values.len() as u64;
                let statistics = text_statistics(&bounds, Some(distinct), absent);
                (Some((distinct as u32, bytes)), statistics)
            }
            Content::Numbers { dictionary, .. } => {
                let distinct = dictionary.values().len() as u64;
                let bytes = numbers(dictionary, self.descriptor.physical_type());
                (Some(bytes), self.number_statistics(Some(distinct)))
            }
            Content::Deltas { dictionary, .. } => {
                let physical_type = self.descriptor.physical_type();
                let bytes = dictionary
                    .as_ref()
                    .map(|dictionary| numbers(dictionary, physical_type));
                (bytes, self.number_statistics(None))
            }
        }
    }

    fn number_statistics(&self, distinct: Option<u64>) -> Statistics {
        let key = order_key(self.kind) as i64;
        let known = self.least <= self.greatest;
        let (least, greatest) = (self.least ^ key, self.greatest ^ key);
        let (least, greatest) = (known.then_some(least), known.then_some(greatest));
        if self.descriptor.physical_type() == PhysicalType::INT32 {
            let narrow = |value: Option<i64>| value.map(|value| value as i32);
            let (least, greatest) = (narrow(least), narrow(greatest));
            Statistics::int32(least, greatest, distinct, Some(self.absent), false)
        } else {
            Statistics::int64(least, greatest, distinct, Some(self.absent), false)
        }
    }
}

/// The number of values and the `PLAIN` bytes of a dictionary of numbers.
fn numbers(dictionary: &NumberDictionary, physical_type: PhysicalType) -> (u32, Vec<u8>) {
    let values = dictionary.values();
    let bytes = match physical_type {
        PhysicalType::INT32 => values
            .iter()
            .flat_map(|&value| (value as u32).to_le_bytes())
            .collect(),
        _ => values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect(),
    };
    (values.len() as u32, bytes)
}

/// The number of values and the `PLAIN` bytes of a dictionary of addresses; `bounds` is extended by
/// their texts.
fn addresses(dictionary: &AddressDictionary, bounds: &mut Bounds) -> (u32, Vec<u8>) {
    let values = dictionary.values();
    let write = |text: &mut Text, &address: &IpAddr| text.address(address);
    (
        values.len() as u32,
        plain(values, ADDRESS_TEXT_BYTES, bounds, write),
    )
}

fn text_statistics(bounds: &Bounds, distinct: Option<u64>, absent: Option<u64>) -> Statistics {
    let (least, greatest) = bounds.values();
    Statistics::byte_array(least, greatest, distinct, absent, false)
}

/// XORed with a value so that signed comparison gives the right order: inverts the top bit of
/// unsigned numbers. Times are signed in Parquet.
const fn order_key(kind: ColumnKind) -> u64 {
    match kind {
        ColumnKind::TimestampNs => 0,
        _ => 1 << 63,
    }
}
