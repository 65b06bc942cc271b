// SPDX-License-Identifier: Apache-2.0
//! The keys of a configuration: the options of `turboflow record`, asked of its own command line, so
//! that no key can be missing and none can mean something else.

use clap::{Arg, ArgAction, Args, Command};

use crate::record::RecordArgs;

/// Options that mean nothing for a service.
const NO_KEYS: [&str; 1] = ["read"];

/// Defaults of a service where `turboflow record` has others.
pub(super) const SERVICE_DEFAULTS: [(&str, &str); 1] = [("metrics", "127.0.0.1:9414")];

/// `turboflow record`, as its command line is declared.
pub(super) fn record_command() -> Command {
    RecordArgs::augment_args(Command::new("record"))
        .no_binary_name(true)
        // What it is of interfaces, and a service has no others.
        .mut_args(|arg| match arg.get_id() == "threads" {
            true => arg.default_value("1"),
            false => arg,
        })
}

/// The name of an option's key; `None` for those that have none.
pub(super) fn key_of(arg: &Arg) -> Option<&str> {
    let positional = || arg.is_positional().then(|| arg.get_id().as_str());
    let name = arg.get_long().or_else(positional)?;
    (!NO_KEYS.contains(&name)).then_some(name)
}

/// What may stand behind a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    /// `true` or `false`.
    Flag,
    /// Text or a number, or a list of them.
    Several,
    /// Text or a number.
    One,
    /// Text, or `true` for the value that the option has alone.
    OneOrTrue,
}

impl Takes {
    pub(super) fn of(arg: &Arg) -> Self {
        let may_be_alone = arg
            .get_num_args()
            .is_some_and(|count| count.min_values() == 0);
        match arg.get_action() {
            ArgAction::SetTrue => Self::Flag,
            ArgAction::Append => Self::Several,
            _ if may_be_alone => Self::OneOrTrue,
            _ => Self::One,
        }
    }

    pub(super) const fn in_words(self) -> &'static str {
        match self {
            Self::Flag => "true or false",
            Self::Several => "text, or a list of texts in [ ]",
            Self::One => "text in quotes, or a whole number",
            Self::OneOrTrue => "text in quotes, true or false",
        }
    }
}

/// The default of a key, as text; `None` where the key is left out by default.
pub(super) fn default_of(arg: &Arg) -> Option<String> {
    let key = key_of(arg)?;
    let own = SERVICE_DEFAULTS.iter().find(|(name, _)| *name == key);
    let declared = || arg.get_default_values().first()?.to_str();
    own.map(|(_, value)| *value)
        .or_else(declared)
        .map(str::to_owned)
}

/// The key that was probably meant.
pub(super) fn nearest<'a>(wrong: &str, keys: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let near = keys.map(|key| (edits(wrong, key), key)).min()?;
    (near.0 <= 1 + wrong.len() / 4).then_some(near.1)
}

/// How many letters must be put in, taken out or replaced (Levenshtein's distance).
fn edits(from: &str, to: &str) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (index, letter) in from.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], index + 1);
        for (column, other) in to.bytes().enumerate() {
            let replaced = diagonal + usize::from(letter != other);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_key_that_was_meant() {
        let keys = || ["idle-timeout", "active-timeout", "linger", "write"].into_iter();
        assert_eq!(nearest("idel-timeout", keys()), Some("idle-timeout"));
        assert_eq!(nearest("idle_timeout", keys()), Some("idle-timeout"));
        assert_eq!(nearest("colour", keys()), None);
        assert_eq!(edits("kitten", "sitting"), 3);
    }
}
