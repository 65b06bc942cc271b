// SPDX-License-Identifier: Apache-2.0
//! The settings of a run. Each has a flag of `turboflow record` and a key in a section of the
//! configuration file. Messages use the form that the user wrote.

use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use turboflow_run::Field;

use crate::engines::{self, EngineOption};

/// Whether this run is configured by a file.
static FROM_FILE: AtomicBool = AtomicBool::new(false);

/// From now on, messages name keys of the file instead of flags.
pub(crate) fn speak_of_keys() {
    FROM_FILE.store(true, Ordering::Relaxed);
}

pub(crate) fn is_from_file() -> bool {
    FROM_FILE.load(Ordering::Relaxed)
}

macro_rules! keys {
    ($($variant:ident $flag:literal $section:literal $name:literal;)*) => {
        /// One setting of a run.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Key {
            $($variant,)*
            /// An option of an engine.
            Of(&'static EngineOption),
        }

        impl Key {
            /// All settings except those of engines, in the order of the file.
            const OF_EVERY_RUN: &[Self] = &[$(Self::$variant),*];

            /// The flag without leading dashes. It was also the key when files had no sections.
            pub(crate) const fn flag(self) -> &'static str {
                match self { $(Self::$variant => $flag,)* Self::Of(option) => option.flag }
            }

            /// The section; nested sections are joined by a dot.
            pub(crate) const fn section(self) -> &'static str {
                match self { $(Self::$variant => $section,)* Self::Of(option) => option.section }
            }

            /// The name in its section.
            pub(crate) const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* Self::Of(option) => option.name }
            }
        }
    };
}

keys! {
    Files "read" "source" "files";
    Interfaces "interface" "source" "interfaces";
    CpuPorts "cpu-port" "source" "cpu-ports";
    Filter "filter" "source" "filter";
    Duration "duration" "source" "duration";
    Packets "packets" "source" "packets";
    SnapLength "snap-length" "source" "snap-length";
    Promiscuous "no-promiscuous" "source" "promiscuous";
    RingSize "ring-size" "source" "ring-size";
    Readers "readers" "source" "readers";
    BridgeIn "in" "bridge" "in";
    BridgeOut "out" "bridge" "out";
    Rules "rules" "bridge" "rules";
    DryRun "dry-run" "bridge" "dry-run";
    Engine "engine" "engine" "name";
    MicroflowSlots "microflow-slots" "engine" "microflow-slots";
    Definition "definition" "flow" "definition";
    Biflow "biflow" "flow" "biflow";
    Initiator "initiator" "flow" "initiator";
    Decapsulate "decapsulate" "flow" "decapsulate";
    Reassemble "reassemble-flows" "flow" "reassemble";
    IcmpPorts "icmp-ports" "flow" "icmp-ports";
    IntDscp "int-dscp" "flow" "int-dscp";
    IntPort "int-port" "flow" "int-port";
    IntReportPort "int-report-port" "flow" "int-report-port";
    IdleTimeout "idle-timeout" "timeouts" "idle";
    ActiveTimeout "active-timeout" "timeouts" "active";
    Linger "linger" "timeouts" "linger";
    Align "align" "timeouts" "align";
    Threads "threads" "meter" "threads";
    MaxFlows "max-flows" "meter" "max-flows";
    Seed "seed" "meter" "seed";
    Dpi "dpi" "meter" "dpi";
    DpiFlows "dpi-flows" "meter" "dpi-flows";
    Metrics "metrics" "service" "metrics";
    User "user" "service" "user";
    Exporter "exporter" "service" "exporter";
    Ledger "ledger" "service" "ledger";
    Quiet "quiet" "service" "quiet";
    LogFormat "log-format" "service" "log-format";
    Sync "sync" "service" "sync";
    FollowLinks "follow-links" "service" "follow-links";
    To "write" "output" "to";
    Format "format" "output" "format";
    TextTime "time" "output" "text-time";
    Names "names" "output" "names";
    ParquetTypes "parquet-types" "output" "parquet-types";
    Rotate "rotate" "output" "rotate";
    RotateSize "rotate-size" "output" "rotate-size";
    RotateBy "rotate-by" "output" "rotate-by";
    Keep "keep" "output" "keep";
    KeepSize "keep-size" "output" "keep-size";
    Anonymize "anonymize" "output" "anonymize";
    Identity "identity" "output" "identity";
    Rate "export-rate" "output" "rate";
    Mtu "export-mtu" "output" "mtu";
    TemplateInterval "template-interval" "output" "template-interval";
    ExportOptions "no-export-options" "output" "options";
    TimeUnit "export-time" "output" "time-unit";
    ObservationDomain "observation-domain" "output" "observation-domain";
    EnterpriseNumber "enterprise-number" "output" "enterprise-number";
    TlsCa "tls-ca" "output" "tls-ca";
    TlsCert "tls-cert" "output" "tls-cert";
    TlsKeyFile "tls-key" "output" "tls-key";
}

/// Sections in the order of the file.
pub(crate) fn sections() -> impl Iterator<Item = &'static str> {
    let of_engines = engines::all().filter_map(|engine| engine.options().first());
    let of_engines = of_engines.map(|option| option.section);
    let before = ["source", "bridge", "engine"].into_iter();
    let after = ["flow", "timeouts", "meter", "service", OUTPUT];
    before.chain(of_engines).chain(after)
}

pub(crate) fn is_section(name: &str) -> bool {
    sections().any(|section| section == name)
}

/// The section that may occur several times.
pub(crate) const OUTPUT: &str = "output";

impl Key {
    /// All settings; those of engines last.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let of_engines = engines::all().flat_map(|engine| engine.options());
        let common = Self::OF_EVERY_RUN.iter().copied();
        common.chain(of_engines.map(|option| Self::Of(option)))
    }

    pub(crate) fn from_flag(flag: &str) -> Option<Self> {
        Self::all().find(|key| key.flag() == flag)
    }

    pub(crate) fn of(section: &str) -> impl Iterator<Item = Self> {
        Self::all().filter(move |key| key.section() == section)
    }

    /// Whether the key is true by default and its flag turns it off.
    pub(crate) const fn is_inverted(self) -> bool {
        matches!(self, Self::Promiscuous | Self::ExportOptions)
    }

    /// The header of the section in the file.
    pub(crate) fn header(self) -> String {
        header(self.section())
    }

    /// The setting with a value, in the form that the user writes.
    pub(crate) fn with(self, value: &str) -> String {
        match is_from_file() {
            true => format!("`{} = \"{value}\"` in {}", self.name(), self.header()),
            false if self == Self::To => format!("-w {value}"),
            false => format!("--{} {value}", self.flag()),
        }
    }

    /// The key in the file, even if the user wrote a flag.
    pub(crate) fn in_file(self) -> String {
        format!("`{}` in {}", self.name(), self.header())
    }
}

/// Rewrites a library's message for the user. Libraries know no flags: they name a setting by
/// section and key, as `` `output.mtu` `` or `` `engine.name=software` ``.
pub(crate) fn spelled(text: &str) -> Cow<'_, str> {
    if !text.contains('`') {
        return Cow::Borrowed(text);
    }
    // Every second part stands between backquotes.
    let mut spelled = String::with_capacity(text.len());
    for (index, part) in text.split('`').enumerate() {
        match (index % 2, meant(part)) {
            (1, Some(said)) => spelled += &said,
            (1, None) => spelled += &format!("`{part}`"),
            _ => spelled += part,
        }
    }
    if text.matches('`').count() % 2 == 1 {
        // An unpaired backquote: this message names no key.
        return Cow::Borrowed(text);
    }
    Cow::Owned(spelled)
}

/// A key that a library names, in the form that the user writes.
fn meant(part: &str) -> Option<String> {
    let (path, value) = match part.split_once('=') {
        Some((path, value)) => (path, Some(value)),
        None => (part, None),
    };
    let (section, name) = path.rsplit_once('.')?;
    let key = Key::of(section).find(|key| key.name() == name)?;
    Some(match value {
        Some(_) if key.is_inverted() && !is_from_file() => key.to_string(),
        Some(value) if key.is_inverted() => format!("`{name} = {value}` in {}", key.header()),
        Some(value) => key.with(value),
        None => key.to_string(),
    })
}

/// A section's name in brackets.
pub(crate) fn header(section: &str) -> String {
    match section == OUTPUT {
        true => format!("[[{section}]]"),
        false => format!("[{section}]"),
    }
}

/// The form that the user writes: the flag, or the key with its section.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            key if is_from_file() => f.write_str(&key.in_file()),
            Self::Filter => f.write_str("a filter"),
            key => write!(f, "--{}", key.flag()),
        }
    }
}

impl From<Field> for Key {
    fn from(field: Field) -> Self {
        match field {
            Field::ActiveTimeout => Self::ActiveTimeout,
            Field::Align => Self::Align,
            Field::Decapsulate => Self::Decapsulate,
            Field::IdleTimeout => Self::IdleTimeout,
            Field::IntReportPort => Self::IntReportPort,
            Field::Linger => Self::Linger,
            Field::MaxFlows => Self::MaxFlows,
            Field::MicroflowSlots => Self::MicroflowSlots,
            Field::Readers => Self::Readers,
            Field::Threads => Self::Threads,
        }
    }
}

/// The closest name, as a suggestion for a misspelled one.
pub(crate) fn nearest<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let near = names.map(|name| (edits(wrong, name), name)).min()?;
    (near.0 <= 1 + wrong.len() / 4).then_some(near.1)
}

/// Levenshtein distance: how many letters must be inserted, removed or replaced.
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
    fn suggests_the_nearest_name() {
        let names = || ["idle-timeout", "active-timeout", "linger", "write"].into_iter();
        assert_eq!(nearest("idel-timeout", names()), Some("idle-timeout"));
        assert_eq!(nearest("idle_timeout", names()), Some("idle-timeout"));
        assert_eq!(nearest("colour", names()), None);
        assert_eq!(edits("kitten", "sitting"), 3);
    }

    #[test]
    fn library_keys_become_flags_in_messages() {
        for (text, words) in [
            (
                "raise `output.mtu`, or use TCP",
                "raise --export-mtu, or use TCP",
            ),
            ("`engine.name=software` works", "--engine software works"),
            ("try `source.promiscuous=false`", "try --no-promiscuous"),
            ("`engine.xdp.replace` puts", "--replace puts"),
            ("op `sum` of `a.b`", "op `sum` of `a.b`"),
            ("a ` alone, `output.mtu`", "a ` alone, `output.mtu`"),
            ("nothing", "nothing"),
        ] {
            assert_eq!(spelled(text), words);
        }
    }

    #[test]
    fn key_names_are_unique() {
        let all: Vec<Key> = Key::all().collect();
        for (index, key) in all.iter().enumerate() {
            assert!(is_section(key.section()), "{key:?}");
            let names = |key: &Key| (key.section(), key.name());
            let others = &all[..index];
            assert!(
                others.iter().all(|other| names(other) != names(key)),
                "{key:?}"
            );
            assert_eq!(Key::from_flag(key.flag()), Some(*key));
        }
    }
}
