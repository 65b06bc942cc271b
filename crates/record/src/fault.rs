// SPDX-License-Identifier: Apache-2.0
//! What can be wrong with a definition, and how to mend it.

use thiserror::Error;

use crate::vocabulary::Operand;
use crate::{Feature, Input, KeyField, Op};

/// The most values that `list` keeps and `nth` counts to.
pub const MAX_LIST: usize = 256;
/// The most edges of a `histogram`.
pub const MAX_EDGES: usize = 255;
/// The longest name of a feature, in bytes.
pub const MAX_NAME_BYTES: usize = 64;

/// What is wrong, in words that say how to mend it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Fault {
    /// The text is no TOML.
    #[error("this is not TOML: {0}")]
    Syntax(String),
    /// A key of a table that means nothing here.
    #[error("unknown key `{key}`{}keys: {keys}", did_you_mean(key, keys.split(", ")))]
    UnknownKey {
        /// As written.
        key: String,
        /// Those that mean something.
        keys: &'static str,
    },
    /// An op that does not exist.
    #[error("unknown op `{0}`{hint}ops: {ops}", hint = did_you_mean(.0, Op::NAMES), ops = Op::NAMES.join(", "))]
    UnknownOp(String),
    /// An input that does not exist.
    #[error("unknown input `{0}`{hint}inputs: {inputs}", hint = did_you_mean(.0, input_names()), inputs = join(input_names()))]
    UnknownInput(String),
    /// A key field that does not exist.
    #[error("unknown field `{0}`{hint}fields: {fields}", hint = field_hint(.0), fields = join(field_names()))]
    UnknownField(String),
    /// An input that changes from packet to packet, in a key.
    #[error("`{0}` cannot be in a key; fields: {fields}", fields = join(field_names()))]
    NotInKey(&'static str),
    /// A `per` that is not known.
    #[error("unknown value `{0}` of `per`; write per = \"biflow\", or leave it out")]
    UnknownPer(String),
    /// Something that must be there is not.
    #[error("`{key}` is missing; write {example}")]
    Missing {
        /// The missing key.
        key: &'static str,
        /// How it could read.
        example: &'static str,
    },
    /// An op without its input.
    #[error("`of` is missing: op `{0}` needs an input, such as of = \"ip_length\"")]
    MissingOf(&'static str),
    /// Something that the op does not take.
    #[error("op `{op}` takes no `{key}`; remove it")]
    Needless {
        /// What to remove.
        key: &'static str,
        /// The op.
        op: &'static str,
    },
    /// A value of the wrong type.
    #[error("`{key}` is {found}; write {example}")]
    WrongType {
        /// The key.
        key: &'static str,
        /// What its value is.
        found: String,
        /// How it could read.
        example: &'static str,
    },
    /// A name that is no identifier.
    #[error(
        "bad name `{0}`; write a lower-case letter, then lower-case letters, digits and `_`, at most {MAX_NAME_BYTES} in all"
    )]
    BadName(String),
    /// A name that another column has.
    #[error("the name `{0}` is taken by {1}; choose another")]
    TakenName(String, &'static str),
    /// A field twice in the key.
    #[error("`{0}` is in the key twice; remove one")]
    RepeatedField(&'static str),
    /// A key of no fields.
    #[error(
        "the key has no fields; name at least one, or leave out the [key] table for the 5-tuple"
    )]
    EmptyKey,
    /// No features.
    #[error(
        "the definition has no features; add a [[feature]], such as name = \"packets\", op = \"count\""
    )]
    NoFeatures,
    /// A `k` out of range.
    #[error("`k` is {k}; op `{op}` takes 1 to {MAX_LIST}")]
    BadK {
        /// As written.
        k: String,
        /// The op.
        op: &'static str,
    },
    /// Edges that do not rise.
    #[error("`edges` must rise, but {next} follows {previous}")]
    FallingEdges {
        /// An edge.
        previous: u64,
        /// The edge after it.
        next: u64,
    },
    /// Too few or too many edges.
    #[error("`edges` has {0} numbers; give 1 to {MAX_EDGES}")]
    BadEdges(usize),
    /// An edge that is no number of 64 bits.
    #[error("`{0}` is no edge; write whole numbers from 0 to 18446744073709551615")]
    BadEdge(String),
    /// An op that says nothing about the input.
    #[error("op `{op}` makes no sense of `{input}`; ops that do: {suited}", suited = suited(*.input))]
    Senseless {
        /// The op.
        op: &'static str,
        /// The input.
        input: NamedInput,
    },
    /// Directions of a record that has one.
    #[error("`direction` exists in biflows only; add `flow.biflow` or remove it")]
    DirectionOfUniflow,
    /// A biflow's key needs both ends of what it has.
    #[error(
        "a biflow joins two ends, but `{has}` is in the key without `{lacks}`; add it, or leave out `flow.biflow`"
    )]
    HalfPair {
        /// The field of one end.
        has: &'static str,
        /// The field of the other.
        lacks: &'static str,
    },
    /// A biflow's key needs ends.
    #[error(
        "a biflow joins two ends, but the key has none; add source_address and destination_address, or leave out `flow.biflow`"
    )]
    NoPair,
    /// The fields of the key are more than a record has room for.
    #[error("no room for this one: the fields of a key have {room} bytes together; leave some out")]
    KeyTooLarge {
        /// Bytes of a key.
        room: usize,
    },
    /// The features need more state than a record has.
    #[error(
        "no room for this one: the features need {needed} words of state, {over} more than a record has ({room}); keep fewer or shorter lists and histograms",
        over = .needed.saturating_sub(*.room)
    )]
    TooLarge {
        /// Words that all features need.
        needed: usize,
        /// Words that a record has.
        room: usize,
    },
    /// An input that the engine cannot see.
    #[error("{engine} cannot see `{input}`; it sees: {seen}")]
    Unseen {
        /// The engine, in words.
        engine: String,
        /// What was asked for.
        input: &'static str,
        /// What it can see.
        seen: String,
    },
}

/// An input that prints as its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedInput(pub Input);

impl std::fmt::Display for NamedInput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.name())
    }
}

/// Which part of a definition is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The file as a whole.
    Definition,
    /// The key as a whole.
    Key,
    /// A field of the key, by index.
    KeyField(usize),
    /// A feature, by index, and the key of its table.
    Feature(usize, &'static str),
}

/// A definition that makes no sense: where, what, and how to mend it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{subject}{fault}")]
pub struct InvalidDefinition {
    /// Where.
    pub place: Place,
    /// Where, in words that end in a colon and a space; may be empty.
    pub subject: String,
    /// What.
    pub fault: Fault,
}

impl InvalidDefinition {
    /// A fault at a place of a definition with these features, which name the subject.
    #[must_use]
    pub fn new(place: Place, features: &[Feature], fault: Fault) -> Self {
        let subject = match place {
            Place::Definition => String::new(),
            Place::Key | Place::KeyField(_) => "key: ".to_owned(),
            Place::Feature(index, _) => feature_subject(
                index,
                features.get(index).map(|feature| feature.name.as_str()),
            ),
        };
        Self {
            place,
            subject,
            fault,
        }
    }
}

/// "feature `x`: ", or its number where it has no name.
pub(crate) fn feature_subject(index: usize, name: Option<&str>) -> String {
    match name {
        Some(name) if is_identifier(name) => format!("feature `{name}`: "),
        _ => format!("feature {}: ", index + 1),
    }
}

fn input_names() -> impl Iterator<Item = &'static str> {
    Input::ALL.into_iter().map(Input::name)
}

fn field_names() -> impl Iterator<Item = &'static str> {
    KeyField::all().map(KeyField::name)
}

/// The nearest field, by its own name or its column's.
fn field_hint(written: &str) -> String {
    match KeyField::all().find(|field| field.column_name() == written) {
        Some(field) => did_you_mean(field.name(), [field.name()]),
        None => did_you_mean(written, field_names()),
    }
}

fn join<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

fn suited(input: NamedInput) -> String {
    let ops = Op::NAMES.into_iter().filter_map(Op::with_name);
    let taking = ops.filter(|op| op.operand() != Operand::Needless);
    let suited: Vec<Op> = taking.filter(|op| op.suits(input.0.meaning())).collect();
    join(suited.iter().map(Op::name))
}

/// "; did you mean `x`? " with the nearest name if one is near, and "; " otherwise.
pub(crate) fn did_you_mean<'a>(written: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    let written: String = written.chars().take(MAX_NAME_BYTES).collect();
    let distances = names
        .into_iter()
        .map(|name| (edit_distance(&written, name), name));
    match distances.min() {
        Some((distance, name)) if distance <= 1 + name.len() / 4 => {
            format!("; did you mean `{name}`? ")
        }
        _ => "; ".to_owned(),
    }
}

/// Levenshtein's distance.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

/// Whether it can name a column.
pub(crate) fn is_identifier(name: &str) -> bool {
    name.len() <= MAX_NAME_BYTES
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name
            .bytes()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'))
}

/// Text of a user as an error message repeats it: on one line, and not all of a novel.
pub(crate) fn shorten(text: &str) -> String {
    let start: String = text.chars().take(MAX_NAME_BYTES).collect();
    let rest = if start.len() < text.len() { "..." } else { "" };
    format!("{}{rest}", start.escape_debug())
}
