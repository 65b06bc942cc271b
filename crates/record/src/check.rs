// SPDX-License-Identifier: Apache-2.0
//! Checks that a definition makes sense, whether it was parsed or built by code.

use crate::fault::{
    InvalidDefinition, MAX_EDGES, MAX_LIST, NamedInput, Place, is_identifier, shorten,
};
use crate::vocabulary::Operand;
use crate::{Definition, Fault, Feature, Input, InputSet, KeyField, Op};

/// Name of the last column of every record.
pub const END_REASON: &str = "end_reason";
/// Prefix of the columns for the reverse direction of a biflow.
pub const REVERSE: &str = "reverse_";

impl Definition {
    /// Checks key, names, operands and numbers.
    ///
    /// # Errors
    /// The first fault found.
    pub fn check(&self) -> Result<(), InvalidDefinition> {
        let invalid = |place, fault| InvalidDefinition::new(place, &self.features, fault);
        if self.key.is_empty() {
            return Err(invalid(Place::Key, Fault::EmptyKey));
        }
        for (index, field) in self.key.iter().enumerate() {
            check_field(&self.key[..index], *field)
                .map_err(|fault| invalid(Place::KeyField(index), fault))?;
        }
        if self.features.is_empty() {
            return Err(invalid(Place::Definition, Fault::NoFeatures));
        }
        for (index, feature) in self.features.iter().enumerate() {
            self.check_name(index)
                .and_then(|()| check_of(feature))
                .and_then(|()| check_tuple(&self.key, feature))
                .and_then(|()| check_numbers(&feature.op))
                .map_err(|(at, fault)| invalid(Place::Feature(index, at), fault))?;
        }
        Ok(())
    }

    /// Checks that an engine that sees only `available` can fill every field and feature. `engine`
    /// is its name in error messages.
    ///
    /// # Errors
    /// The first field or feature that needs an input the engine cannot see.
    pub fn check_inputs(&self, available: InputSet, engine: &str) -> Result<(), InvalidDefinition> {
        let unseen = |place, input: Input| {
            let engine = engine.to_owned();
            let input_name = input.name();
            let fault = if input.is_inspected() {
                Fault::NotInspected {
                    engine,
                    input: input_name,
                }
            } else if input.is_decided() {
                Fault::NotDecided {
                    engine,
                    input: input_name,
                }
            } else {
                Fault::Unseen {
                    engine,
                    input: input_name,
                    seen: available.names(),
                }
            };
            InvalidDefinition::new(place, &self.features, fault)
        };
        for (index, field) in self.key.iter().enumerate() {
            match field.input() {
                Some(input) if !available.contains(input) => {
                    return Err(unseen(Place::KeyField(index), input));
                }
                _ => {}
            }
        }
        for (index, feature) in self.features.iter().enumerate() {
            for input in feature.inputs().iter() {
                if !available.contains(input) {
                    return Err(unseen(Place::Feature(index, "of"), input));
                }
            }
        }
        Ok(())
    }

    /// Every input that the key or a feature needs, including those of [`Packet`](crate::Packet).
    #[must_use]
    pub fn inputs(&self) -> InputSet {
        let of_key: InputSet = self.key.iter().filter_map(|field| field.input()).collect();
        self.features
            .iter()
            .fold(of_key, |set, feature| set.union(feature.inputs()))
    }

    fn check_name(&self, index: usize) -> Result<(), (&'static str, Fault)> {
        let name = self.features[index].name.as_str();
        if !is_identifier(name) {
            return Err(("name", Fault::BadName(shorten(name))));
        }
        let taken = |by| Err(("name", Fault::TakenName(name.to_owned(), by)));
        if name == END_REASON {
            return taken("the column that says why the record ended");
        }
        if name.starts_with(REVERSE) {
            return taken("biflow, whose columns of the other direction begin with `reverse_`");
        }
        if self.key.iter().any(|field| field.column_name() == name) {
            return taken("a column of the key");
        }
        if self.features[..index]
            .iter()
            .any(|other| other.name == name)
        {
            return taken("another feature");
        }
        Ok(())
    }
}

impl Feature {
    /// The inputs that an engine must see so that this feature can be filled.
    fn inputs(&self) -> InputSet {
        if self.op == Op::CommunityId {
            // For the ICMP type, which replaces the ports.
            return InputSet::of(&[Input::IcmpType, Input::IcmpCode]);
        }
        let timed = self.op.over_gaps().is_some() || matches!(self.op, Op::Duration | Op::Rate);
        let time = if timed { Some(Input::Timestamp) } else { None };
        let of = match self.of {
            Some(Input::Gap) => Some(Input::Timestamp),
            Some(Input::Direction) | None => None,
            Some(input) => Some(input),
        };
        time.into_iter().chain(of).collect()
    }
}

fn check_field(before: &[KeyField], field: KeyField) -> Result<(), Fault> {
    if before.contains(&field) {
        return Err(Fault::RepeatedField(field.name()));
    }
    match field {
        KeyField::Input(input) if !KeyField::INPUTS.contains(&input) => {
            Err(Fault::NotInKey(input.name()))
        }
        _ => Ok(()),
    }
}

fn check_of(feature: &Feature) -> Result<(), (&'static str, Fault)> {
    let op = feature.op.name();
    match (feature.op.operand(), feature.of) {
        (Operand::Needed, None) => Err(("op", Fault::MissingOf(op))),
        (Operand::Needless, Some(_)) => Err(("of", Fault::Needless { key: "of", op })),
        (_, Some(input)) if !feature.op.suits(input.meaning()) => Err((
            "op",
            Fault::Senseless {
                op,
                input: NamedInput(input),
            },
        )),
        _ => Ok(()),
    }
}

/// Community IDs are computed from addresses, ports and protocol, and results of inspection are
/// found by them, so all of these must be in the key.
fn check_tuple(key: &[KeyField], feature: &Feature) -> Result<(), (&'static str, Fault)> {
    let mut needed = KeyField::FIVE_TUPLE.into_iter();
    let Some(lacks) = needed.find(|field| !key.contains(field)) else {
        return Ok(());
    };
    match feature
        .of
        .filter(|input| InputSet::INSPECTED.contains(*input))
    {
        _ if feature.op == Op::CommunityId => Err(("op", Fault::NoTuple(lacks.name()))),
        Some(input) => Err((
            "of",
            Fault::NoTupleToInspect {
                input: input.name(),
                lacks: lacks.name(),
            },
        )),
        None => Ok(()),
    }
}

fn check_numbers(op: &Op) -> Result<(), (&'static str, Fault)> {
    match op {
        Op::Nth { k } | Op::List { k } if !(1..=MAX_LIST).contains(k) => Err((
            "k",
            Fault::BadK {
                k: k.to_string(),
                op: op.name(),
            },
        )),
        Op::Histogram { edges } => check_edges(edges).map_err(|fault| ("edges", fault)),
        _ => Ok(()),
    }
}

fn check_edges(edges: &[u64]) -> Result<(), Fault> {
    if !(1..=MAX_EDGES).contains(&edges.len()) {
        return Err(Fault::BadEdges(edges.len()));
    }
    match edges.windows(2).find(|pair| pair[0] >= pair[1]) {
        Some(pair) => Err(Fault::FallingEdges {
            previous: pair[0],
            next: pair[1],
        }),
        None => Ok(()),
    }
}
