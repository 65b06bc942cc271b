// SPDX-License-Identifier: Apache-2.0
//! The shape of a record: which of its values are present, and the families of its addresses.
//!
//! A template has exactly the fields that its records have: there are no placeholders for absent
//! values. So records of different shapes have different templates.

use std::net::IpAddr;

use turboflow_record::{Column, ColumnKind, FlowBatch, ValueData, Values};

/// Two bits for each address column (absent, IPv4, IPv6) and for TCP flags (absent, present,
/// present in one octet); one bit for each other nullable column (absent, present).
pub(super) type Shape = u128;

/// The positions of the bits of each column.
pub(super) struct Shapes {
    places: Vec<Place>,
    /// Whether the columns need more bits than a [`Shape`] has, in which case the remaining columns
    /// are not encoded.
    pub(super) overflows: bool,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    column: usize,
    shift: u32,
    aspect: Aspect,
}

/// What the bits of a column encode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Aspect {
    /// The address family.
    Family,
    /// Whether the value is present.
    Presence,
    /// Whether the value is present, and whether it fits in one octet.
    Width,
}

/// The part of a shape that is counted or numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Whole,
    /// Only the families of the addresses.
    Families,
}

/// The presence of a value in a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    Absent,
    V4,
    V6,
    /// Present, and not an address whose family the shape encodes.
    Present,
    /// Present, and the number fits in one octet.
    Narrow,
}

impl Shapes {
    /// Shapes for the columns that have a field according to `has_field`. Columns selected by
    /// `has_widths` use a field of one octet where that is sufficient.
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
            let (aspect, bits) = match kind {
                ColumnKind::Address => (Aspect::Family, 2),
                _ if has_widths(column) => (Aspect::Width, 2),
                _ if *nullable => (Aspect::Presence, 1),
                _ => continue,
            };
            if shift + bits > Shape::BITS {
                shapes.overflows = true;
                break;
            }
            shapes.places.push(Place {
                column,
                shift,
                aspect,
            });
            shift += bits;
        }
        shapes
    }

    /// Computes the shapes of all records of a batch.
    pub(super) fn of_batch(&self, batch: &FlowBatch, shapes: &mut Vec<Shape>) {
        shapes.clear();
        shapes.resize(batch.rows(), 0);
        for place in &self.places {
            let values = batch.column(place.column);
            let codes = shapes.iter_mut().enumerate();
            codes.for_each(|(row, shape)| *shape |= place.code(values, row) << place.shift);
        }
    }

    /// The presence of a column's value in a shape.
    pub(super) fn presence(&self, shape: Shape, column: usize) -> Presence {
        let Some(place) = self.places.iter().find(|place| place.column == column) else {
            return Presence::Present;
        };
        match (place.aspect, shape >> place.shift & 3) {
            (Aspect::Family, 1) => Presence::V4,
            (Aspect::Family, 2) => Presence::V6,
            (Aspect::Width, 2) => Presence::Narrow,
            (Aspect::Width, 1) => Presence::Present,
            (Aspect::Presence, code) if code & 1 == 1 => Presence::Present,
            _ => Presence::Absent,
        }
    }

    /// Number of values that the part can have, saturating.
    pub(super) fn count(&self, part: Part) -> u64 {
        let radices = self.places_of(part).map(Place::radix);
        radices.fold(1, u64::saturating_mul)
    }

    /// The part of a shape as a number below [`Shapes::count`].
    pub(super) fn index(&self, shape: Shape, part: Part) -> u64 {
        self.places_of(part).fold(0, |index, place| {
            let code = (shape >> place.shift) as u64 & place.mask();
            index.wrapping_mul(place.radix()).wrapping_add(code)
        })
    }

    fn places_of(&self, part: Part) -> impl Iterator<Item = &Place> {
        let all = part == Part::Whole;
        let places = self.places.iter();
        places.filter(move |place| all || place.aspect == Aspect::Family)
    }

    /// A shape with the address families of `shape` and all other nullable values absent.
    pub(super) fn family_only(&self, shape: Shape) -> Shape {
        let addresses = (self.places.iter()).filter(|place| place.aspect == Aspect::Family);
        addresses.fold(0, |kept, place| kept | (shape & 3 << place.shift))
    }
}

impl Place {
    /// Number of values that the bits can have.
    const fn radix(&self) -> u64 {
        match self.aspect {
            Aspect::Family | Aspect::Width => 3,
            Aspect::Presence => 2,
        }
    }

    const fn mask(&self) -> u64 {
        match self.aspect {
            Aspect::Family | Aspect::Width => 3,
            Aspect::Presence => 1,
        }
    }

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
                if self.aspect == Aspect::Width && numbers[row] <= u64::from(u8::MAX) =>
            {
                2
            }
            _ => 1,
        }
    }
}
