// SPDX-License-Identifier: Apache-2.0
//! The address of a topic, as a user writes it: `kafka://broker.example:9092/flows?records=100`.

use std::fmt;
use std::str::FromStr;

use crate::KafkaError;

/// Maximum number of records in a message.
const MAX_RECORDS: usize = 10_000;
/// The conventional port of brokers.
const PORT: u16 = 9092;
/// Maximum number of characters of a topic's name.
const MAX_TOPIC: usize = 249;
/// Suffix that turns the name of a topic of records into the name of its topic of ticks.
const TICKS_SUFFIX: &str = ".ticks";

/// A topic, and how records are written to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KafkaTarget {
    /// Whether the brokers are reached over TLS.
    pub is_tls: bool,
    /// Brokers to connect to first, each as `HOST:PORT`.
    pub brokers: Vec<String>,
    /// The topic.
    pub topic: String,
    /// The format of messages.
    pub format: MessageFormat,
    /// Maximum number of records in a message.
    pub records: usize,
    /// How messages are compressed.
    pub codec: Codec,
    /// The user who logs in, and how.
    pub login: Option<Login>,
    /// The topic of ticks. `None`: there are no ticks.
    pub ticks: Option<String>,
}

/// A login by SASL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// How the user proves to know the password.
    pub mechanism: Mechanism,
    /// The name of the user.
    pub user: String,
}

macro_rules! named {
    ($(#[$about:meta])* $name:ident { $($(#[$of:meta])* $variant:ident $text:literal;)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$of])* $variant,)* }

        impl $name {
            /// All values.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The name in an address.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            fn of(text: &str) -> Result<Self, String> {
                let named = Self::ALL.iter().find(|its| its.name() == text);
                named.copied().ok_or_else(|| {
                    let names: Vec<_> = Self::ALL.iter().map(|its| its.name()).collect();
                    format!("{text:?} is none of {}", names.join(", "))
                })
            }
        }
    };
}

named! {
    /// The format of a message.
    MessageFormat {
        /// goflow2's protobuf `FlowMessage`s, each preceded by its length.
        Goflow2 "goflow2";
        /// An Arrow IPC stream.
        Arrow "arrow";
        /// JSON lines.
        Json "json";
    }
}

named! {
    /// The compression of batches of messages.
    Codec {
        /// No compression.
        None "none";
        /// LZ4: the least processor time.
        Lz4 "lz4";
        /// Zstandard: the fewest bytes.
        Zstd "zstd";
        /// Snappy.
        Snappy "snappy";
    }
}

named! {
    /// How the user proves to know a password.
    Mechanism {
        /// PLAIN: the password itself is sent, which needs TLS.
        Plain "plain";
        /// SCRAM-SHA-256 (RFC 7677).
        ScramSha256 "scram-sha-256";
        /// SCRAM-SHA-512.
        ScramSha512 "scram-sha-512";
    }
}

impl KafkaTarget {
    /// Whether the text is the address of a topic, rather than of another collector or a file.
    #[must_use]
    pub fn is_meant(text: &str) -> bool {
        scheme(text).is_some()
    }
}

/// Whether the scheme of an address asks for TLS, and the part of the address after the scheme.
fn scheme(text: &str) -> Option<(bool, &str)> {
    let plain = text.strip_prefix("kafka://").map(|rest| (false, rest));
    plain.or_else(|| text.strip_prefix("kafka+tls://").map(|rest| (true, rest)))
}

impl FromStr for KafkaTarget {
    type Err = KafkaError;

    fn from_str(text: &str) -> Result<Self, KafkaError> {
        parsed(text).map_err(|reason| KafkaError::Target {
            given: text.to_owned(),
            reason,
        })
    }
}

fn parsed(text: &str) -> Result<KafkaTarget, String> {
    let (is_tls, rest) =
        scheme(text).ok_or("it must begin with kafka:// or kafka+tls://".to_owned())?;
    let (place, options) = rest.split_once('?').unwrap_or((rest, ""));
    let (brokers, topic) = place.split_once('/').unwrap_or((place, ""));
    if brokers.contains('@') {
        return Err("a login is written as ?sasl=scram-sha-512&user=NAME".to_owned());
    }
    let brokers = brokers.split(',').map(broker).collect::<Result<_, _>>()?;
    check_topic(topic)?;
    let mut target = KafkaTarget {
        is_tls,
        brokers,
        topic: topic.to_owned(),
        format: MessageFormat::Goflow2,
        records: 0,
        codec: Codec::Lz4,
        login: None,
        ticks: Some(format!("{topic}{TICKS_SUFFIX}")),
    };
    target.take_options(options)?;
    target.ticks.as_deref().map_or(Ok(()), check_topic)?;
    match target.ticks.as_deref() == Some(topic) {
        true => Err("ticks need a topic of their own, or ticks=none".to_owned()),
        false => Ok(target),
    }
}

fn check_topic(topic: &str) -> Result<(), String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
    match !topic.is_empty() && topic.len() <= MAX_TOPIC && topic.chars().all(is_name) {
        true => Ok(()),
        false => Err(format!(
            "{topic:?} is not a topic: write 1 to {MAX_TOPIC} of letters, digits, `.`, `-` and `_`"
        )),
    }
}

impl KafkaTarget {
    fn take_options(&mut self, options: &str) -> Result<(), String> {
        let (mut mechanism, mut user) = (None, None);
        for option in options.split('&').filter(|option| !option.is_empty()) {
            let (key, value) = option.split_once('=').unwrap_or((option, ""));
            match key {
                "format" => self.format = MessageFormat::of(value)?,
                "compression" => self.codec = Codec::of(value)?,
                "sasl" => mechanism = Some(Mechanism::of(value)?),
                "ticks" if value == "none" => self.ticks = None,
                "ticks" => self.ticks = Some(value.to_owned()),
                "user" if !value.is_empty() => user = Some(value.to_owned()),
                "records" => {
                    let number = value.parse().ok();
                    let number = number.filter(|number| (1..=MAX_RECORDS).contains(number));
                    self.records = number.ok_or_else(|| {
                        format!("{value:?} is not a number of records from 1 to {MAX_RECORDS}")
                    })?;
                }
                _ => {
                    return Err(format!(
                        "{option:?} is none of the options format, records, compression, ticks, \
                         sasl and user"
                    ));
                }
            }
        }
        if self.records == 0 {
            self.records = default_records(self.format);
        }
        self.login = match (mechanism, user) {
            (None, None) => None,
            (Some(mechanism), Some(user)) => Some(Login { mechanism, user }),
            _ => return Err("sasl and user go together".to_owned()),
        };
        let is_open = matches!(&self.login, Some(its) if its.mechanism == Mechanism::Plain);
        match is_open && !self.is_tls {
            true => Err("sasl=plain sends the password as it is: use kafka+tls://".to_owned()),
            false => Ok(()),
        }
    }
}

/// goflow2's consumers expect one record per message; every Arrow message contains a schema, so it
/// should have many records.
const fn default_records(format: MessageFormat) -> usize {
    match format {
        MessageFormat::Goflow2 | MessageFormat::Json => 1,
        MessageFormat::Arrow => 1_000,
    }
}

/// A broker with its port, by default the usual one.
fn broker(text: &str) -> Result<String, String> {
    let refused =
        || format!("{text:?} is not a broker: write HOST:PORT, IPv6 addresses in brackets");
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => {
            let port = port.parse::<u16>().ok().filter(|port| *port > 0);
            (host, port.ok_or_else(refused)?)
        }
        _ => (text, PORT),
    };
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let is_host = match bare {
        Some(bare) => bare.parse::<std::net::Ipv6Addr>().is_ok(),
        None => {
            !host.is_empty() && !host.contains(|c: char| "[]:@".contains(c) || c.is_whitespace())
        }
    };
    is_host
        .then(|| format!("{host}:{port}"))
        .ok_or_else(refused)
}

/// Shows the address with every option that differs from its default.
impl fmt::Display for KafkaTarget {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_tls { "kafka+tls" } else { "kafka" };
        write!(
            formatter,
            "{scheme}://{}/{}",
            self.brokers.join(","),
            self.topic
        )?;
        let mut options = Vec::new();
        if self.format != MessageFormat::Goflow2 {
            options.push(format!("format={}", self.format.name()));
        }
        if self.records != default_records(self.format) {
            options.push(format!("records={}", self.records));
        }
        if self.codec != Codec::Lz4 {
            options.push(format!("compression={}", self.codec.name()));
        }
        match &self.ticks {
            None => options.push("ticks=none".to_owned()),
            Some(ticks) if ticks.strip_suffix(TICKS_SUFFIX) != Some(&self.topic) => {
                options.push(format!("ticks={ticks}"));
            }
            Some(_) => {}
        }
        if let Some(Login { mechanism, user }) = &self.login {
            options.push(format!("sasl={}&user={user}", mechanism.name()));
        }
        match options.is_empty() {
            true => Ok(()),
            false => write!(formatter, "?{}", options.join("&")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_back_what_it_writes() {
        for text in [
            "kafka://127.0.0.1:9092/flows",
            "kafka://a.example:9092,[::1]:9093/flows.raw_1-x?format=arrow",
            "kafka+tls://a:1/t?format=json&records=100&compression=zstd",
            "kafka://a:1/t?ticks=none",
            "kafka://a:1/t?format=json&ticks=t-clock",
            "kafka+tls://a:1/t?sasl=plain&user=meter",
            "kafka://a:1/t?records=100&sasl=scram-sha-512&user=meter",
        ] {
            assert_eq!(text.parse::<KafkaTarget>().unwrap().to_string(), text);
        }
        let target: KafkaTarget = "kafka://a,[::1]/t?format=goflow2".parse().unwrap();
        assert_eq!(target.brokers, ["a:9092", "[::1]:9092"]);
        assert_eq!((target.records, target.codec), (1, Codec::Lz4));
        assert!(KafkaTarget::is_meant("kafka+tls://") && !KafkaTarget::is_meant("ipfix+udp://a"));
    }

    #[test]
    fn explains_what_is_invalid() {
        for (text, words) in [
            ("kafka:/a/t", "must begin"),
            ("kafka://a", "\"\" is not a topic"),
            ("kafka://a/b/c", "\"b/c\" is not a topic"),
            ("kafka:///t", "\"\" is not a broker"),
            ("kafka://a:0/t", "\"a:0\" is not a broker"),
            ("kafka://::1/t", "in brackets"),
            ("kafka://[a]:1/t", "in brackets"),
            ("kafka://me:pw@a/t", "sasl=scram-sha-512"),
            ("kafka://a/t?format=avro", "none of goflow2, arrow, json"),
            (
                "kafka://a/t?compression=7z",
                "none of none, lz4, zstd, snappy",
            ),
            ("kafka://a/t?records=0", "from 1 to 10000"),
            ("kafka://a/t?acks=1", "none of the options format"),
            ("kafka://a/t?ticks=", "\"\" is not a topic"),
            ("kafka://a/t?ticks=t", "a topic of their own"),
            ("kafka://a/t?user=me", "go together"),
            ("kafka://a/t?sasl=plain&user=me", "kafka+tls://"),
        ] {
            let error = text.parse::<KafkaTarget>().unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
