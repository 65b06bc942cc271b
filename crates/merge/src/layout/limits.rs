// SPDX-License-Identifier: Apache-2.0
//! Checks whether a definition can be laid out, with or without biflows.

use super::{
    KeyPlan, MOST_STATE_WORDS, STATE_WORDS, WORDS_WIDE, Words, counterpart, feature_columns,
};
use turboflow_record::{Definition, Fault, Input, InvalidDefinition, KeyField, Place};

/// Checks that features of a direction are used in biflows only, and that the key of a biflow is
/// symmetric.
pub(super) fn check_directions(
    definition: &Definition,
    biflow: bool,
) -> Result<(), InvalidDefinition> {
    let invalid = |place, fault| Err(InvalidDefinition::new(place, &definition.features, fault));
    if biflow {
        return match pairs(&definition.key) {
            Ok(()) => Ok(()),
            Err((place, fault)) => invalid(place, fault),
        };
    }
    let mut features = definition.features.iter();
    match features.position(|feature| feature.of == Some(Input::Direction)) {
        Some(index) => invalid(Place::Feature(index, "of"), Fault::DirectionOfUniflow),
        None => Ok(()),
    }
}

/// Checks that the key of a biflow has both ends of every pair.
fn pairs(key: &[KeyField]) -> Result<(), (Place, Fault)> {
    let mut ends = 0;
    for (index, field) in key.iter().enumerate() {
        let Some(other) = counterpart(*field) else {
            continue;
        };
        if !key.contains(&other) {
            let (has, lacks) = (field.name(), other.name());
            return Err((Place::KeyField(index), Fault::HalfPair { has, lacks }));
        }
        ends += 1;
    }
    match ends {
        0 => Err((Place::Key, Fault::NoPair)),
        _ => Ok(()),
    }
}

/// The key plan of a definition, if its key fits.
pub(super) fn check_key(definition: &Definition) -> Result<KeyPlan, InvalidDefinition> {
    let fields = &definition.key;
    KeyPlan::new(fields).ok_or_else(|| {
        let fits = |count: &usize| KeyPlan::new(&fields[..*count]).is_some();
        let index = (1..=fields.len()).take_while(fits).count();
        let fault = Fault::KeyTooLarge {
            room: 8 * WORDS_WIDE,
        };
        InvalidDefinition::new(Place::KeyField(index), &definition.features, fault)
    })
}

/// The state size of the smallest record with room for `needed` words.
pub(super) fn check_size(
    definition: &Definition,
    biflow: bool,
    needed: usize,
) -> Result<usize, InvalidDefinition> {
    let size = STATE_WORDS.into_iter().find(|size| *size >= needed);
    size.ok_or_else(|| {
        let fault = Fault::TooLarge {
            needed,
            room: MOST_STATE_WORDS,
        };
        let place = Place::Feature(first_without_room(definition, biflow), "op");
        InvalidDefinition::new(place, &definition.features, fault)
    })
}

/// The index of the first feature for which there is no room.
fn first_without_room(definition: &Definition, biflow: bool) -> usize {
    let fits = |count: &usize| {
        let features = definition.features[..*count].to_vec();
        let key = definition.key.clone();
        let mut words = Words::default();
        feature_columns(&Definition { key, features }, biflow, &mut words);
        words.count() <= MOST_STATE_WORDS
    };
    // Counts up from 1: a few features fill a record, while a file may have thousands.
    (1..=definition.features.len()).take_while(fits).count()
}
