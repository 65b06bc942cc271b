// SPDX-License-Identifier: Apache-2.0
//! Numbers of templates: they follow from the definition and the shape of a record, and not from
//! the order in which shapes occur.
//!
//! A collector that takes two exporters for one, or one that has not noticed a restart, keeps
//! templates by their numbers. With numbers in order of occurrence it would read the records of one
//! exporter by a template of the other, without an error.

use turboflow_merge::fnv_1a;

use super::options::{APPLICATIONS, FIRST_FLOW_TEMPLATE};
use super::shape::{Part, Shape, Shapes};

/// How many numbers there are for templates of flow records.
const NUMBERS: u64 = (u16::MAX - FIRST_FLOW_TEMPLATE) as u64 + 1;

/// Without the last one, which the names of applications have.
const NUMBERS_BESIDE_APPLICATIONS: u64 = (APPLICATIONS - FIRST_FLOW_TEMPLATE) as u64;

/// Gives templates their numbers.
pub(super) struct TemplateIds {
    /// How many numbers there are.
    numbers: u64,
    /// The place of the definition's first number, so that numbers of two definitions seldom meet.
    start: u64,
    /// How many exact templates there may be; `None` where that is more than there are numbers.
    exact: Option<u64>,
    /// The numbers given where every shape cannot have its own.
    taken: Vec<u16>,
}

impl TemplateIds {
    /// Numbers for records whose template with all values present has these `fields`.
    pub(super) fn new(shapes: &Shapes, fields: &[u8], has_applications: bool) -> Self {
        let numbers = match has_applications {
            true => NUMBERS_BESIDE_APPLICATIONS,
            false => NUMBERS,
        };
        let exact = shapes.count(Part::Whole);
        let all = exact.saturating_add(shapes.count(Part::Families));
        Self {
            numbers,
            start: fnv_1a(fields),
            exact: (all <= numbers && !shapes.overflows).then_some(exact),
            taken: Vec::new(),
        }
    }

    /// The number of the template that is exact for `shape`, or of the one for all shapes with its
    /// address families, with these `fields`.
    pub(super) fn next(
        &mut self,
        shapes: &Shapes,
        shape: Shape,
        is_exact: bool,
        fields: &[u8],
    ) -> u16 {
        let place = match (self.exact, is_exact) {
            (Some(_), true) => shapes.index(shape, Part::Whole),
            (Some(exact), false) => exact + shapes.index(shape, Part::Families),
            // Two of the few templates of an exporter seldom meet. Then the later one moves on.
            (None, _) => return self.free(fnv_1a(fields)),
        };
        self.number(self.start.wrapping_add(place))
    }

    fn free(&mut self, mut place: u64) -> u16 {
        while self.taken.contains(&self.number(place)) {
            place = place.wrapping_add(1);
        }
        self.taken.push(self.number(place));
        self.number(place)
    }

    const fn number(&self, place: u64) -> u16 {
        FIRST_FLOW_TEMPLATE + (place % self.numbers) as u16
    }
}
