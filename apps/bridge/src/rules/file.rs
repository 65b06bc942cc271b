// SPDX-License-Identifier: Apache-2.0
//! The syntax of the rules file.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use toml::Spanned;
use turboflow_inspect::Confidence;

use super::decision::{Action, FailMode};

/// The values of `min_confidence`, in increasing order of confidence.
pub(super) const CONFIDENCES: [(&str, Confidence); 6] = [
    ("port", Confidence::Port),
    ("address", Confidence::Address),
    ("partial-cache", Confidence::PartialCache),
    ("partial", Confidence::Partial),
    ("cache", Confidence::Cache),
    ("dpi", Confidence::Payload),
];

/// The file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileText {
    pub(super) default: Option<Action>,
    pub(super) undecided: Option<Spanned<Action>>,
    pub(super) other: Option<Action>,
    pub(super) min_confidence: Option<Spanned<String>>,
    pub(super) fail: Option<FailMode>,
    #[serde(default, rename = "rule")]
    pub(super) rules: Vec<Spanned<RuleText>>,
}

/// Defines a table with its own keys and the optional keys of conditions.
macro_rules! table_with_conditions {
    ($(#[$about:meta])* $table:ident { $($key:ident: $kind:ty,)* }) => {
        $(#[$about])*
        #[derive(Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct $table {
            $(pub(super) $key: $kind,)*
            application: Option<Spanned<List>>,
            category: Option<Spanned<List>>,
            server_name: Option<Spanned<List>>,
            protocol: Option<Spanned<List>>,
            port: Option<Spanned<List>>,
            src: Option<Spanned<List>>,
            dst: Option<Spanned<List>>,
            risk: Option<Spanned<List>>,
        }

        impl $table {
            pub(super) fn conditions(&self) -> [(Key, Option<&Spanned<List>>); 8] {
                [
                    (Key::Application, self.application.as_ref()),
                    (Key::Category, self.category.as_ref()),
                    (Key::ServerName, self.server_name.as_ref()),
                    (Key::Protocol, self.protocol.as_ref()),
                    (Key::Port, self.port.as_ref()),
                    (Key::Src, self.src.as_ref()),
                    (Key::Dst, self.dst.as_ref()),
                    (Key::Risk, self.risk.as_ref()),
                ]
            }
        }
    };
}

table_with_conditions! {
    /// A rule.
    RuleText {
        name: Spanned<String>,
        action: Action,
        except: Option<Spanned<ExceptText>>,
    }
}

table_with_conditions! {
    /// Exceptions from a rule.
    ExceptText {}
}

/// The kinds of conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Application,
    Category,
    ServerName,
    Port,
    Src,
    Dst,
    Protocol,
    Risk,
}

impl Key {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Application => "application",
            Self::Category => "category",
            Self::ServerName => "server_name",
            Self::Port => "port",
            Self::Src => "src",
            Self::Dst => "dst",
            Self::Protocol => "protocol",
            Self::Risk => "risk",
        }
    }
}

/// Values, one of which must match.
#[derive(Debug)]
pub(super) struct List(pub(super) Vec<Spanned<Entry>>);

/// One value.
#[derive(Debug)]
pub(super) enum Entry {
    Number(i64),
    Text(String),
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for List {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = List;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list, in square brackets")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<List, A::Error> {
                let mut list = Vec::new();
                while let Some(entry) = entries.next_element()? {
                    list.push(entry);
                }
                Ok(List(list))
            }
        }
        deserializer.deserialize_seq(Entries)
    }
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl Visitor<'_> for Either {
            type Value = Entry;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name in quotes or a number")
            }

            fn visit_i64<E>(self, number: i64) -> Result<Entry, E> {
                Ok(Entry::Number(number))
            }

            fn visit_str<E>(self, text: &str) -> Result<Entry, E> {
                Ok(Entry::Text(text.to_owned()))
            }
        }
        deserializer.deserialize_any(Either)
    }
}
