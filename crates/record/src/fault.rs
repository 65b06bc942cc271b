// SPDX-License-Identifier: Apache-2.0
//! Faults of a definition, with messages that say how to fix them.

use thiserror::Error;

use crate::vocabulary::Operand;
use crate::{Feature, Input, KeyField, Op};

/// The largest `k` of `list` and `nth`.
pub const MAX_LIST: usize = 256;
/// The most edges of a `histogram`.
pub const MAX_EDGES: usize = 255;
/// The longest feature name, in bytes.
pub const MAX_NAME_BYTES: usize = 64;

/// A fault of a definition. Its message says how to fix it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Fault {
    /// The text is not TOML.
    #[error("this is not TOML: {0}")]
    Syntax(String),
    /// An unknown key in a table.
    #[error("unknown key `{key}`{}keys: {keys}", did_you_mean(key, keys.split(", ")))]
    UnknownKey {
        /// The key as written.
        key: String,
        /// The keys that are known.
        keys: &'static str,
    },
    /// An unknown op.
    #[error("unknown op `{0}`{hint}ops: {ops}", hint = did_you_mean(.0, Op::NAMES), ops = Op::NAMES.join(", "))]
    UnknownOp(String),
    /// An unknown input.
    #[error("unknown input `{0}`{hint}inputs: {inputs}", hint = did_you_mean(.0, input_names()), inputs = join(input_names()))]
    UnknownInput(String),
    /// An unknown key field.
    #[error("unknown field `{0}`{hint}fields: {fields}", hint = field_hint(.0), fields = join(field_names()))]
    UnknownField(String),
    /// An input in the key that changes from packet to packet.
    #[error("`{0}` cannot be in a key; fields: {fields}", fields = join(field_names()))]
    NotInKey(&'static str),
    /// An unknown value of `per`.
    #[error("unknown value `{0}` of `per`; write per = \"biflow\", or leave it out")]
    UnknownPer(String),
    /// A mandatory key is missing.
    #[error("`{key}` is missing; write {example}")]
    Missing {
        /// The missing key.
        key: &'static str,
        /// An example of the key.
        example: &'static str,
    },
    /// An op lacks its input.
    #[error("`of` is missing: op `{0}` needs an input, such as of = \"ip_length\"")]
    MissingOf(&'static str),
    /// A key that the op does not take.
    #[error("op `{op}` takes no `{key}`; remove it")]
    Needless {
        /// The key to remove.
        key: &'static str,
        /// The op.
        op: &'static str,
    },
    /// A value of the wrong type.
    #[error("`{key}` is {found}; write {example}")]
    WrongType {
        /// The key.
        key: &'static str,
        /// What was found instead.
        found: String,
        /// An example of a valid value.
        example: &'static str,
    },
    /// A name that is not an identifier.
    #[error(
        "bad name `{0}`; write a lower-case letter, then lower-case letters, digits and `_`, at most {MAX_NAME_BYTES} in all"
    )]
    BadName(String),
    /// A name that another column already has.
    #[error("the name `{0}` is taken by {1}; choose another")]
    TakenName(String, &'static str),
    /// A field that is in the key twice.
    #[error("`{0}` is in the key twice; remove one")]
    RepeatedField(&'static str),
    /// A key without fields.
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
        /// The value as written.
        k: String,
        /// The op.
        op: &'static str,
    },
    /// Edges that are not strictly rising.
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
    /// An edge that is not a 64-bit number.
    #[error("`{0}` is not an edge; write whole numbers from 0 to 18446744073709551615")]
    BadEdge(String),
    /// An op that is meaningless for the input.
    #[error("op `{op}` makes no sense of `{input}`; ops that do: {suited}", suited = suited(*.input))]
    Senseless {
        /// The op.
        op: &'static str,
        /// The input.
        input: NamedInput,
    },
    /// `community_id` without the 5-tuple in the key.
    #[error(
        "op `community_id` is computed from the 5-tuple, but `{0}` is not in the key; add it, or leave out the [key] table for the 5-tuple"
    )]
    NoTuple(&'static str),
    /// An input of inspection without the 5-tuple in the key.
    #[error(
        "`{input}` is found by the 5-tuple, but `{lacks}` is not in the key; add it, or leave out the [key] table for the 5-tuple"
    )]
    NoTupleToInspect {
        /// The input.
        input: &'static str,
        /// The field that is missing.
        lacks: &'static str,
    },
    /// `direction` in a definition without biflows.
    #[error("`direction` exists in biflows only; add `flow.biflow` or remove it")]
    DirectionOfUniflow,
    /// The key of a biflow has a field of one end only.
    #[error(
        "a biflow joins two ends, but `{has}` is in the key without `{lacks}`; add it, or leave out `flow.biflow`"
    )]
    HalfPair {
        /// The field that is in the key.
        has: &'static str,
        /// Its counterpart for the other end.
        lacks: &'static str,
    },
    /// The key of a biflow has no ends.
    #[error(
        "a biflow joins two ends, but the key has none; add source_address and destination_address, or leave out `flow.biflow`"
    )]
    NoPair,
    /// The key fields need more bytes than a key has.
    #[error("no room for this one: the fields of a key have {room} bytes together; leave some out")]
    KeyTooLarge {
        /// Size of a key in bytes.
        room: usize,
    },
    /// The features need more state than a record has.
    #[error(
        "no room for this one: the features need {needed} words of state, {over} more than a record has ({room}); keep fewer or shorter lists and histograms",
        over = .needed.saturating_sub(*.room)
    )]
    TooLarge {
        /// Words that all features need together.
        needed: usize,
        /// Words that a record has at most.
        room: usize,
    },
    /// An input that inspection finds, where no packet is inspected.
    #[error(
        "`{input}` is found by application inspection, which {engine} runs without; turn it on, or remove the feature"
    )]
    NotInspected {
        /// The engine, as messages name it.
        engine: String,
        /// The input that was asked for.
        input: &'static str,
    },
    /// An input that a bridge supplies, and no other engine.
    #[error(
        "`{input}` is what a bridge does with packets, which {engine} does not do; use `turboflow bridge`, or remove the feature"
    )]
    NotDecided {
        /// The engine, as messages name it.
        engine: String,
        /// The input that was asked for.
        input: &'static str,
    },
    /// An input that the engine cannot see.
    #[error("{engine} cannot see `{input}`; it sees: {seen}")]
    Unseen {
        /// The engine, as messages name it.
        engine: String,
        /// The input that was asked for.
        input: &'static str,
        /// The inputs that it can see.
        seen: String,
    },
}

/// An input that displays as its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedInput(pub Input);

impl std::fmt::Display for NamedInput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.name())
    }
}

/// The part of a definition that is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The file as a whole.
    Definition,
    /// The key as a whole.
    Key,
    /// A field of the key, by index.
    KeyField(usize),
    /// A feature, by index, and a key of its table.
    Feature(usize, &'static str),
}

/// A fault, and the part that it is in.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{subject}{fault}")]
pub struct InvalidDefinition {
    /// The part at fault.
    pub place: Place,
    /// The part at fault in words, ending in a colon and a space; may be empty.
    pub subject: String,
    /// What is wrong there.
    pub fault: Fault,
}

impl InvalidDefinition {
    /// A fault at `place`. The subject is taken from `features`.
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

/// "feature `x`: ", or the feature's number if it has no valid name.
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

/// A hint at the field whose name or column name is most similar.
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

/// The text between an unknown name and the list of known names: "; did you mean `x`? " if a name
/// is similar, else "; ".
#[must_use]
pub fn did_you_mean<'a>(written: &str, names: impl IntoIterator<Item = &'a str>) -> String {
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

/// The Levenshtein distance.
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

/// Whether a text can be a column name.
pub(crate) fn is_identifier(name: &str) -> bool {
    name.len() <= MAX_NAME_BYTES
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name
            .bytes()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'))
}

/// The user's text as error messages show it: on one line, and shortened.
#[must_use]
pub fn shorten(text: &str) -> String {
    let start: String = text.chars().take(MAX_NAME_BYTES).collect();
    let rest = if start.len() < text.len() { "..." } else { "" };
    format!("{}{rest}", start.escape_debug())
}
