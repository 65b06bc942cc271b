// SPDX-License-Identifier: Apache-2.0
//! Values that people write as text, such as `"30s"`, `"10M"` or `"64MiB"`. Each has its own type.
//! A whole number needs no quotes.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;
use std::time::Duration;

use serde::de::{Error, Visitor};
use serde::{Deserializer, Serializer};

use super::units;

/// Defines types whose text one function parses and another formats, so that it can be parsed
/// again.
macro_rules! texts {
    ($($(#[$attribute:meta])* $name:ident($inner:ty): $read:path, $write:path;)*) => {
        $(
            $(#[$attribute])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub struct $name(pub $inner);

            impl FromStr for $name {
                type Err = String;

                fn from_str(text: &str) -> Result<Self, String> {
                    $read(text).map(Self)
                }
            }

            impl fmt::Display for $name {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str(&$write(self.0))
                }
            }

            impl serde::Serialize for $name {
                fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    serialize(self, serializer)
                }
            }

            impl<'de> serde::Deserialize<'de> for $name {
                fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                    deserialize(deserializer)
                }
            }
        )*
    };
}

texts! {
    /// A number of items: `1000`, `300k`, `10M`.
    Count(u64): units::count, plain;
    /// A number of items, at least 1.
    CountAboveZero(u64): units::count_above_zero, plain;
    /// The interval at which something is repeated, at least 1 s.
    Interval(Duration): units::template_interval, duration_text;
    /// How long a flow that saw its end waits for its last packets, in nanoseconds; may be 0.
    /// `None`: disabled.
    Linger(Option<u64>): units::timeout_or_zero, timeout_text;
    /// Maximum size of a message over UDP, in bytes.
    Mtu(u16): units::mtu, plain;
    /// How long a file is written to, at least 1 s.
    Rotation(Duration): units::rotation, duration_text;
    /// A seed: any 64-bit number.
    Seed(u64): units::seed, plain;
    /// A size in bytes: `64MiB`, `100kB`, `65536`.
    Size(u64): units::size_bytes, size_text;
    /// Bytes kept of a packet: at least an Ethernet header.
    SnapLength(u32): units::snap_length, plain;
    /// A finite time above 0.
    Time(Duration): units::duration, duration_text;
    /// A time after which a flow ends, in nanoseconds, above 0. `None`: disabled.
    Timeout(Option<u64>): units::timeout, timeout_text;
    /// The length of windows that no record crosses: whole seconds, from 1 s to a day.
    Window(Duration): units::window, duration_text;
}

fn plain(number: impl Into<u64>) -> String {
    number.into().to_string()
}

fn timeout_text(ns: Option<u64>) -> String {
    ns.map_or_else(|| "none".to_owned(), units::time_text)
}

fn duration_text(time: Duration) -> String {
    units::time_text(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

fn size_text(bytes: u64) -> String {
    units::size_text(bytes)
}

/// Writes a value as text, or as a number if its text is a number.
pub(super) fn serialize<T: fmt::Display, S: Serializer>(
    value: &T,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let text = value.to_string();
    match text.parse() {
        Ok(number) => serializer.serialize_i64(number),
        Err(_) => serializer.serialize_str(&text),
    }
}

/// Reads a value from text, or from a whole number.
pub(super) fn deserialize<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: FromStr<Err: fmt::Display>,
    D: Deserializer<'de>,
{
    deserializer.deserialize_any(TextOrNumber(PhantomData))
}

struct TextOrNumber<T>(PhantomData<T>);

impl<T: FromStr<Err: fmt::Display>> Visitor<'_> for TextOrNumber<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text in quotes, or a whole number")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }
}

/// A value that may be omitted, for `#[serde(with = "...")]`.
pub(super) mod option {
    use super::{Deserializer, FromStr, Serializer, fmt};

    pub(in super::super) fn serialize<T: fmt::Display, S: Serializer>(
        value: &Option<T>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => super::serialize(value, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub(in super::super) fn deserialize<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
    where
        T: FromStr<Err: fmt::Display>,
        D: Deserializer<'de>,
    {
        super::deserialize(deserializer).map(Some)
    }
}

/// A list in TOML, or a single element without brackets, for serde's `deserialize_with`.
pub mod list {
    use std::marker::PhantomData;

    use serde::de::{DeserializeOwned, Error, SeqAccess, Visitor};

    use super::{Deserializer, fmt};

    /// Reads the list.
    ///
    /// # Errors
    /// If the value is neither a text nor a list of texts.
    pub fn deserialize<'de, T, D>(deserializer: D) -> Result<Vec<T>, D::Error>
    where
        T: From<String> + DeserializeOwned,
        D: Deserializer<'de>,
    {
        struct List<T>(PhantomData<T>);
        impl<'de, T: From<String> + DeserializeOwned> Visitor<'de> for List<T> {
            type Value = Vec<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text, or a list of texts in [ ]")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Vec<T>, E> {
                Ok(vec![T::from(text.to_owned())])
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<T>, A::Error> {
                let mut values = Vec::new();
                while let Some(value) = seq.next_element()? {
                    values.push(value);
                }
                Ok(values)
            }
        }
        deserializer.deserialize_any(List(PhantomData))
    }
}

/// `true` or `false`, with an error message that names both.
pub(super) mod flag {
    use serde::de::{Error, Visitor};

    use super::{Deserializer, fmt};

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<bool, D::Error> {
        struct Flag;
        impl Visitor<'_> for Flag {
            type Value = bool;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true or false")
            }

            fn visit_bool<E: Error>(self, value: bool) -> Result<bool, E> {
                Ok(value)
            }
        }
        deserializer.deserialize_any(Flag)
    }

    pub(in super::super) fn some<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<bool>, D::Error> {
        deserialize(deserializer).map(Some)
    }
}
