// SPDX-License-Identifier: Apache-2.0
//! Keys of older files without sections, which were named like the flags of `turboflow record`.
//! Moves each to its section.

use std::borrow::Cow;
use std::ops::Range;
use std::path::PathBuf;

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer};
use turboflow_formats::Format;
use turboflow_run::OutputConfig;

use super::places::Places;
use super::{FileError, OUTPUTS, Source};
use crate::keys::{Key, OUTPUT, is_section};
use crate::record;

/// An old key with its value.
pub(super) struct OldKey<'i> {
    key: Key,
    at: Range<usize>,
    value: Spanned<DeValue<'i>>,
}

/// Removes the old keys from a file. Returns them in the order of lines.
pub(super) fn take<'i>(
    source: Source<'_>,
    root: &mut DeTable<'i>,
) -> Result<Vec<OldKey<'i>>, FileError> {
    let mut taken = Vec::new();
    for (name, value) in std::mem::take(root) {
        let is_section = is_section(name.get_ref())
            && matches!(value.get_ref(), DeValue::Table(_) | DeValue::Array(_));
        match Key::from_flag(name.get_ref()) {
            Some(Key::Files) | None => drop(root.insert(name, value)),
            // `engine` is both a section and an old key.
            Some(_) if is_section => drop(root.insert(name, value)),
            Some(key) => taken.push(OldKey {
                key,
                at: name.span(),
                value: translated(source, key, name.span(), value)?,
            }),
        }
    }
    taken.sort_by_key(|old| old.at.start);
    Ok(taken)
}

/// Converts the value to its present form.
fn translated<'i>(
    source: Source<'_>,
    key: Key,
    at: Range<usize>,
    value: Spanned<DeValue<'i>>,
) -> Result<Spanned<DeValue<'i>>, FileError> {
    let span = value.span();
    let value = match (key, value.into_inner()) {
        (key, DeValue::Boolean(flag)) if key.is_inverted() => DeValue::Boolean(!flag),
        (key, _) if key.is_inverted() => {
            let what = format!("`{}` takes true or false", key.flag());
            return Err(source.wrong(&at, what));
        }
        // The words of one expression.
        (Key::Filter, DeValue::Array(words)) => {
            let words = words.iter().filter_map(|word| word.get_ref().as_str());
            let joined = words.collect::<Vec<_>>().join(" ");
            DeValue::String(Cow::Owned(joined))
        }
        (_, value) => value,
    };
    Ok(Spanned::new(span, value))
}

/// Puts the old keys into their sections. Returns the line and new name of each.
pub(super) fn put<'i>(
    source: Source<'_>,
    old: Vec<OldKey<'i>>,
    root: &mut DeTable<'i>,
    places: &mut Places,
) -> Result<Vec<(usize, String)>, FileError> {
    let mut renamed = Vec::new();
    let (write, rest): (Vec<_>, Vec<_>) = old.into_iter().partition(|old| old.key == Key::To);
    let (shared, own): (Vec<_>, Vec<_>) = rest
        .into_iter()
        .partition(|old| old.key.section() == OUTPUT);
    for old in write {
        renamed.push((source.line(&old.at), new_name(old.key)));
        places.add_old(old.key, old.value.span());
        put_outputs(source, old, root)?;
    }
    for old in own {
        renamed.push((source.line(&old.at), new_name(old.key)));
        places.add_old(old.key, old.value.span());
        put_value(source, old, root)?;
    }
    let format = shared.iter().find(|old| old.key == Key::Format);
    let format = format.and_then(|old| old.value.get_ref().as_str()?.parse().ok());
    for old in shared {
        renamed.push((source.line(&old.at), new_name(old.key)));
        places.add_old(old.key, old.value.span());
        share(source, &old, format, root)?;
    }
    renamed.sort_unstable();
    Ok(renamed)
}

fn new_name(key: Key) -> String {
    let inverted = match key.is_inverted() {
        true => ", with the opposite value",
        false => "",
    };
    let (old, new) = (key.flag(), key.name());
    format!("\"{old}\" is now \"{new}\" in {}{inverted}", key.header())
}

fn both(source: Source<'_>, old: &OldKey<'_>) -> FileError {
    let (flag, key) = (old.key.flag(), old.key.in_file());
    let what = format!("`{flag}` and {key} say the same thing; leave out `{flag}`");
    source.wrong(&old.at, what)
}

fn put_value<'i>(
    source: Source<'_>,
    old: OldKey<'i>,
    root: &mut DeTable<'i>,
) -> Result<(), FileError> {
    let mut table = root;
    for section in old.key.section().split('.') {
        let name = Spanned::new(old.at.clone(), Cow::Borrowed(section));
        if !table.contains_key(section) {
            let empty = DeValue::Table(DeTable::new());
            table.insert(name, Spanned::new(old.at.clone(), empty));
        }
        table = match table.get_mut(section).map(Spanned::get_mut) {
            Some(DeValue::Table(inner)) => inner,
            _ => return Err(source.wrong(&old.at, format!("[{section}] is not a section"))),
        };
    }
    if table.contains_key(old.key.name()) {
        return Err(both(source, &old));
    }
    let name = Spanned::new(old.at, Cow::Borrowed(old.key.name()));
    table.insert(name, old.value);
    Ok(())
}

/// The old key `write`: one output for each of its values.
fn put_outputs<'i>(
    source: Source<'_>,
    old: OldKey<'i>,
    root: &mut DeTable<'i>,
) -> Result<(), FileError> {
    let (at, span) = (old.at, old.value.span());
    let values = match old.value.into_inner() {
        DeValue::Array(values) => values.into_iter().collect(),
        value => vec![Spanned::new(span, value)],
    };
    if values.is_empty() {
        let what = format!("`{}` is empty; write for example {OUTPUTS}", old.key.flag());
        return Err(source.wrong(&at, what));
    }
    for value in values {
        if !matches!(value.get_ref(), DeValue::String(_)) {
            let what = format!("`{}` takes text, or a list of texts in [ ]", old.key.flag());
            return Err(source.wrong(&at, what));
        }
        let mut output = DeTable::new();
        let span = value.span();
        output.insert(
            Spanned::new(at.clone(), Cow::Borrowed(Key::To.name())),
            value,
        );
        outputs_of(root, &at).push(Spanned::new(span, DeValue::Table(output)));
    }
    Ok(())
}

fn outputs_of<'a, 'i>(
    root: &'a mut DeTable<'i>,
    at: &Range<usize>,
) -> &'a mut toml::de::DeArray<'i> {
    if !root.contains_key(OUTPUT) {
        let name = Spanned::new(at.clone(), Cow::Borrowed(OUTPUT));
        let empty = DeValue::Array(toml::de::DeArray::new());
        root.insert(name, Spanned::new(at.clone(), empty));
    }
    match root.get_mut(OUTPUT).map(Spanned::get_mut) {
        Some(DeValue::Array(outputs)) => outputs,
        _ => unreachable!("the names were checked, or it was just put there"),
    }
}

/// Checks a value, whether an output uses it or not. Returns whether it differs from the default.
fn check_value(source: Source<'_>, old: &OldKey<'_>) -> Result<bool, FileError> {
    let mut alone = DeTable::new();
    let name = Spanned::new(old.at.clone(), Cow::Borrowed(old.key.name()));
    alone.insert(name, old.value.clone());
    let alone = Spanned::new(old.at.clone(), alone);
    let checked = OutputConfig::deserialize(Deserializer::from(alone));
    let differs = checked.map(|output| output != OutputConfig::default());
    differs.map_err(|error| {
        let what = format!("`{}`: {}", old.key.flag(), super::plain(error.message()));
        source.wrong(&old.at, what)
    })
}

/// Applies an option for all outputs to each output that it fits.
fn share<'i>(
    source: Source<'_>,
    old: &OldKey<'i>,
    format: Option<Format>,
    root: &mut DeTable<'i>,
) -> Result<(), FileError> {
    let (mut write, differs) = (Vec::new(), check_value(source, old)?);
    for output in outputs_of(root, &old.at).iter_mut() {
        let DeValue::Table(output) = output.get_mut() else {
            continue;
        };
        let to = output
            .get(Key::To.name())
            .and_then(|to| to.get_ref().as_str());
        let to = PathBuf::from(to.unwrap_or_default());
        let own_format = output.get(Key::Format.name());
        let own_format = own_format.and_then(|its| its.get_ref().as_str()?.parse().ok());
        let is_concerned = record::applies_to(old.key, &to, own_format.or(format), true);
        write.push(to);
        if !is_concerned {
            continue;
        }
        if output.contains_key(old.key.name()) {
            return Err(both(source, old));
        }
        let name = Spanned::new(old.at.clone(), Cow::Borrowed(old.key.name()));
        output.insert(name, old.value.clone());
    }
    if !differs {
        return Ok(());
    }
    let checked = record::check_use(old.key, format, &write, true);
    checked.map_err(|error| source.wrong(&old.at, error.to_string()))
}
