// SPDX-License-Identifier: Apache-2.0
//! What a record has: which of its values are there, and of which family its addresses are.
//!
//! A template names exactly the values that its records have: no field ever holds a stand-in for
//! an absent value. So records of different shapes have different templates.

use std::net::IpAddr;

use turboflow_record::{Column, ColumnKind, FlowBatch, ValueData, Values};

/// Two bits for every column of addresses (absent, IPv4, IPv6), one for every other nullable
/// column (absent, there).
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
    is_address: bool,
}

/// A value as the shape tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    Absent,
    V4,
    V6,
    /// No address, and there.
    There,
}

impl Shapes {
    /// Of the columns that `is_told` says have a field at all.
    pub(super) fn new(schema: &[Column], is_told: impl Fn(usize) -> bool) -> Self {
        let mut shapes = Self {
            places: Vec::new(),
            overflows: false,
        };
        let mut shift = 0;
        for (column, Column { kind, nullable, .. }) in schema.iter().enumerate() {
            if !is_told(column) {
                continue;
            }
            let is_address = *kind == ColumnKind::Address;
            let bits = match (is_address, nullable) {
                (true, _) => 2,
                (false, true) => 1,
                (false, false) => continue,
            };
            if shift + bits > Shape::BITS {
                shapes.overflows = true;
                break;
            }
            shapes.places.push(Place {
                column,
                shift,
                is_address,
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
        match (place.is_address, shape >> place.shift & 3) {
            (true, 1) => Presence::V4,
            (true, 2) => Presence::V6,
            (false, code) if code & 1 == 1 => Presence::There,
            _ => Presence::Absent,
        }
    }

    /// The shape with the addresses of this one, and every other nullable value absent.
    pub(super) fn family_only(&self, shape: Shape) -> Shape {
        let addresses = self.places.iter().filter(|place| place.is_address);
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
            _ => 1,
        }
    }
}
