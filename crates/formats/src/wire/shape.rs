// SPDX-License-Identifier: Apache-2.0
//! What a record has: which of its values are there, and of which family its addresses are.
//!
//! A template names exactly the values that its records have: no field ever holds a stand-in for
//! an absent value. So records of different shapes have different templates.

use std::net::IpAddr;

use turboflow_record::{Column, ColumnKind, FlowBatch, ValueData, Values};

/// Two bits for every column of addresses (absent, IPv4, IPv6) and of TCP flags (absent, there, in
/// one octet), one for every other nullable column (absent, there).
pub(super) type Shape = u128;

/// Where the bits of each column are.
pub(super) struct Shapes {
    places: Vec<Place>,
    /// Whether the columns do not fit in a [`Shape`]: then those left over are never told apart.
    pub(super) overflows: bool,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    column: usize,
    shift: u32,
    told: Told,
}

/// What the bits of a column tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    /// Its family.
    Family,
    /// Whether it is there.
    Presence,
    /// Whether it is there, and fits one octet.
    Width,
}

/// A value as the shape tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    Absent,
    V4,
    V6,
    /// No address, and there.
    There,
    /// There, and its number fits one octet.
    Narrow,
}

impl Shapes {
    /// Of the columns that `has_field` says have a field at all; fields of those that `has_widths`
    /// names are one octet long where that is enough.
    pub(super) fn new(
        schema: &[Column],
        has_field: impl Fn(usize) -> bool,
        has_widths: impl Fn(usize) -> bool,
    ) -> Self {
        let mut shapes = Self {
            places: Vec::new(),
            overflows: false,
        };
        let mut shift = 0;
        for (column, Column { kind, nullable, .. }) in schema.iter().enumerate() {
            if !has_field(column) {
                continue;
            }
            let (told, bits) = match kind {
                ColumnKind::Address => (Told::Family, 2),
                _ if has_widths(column) => (Told::Width, 2),
                _ if *nullable => (Told::Presence, 1),
                _ => continue,
            };
            if shift + bits > Shape::BITS {
                shapes.overflows = true;
                break;
            }
            shapes.places.push(Place {
                column,
                shift,
                told,
            });
            shift += bits;
        }
        shapes
    }

    /// The shapes of all records of a batch.
    pub(super) fn of_batch(&self, batch: &FlowBatch, shapes: &mut Vec<Shape>) {
        shapes.clear();
        shapes.resize(batch.rows(), 0);
        for place in &self.places {
            let values = batch.column(place.column);
            let codes = shapes.iter_mut().enumerate();
            codes.for_each(|(row, shape)| *shape |= place.code(values, row) << place.shift);
        }
    }

    /// What the shape says of a column.
    pub(super) fn presence(&self, shape: Shape, column: usize) -> Presence {
        let Some(place) = self.places.iter().find(|place| place.column == column) else {
            return Presence::There;
        };
        match (place.told, shape >> place.shift & 3) {
            (Told::Family, 1) => Presence::V4,
            (Told::Family, 2) => Presence::V6,
            (Told::Width, 2) => Presence::Narrow,
            (Told::Width, 1) => Presence::There,
            (Told::Presence, code) if code & 1 == 1 => Presence::There,
            _ => Presence::Absent,
        }
    }

    /// The shape with the addresses of this one, and every other nullable value absent.
    pub(super) fn family_only(&self, shape: Shape) -> Shape {
        let addresses = (self.places.iter()).filter(|place| place.told == Told::Family);
        addresses.fold(0, |kept, place| kept | (shape & 3 << place.shift))
    }
}

impl Place {
    #[inline]
    fn code(&self, values: &Values, row: usize) -> Shape {
        if values.valid.get(row) == Some(&false) {
            return 0;
        }
        match &values.data {
            ValueData::Address(addresses) => match addresses[row] {
                IpAddr::V4(_) => 1,
                IpAddr::V6(_) => 2,
            },
            ValueData::Unsigned(numbers)
                if self.told == Told::Width && numbers[row] <= u64::from(u8::MAX) =>
            {
                2
            }
            _ => 1,
        }
    }
}
