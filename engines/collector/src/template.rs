// SPDX-License-Identifier: Apache-2.0
//! Templates (RFC 7011, section 3.4; RFC 3954, sections 5.2 and 6.1), as steps for reading a
//! record.

use turboflow_record::InputSet;

use crate::bytes::{split, two};
use crate::flow::Flow;
use crate::header::Version;
use crate::slot::Slot;

/// The length in a template that marks a value of variable length.
const VARIABLE: u16 = u16::MAX;
const ENTERPRISE_BIT: u16 = 1 << 15;
/// The first id of a template.
pub(crate) const FIRST_ID: u16 = 256;
/// Maximum number of fields of a template.
pub(crate) const MOST_FIELDS: usize = 512;

/// A number of octets, and where their value goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    slot: Slot,
    length: u16,
}

/// How the records of a template are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Template {
    steps: Box<[Step]>,
    /// Octets of the shortest record, at least one.
    shortest_bytes: usize,
    pub(crate) is_options: bool,
}

/// A template record: its id, and the template; `None` if it is withdrawn.
pub(crate) struct Learned {
    pub(crate) id: u16,
    pub(crate) template: Option<Template>,
}

/// Why no template can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// The set ends within it.
    Short,
    /// It has no fields of a length, or too many.
    Refused,
}

impl Template {
    /// Takes the next template record of a set; `None` at its end, which may be padded.
    pub(crate) fn next(
        rest: &mut &[u8],
        version: Version,
        is_options: bool,
        wanted: InputSet,
    ) -> Option<Result<Learned, Unreadable>> {
        let (id, count) = (two(rest, 0)?, two(rest, 2)?);
        if id < FIRST_ID && count != 0 {
            return None;
        }
        *rest = &rest[4..];
        if count == 0 && version == Version::Ipfix {
            return Some(Ok(Learned { id, template: None }));
        }
        Some(Self::read(rest, id, count, version, is_options, wanted))
    }

    fn read(
        rest: &mut &[u8],
        id: u16,
        count: u16,
        version: Version,
        is_options: bool,
        wanted: InputSet,
    ) -> Result<Learned, Unreadable> {
        // NetFlow v9 gives the octets of the scope fields and of the other fields.
        let is_v9 = version == Version::Netflow9;
        let (fields, scopes) = match (is_options, is_v9) {
            (false, _) => (usize::from(count), 0),
            (true, true) => {
                let others = two(rest, 0).ok_or(Unreadable::Short)?;
                *rest = &rest[2..];
                let scopes = usize::from(count) / 4;
                (scopes + usize::from(others) / 4, scopes)
            }
            (true, false) => {
                split(rest, 2).ok_or(Unreadable::Short)?;
                (usize::from(count), 0)
            }
        };
        let mut steps = Vec::with_capacity(fields.min(MOST_FIELDS));
        let mut shortest_bytes = 0;
        for at in 0..fields {
            let field = split(rest, 4).ok_or(Unreadable::Short)?;
            let (id, length) = (
                u16::from_be_bytes([field[0], field[1]]),
                u16::from_be_bytes([field[2], field[3]]),
            );
            let enterprise = match is_v9 || id & ENTERPRISE_BIT == 0 {
                true => None,
                false => {
                    let number = split(rest, 4).ok_or(Unreadable::Short)?;
                    Some(
                        number
                            .iter()
                            .fold(0, |sum, octet| sum << 8 | u32::from(*octet)),
                    )
                }
            };
            // NetFlow v9 has its own numbers for scopes.
            let slot = match at < scopes {
                true => Slot::Skip,
                false => Slot::of(enterprise, id & !ENTERPRISE_BIT, wanted),
            };
            let is_variable = length == VARIABLE && !is_v9;
            shortest_bytes += if is_variable { 1 } else { usize::from(length) };
            if at < MOST_FIELDS {
                push(&mut steps, slot, length, is_variable);
            }
        }
        if shortest_bytes == 0 || fields > MOST_FIELDS {
            return Err(Unreadable::Refused);
        }
        let template = Some(Self {
            steps: steps.into(),
            shortest_bytes,
            is_options,
        });
        Ok(Learned { id, template })
    }

    /// Number of fields that count against the limit.
    pub(crate) fn fields(&self) -> usize {
        self.steps.len()
    }

    /// Reads the next record of a set; false at its end, and where the record does not fit.
    #[inline(always)]
    pub(crate) fn read_record(&self, rest: &mut &[u8], flow: &mut Flow) -> bool {
        if rest.len() < self.shortest_bytes {
            return false;
        }
        flow.clear();
        for step in &self.steps {
            let mut length = usize::from(step.length);
            if step.length == VARIABLE {
                let Some(of_value) = variable_length(rest) else {
                    return false;
                };
                length = of_value;
            }
            let Some(octets) = split(rest, length) else {
                return false;
            };
            if step.length != VARIABLE || step.slot.takes(length) {
                flow.take(step.slot, octets);
            }
        }
        true
    }
}

/// Adds a field. Consecutive fields that are skipped become one step.
fn push(steps: &mut Vec<Step>, slot: Slot, length: u16, is_variable: bool) {
    let slot = match is_variable || slot.takes(usize::from(length)) {
        true => slot,
        false => Slot::Skip,
    };
    if let (Slot::Skip, false, Some(last)) = (slot, is_variable, steps.last_mut())
        && last.slot == Slot::Skip
        && last.length != VARIABLE
        && let Some(sum) = last.length.checked_add(length)
        && sum != VARIABLE
    {
        last.length = sum;
        return;
    }
    // A field of NetFlow v9 that claims the whole length of a datagram never fits one.
    let length = match length == VARIABLE && !is_variable {
        true => VARIABLE - 1,
        false => length,
    };
    steps.push(Step { slot, length });
}

/// The length of a value of variable length (RFC 7011, section 7).
fn variable_length(rest: &mut &[u8]) -> Option<usize> {
    match split(rest, 1)?[0] {
        u8::MAX => {
            let length = two(rest, 0)?;
            *rest = &rest[2..];
            Some(usize::from(length))
        }
        short => Some(usize::from(short)),
    }
}
