// SPDX-License-Identifier: Apache-2.0
//! Template ids, which are derived from the definition and the shape of a record rather than from
//! the order in which shapes occur.
//!
//! A collector that confuses two exporters, or has not noticed that one restarted, keeps templates
//! by their ids. If ids were assigned in order of occurrence, it would decode the records of one
//! exporter with a template of the other, without an error.

use turboflow_merge::fnv_1a;

use super::options::{APPLICATIONS, FIRST_FLOW_TEMPLATE};
use super::shape::{Part, Shape, Shapes};

/// How many ids there are for templates of flow records.
const NUMBERS: u64 = (u16::MAX - FIRST_FLOW_TEMPLATE) as u64 + 1;

/// How many ids there are without the last one, which the set of application names uses.
const NUMBERS_BESIDE_APPLICATIONS: u64 = (APPLICATIONS - FIRST_FLOW_TEMPLATE) as u64;

/// Assigns ids to templates.
pub(super) struct TemplateIds {
    /// How many ids there are.
    numbers: u64,
    /// Offset of the first id of the definition, so that the ids of two definitions rarely
    /// coincide.
    start: u64,
    /// How many exact templates there can be; `None` if there are more possible templates than ids.
    exact: Option<u64>,
    /// The ids in use, if not every shape can have an id of its own.
    taken: Vec<u16>,
}

impl TemplateIds {
    /// Assigns ids for the records whose template, with all values present, has these `fields`.
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

    /// The id of a template with these `fields`: the exact template of `shape`, or the one shared
    /// by all shapes with its address families.
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
            // The few ids of an exporter rarely collide. If they do, the later one moves on.
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
