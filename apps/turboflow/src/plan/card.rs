// SPDX-License-Identifier: Apache-2.0
//! The flow table of `--offload`: a built-in card, or a file like it.

use std::ops::Range;
use std::path::Path;

use anyhow::{Context, anyhow};
use serde::Deserialize;
use toml::Spanned;
use turboflow_plan::Impossible;
use turboflow_plan::offload::{Card, CuckooMemory, Place};

use crate::units::duration;

/// The built-in cards.
const BUILT_IN: [(&str, &str); 2] = [
    ("kernel", include_str!("../../cards/kernel.toml")),
    ("napatech", include_str!("../../cards/napatech.toml")),
];

/// A card as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    place: Spanned<WrittenPlace>,
    capacity: Spanned<f64>,
    learning_rate: Spanned<f64>,
    accesses_per_second: Option<Spanned<f64>>,
    ways: Option<Spanned<u32>>,
    slots: Option<Spanned<u32>>,
    delay: Spanned<String>,
    event_lag: Spanned<String>,
    host_bytes_per_flow: Option<Spanned<f64>>,
    bus_bits_per_second: Option<Spanned<f64>>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum WrittenPlace {
    Card,
    Host,
}

/// An error in a card, with its byte position in the text if it has one.
#[derive(Debug)]
struct Wrong {
    at: Option<usize>,
    what: String,
}

impl Wrong {
    fn at(span: &Range<usize>, what: String) -> Self {
        Self {
            at: Some(span.start),
            what,
        }
    }
}

/// The built-in card `name`, or the card in the file of that name.
pub(super) fn read(name: &str) -> anyhow::Result<Card> {
    let built_in = BUILT_IN.iter().find(|(known, _)| *known == name);
    let text = match built_in {
        Some((_, text)) => (*text).to_owned(),
        None if !Path::new(name).exists() => {
            return Err(anyhow!(
                "--offload {name}: there is no such card and no such file; write kernel, \
                 napatech, or the name of a TOML file as in docs/planning.md"
            ));
        }
        None => {
            std::fs::read_to_string(name).with_context(|| format!("cannot read the card {name}"))?
        }
    };
    parse(name, &text).map_err(|wrong| match wrong.at {
        Some(at) => {
            let before = &text.as_bytes()[..at.min(text.len())];
            let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
            anyhow!("{name}, line {line}: {}", wrong.what)
        }
        None => anyhow!("{name}: {}", wrong.what),
    })
}

fn parse(name: &str, text: &str) -> Result<Card, Wrong> {
    let written: Written = toml::from_str(text).map_err(|error| {
        let is_missing = error.message().starts_with("missing field");
        Wrong {
            // A missing key has no position.
            at: error.span().filter(|_| !is_missing).map(|span| span.start),
            what: plain(error.message()),
        }
    })?;
    let card = Card {
        name: name.to_owned(),
        place: match written.place.get_ref() {
            WrittenPlace::Card => Place::Card,
            WrittenPlace::Host => Place::Host,
        },
        capacity: *written.capacity.get_ref(),
        learning_rate: *written.learning_rate.get_ref(),
        memory: memory(&written)?,
        delay_seconds: seconds("delay", &written.delay)?,
        event_lag_seconds: seconds("event_lag", &written.event_lag)?,
        host_bytes_per_flow: written
            .host_bytes_per_flow
            .as_ref()
            .map(|bytes| *bytes.get_ref()),
        bus_bits_per_second: written
            .bus_bits_per_second
            .as_ref()
            .map(|rate| *rate.get_ref()),
    };
    card.check().map_err(|error| impossible(&written, &error))?;
    Ok(card)
}

fn seconds(key: &str, written: &Spanned<String>) -> Result<f64, Wrong> {
    let time = duration(written.get_ref());
    time.map(|time| time.as_secs_f64()).map_err(|mend| {
        let what = format!("`{key}` is {:?}: {mend}", written.get_ref());
        Wrong::at(&written.span(), what)
    })
}

/// All three keys of a cuckoo table, or none.
fn memory(written: &Written) -> Result<Option<CuckooMemory>, Wrong> {
    let spans = [
        written.accesses_per_second.as_ref().map(Spanned::span),
        written.ways.as_ref().map(Spanned::span),
        written.slots.as_ref().map(Spanned::span),
    ];
    match (&written.accesses_per_second, &written.ways, &written.slots) {
        (Some(accesses), Some(ways), Some(slots)) => Ok(Some(CuckooMemory {
            accesses_per_second: *accesses.get_ref(),
            ways: *ways.get_ref(),
            slots: *slots.get_ref(),
        })),
        (None, None, None) => Ok(None),
        _ => Err(Wrong {
            at: spans.into_iter().flatten().map(|span| span.start).next(),
            what:
                "a cuckoo table has `accesses_per_second`, `ways` and `slots`: write all three, or \
                   none for a table whose learning rate stays constant until it is full"
                    .to_owned(),
        }),
    }
}

/// The error for an impossible number, with its position.
fn impossible(written: &Written, error: &Impossible) -> Wrong {
    let span = match error.argument {
        "capacity" => Some(written.capacity.span()),
        "learning_rate" => Some(written.learning_rate.span()),
        "delay" => Some(written.delay.span()),
        "event_lag" => Some(written.event_lag.span()),
        "accesses_per_second" => written.accesses_per_second.as_ref().map(Spanned::span),
        "ways" => written.ways.as_ref().map(Spanned::span),
        "host_bytes_per_flow" => written.host_bytes_per_flow.as_ref().map(Spanned::span),
        _ => written.bus_bits_per_second.as_ref().map(Spanned::span),
    };
    let (argument, value, mend) = (error.argument, error.written(), &error.mend);
    Wrong {
        at: span.map(|span| span.start),
        what: format!("`{argument}` is {value}: {mend}"),
    }
}

/// Rewrites messages of the TOML reader in plain words.
fn plain(message: &str) -> String {
    let first = message.lines().next().unwrap_or_default();
    if let Some(key) = first.strip_prefix("missing field ") {
        return format!("the key {key} is missing; docs/planning.md has all keys");
    }
    first
        .replace("unknown field", "there is no key")
        .replace("unknown variant", "there is no place")
        .replace(", expected one of", "; write one of")
        .replace(
            ", expected `card` or `host`",
            "; write \"card\" or \"host\"",
        )
        .replace("invalid type: ", "")
        .replace("invalid value: ", "")
        .replace("expected f64", "a number is needed")
        .replace("expected u32", "a whole number is needed")
        .replace("expected a string", "a time such as \"10us\" is needed")
}

#[cfg(test)]
mod tests {
    use super::*;

    const CARD: &str = "place = \"card\"\ncapacity = 1000\nlearning_rate = 1e5\n\
                        delay = \"1ms\"\nevent_lag = \"2s\"\n";

    #[test]
    fn the_built_in_cards_are_those_of_their_sources() {
        let kernel = read("kernel").unwrap();
        assert_eq!((kernel.place, kernel.capacity), (Place::Host, 1_048_576.0));
        assert_eq!((kernel.memory, kernel.delay_seconds), (None, 0.01));
        let napatech = read("napatech").unwrap();
        assert_eq!((napatech.place, napatech.capacity), (Place::Card, 140e6));
        assert_eq!(napatech.delay_seconds, 1e-5);
        // The insertion rates that the paper states: 3 M/s, and 3.5 M/s up to 90 % full.
        assert_eq!(napatech.comfortable_rate(), 3e6);
        let memory = napatech.memory.unwrap();
        let unlimited = Card {
            learning_rate: 1e9,
            ..napatech
        };
        assert!((3.3e6..3.7e6).contains(&unlimited.comfortable_rate()));
        assert_eq!((memory.ways, memory.slots), (2, 4));
    }

    #[test]
    fn a_card_is_read_with_and_without_a_cuckoo_table() {
        let card = parse("mine", CARD).unwrap();
        assert_eq!((card.capacity, card.learning_rate), (1_000.0, 1e5));
        assert_eq!((card.delay_seconds, card.event_lag_seconds), (0.001, 2.0));
        assert_eq!((card.memory, card.host_bytes_per_flow), (None, None));
        let cuckoo = format!("{CARD}accesses_per_second = 1e6\nways = 2\nslots = 8\n");
        assert_eq!(parse("mine", &cuckoo).unwrap().memory.unwrap().slots, 8);
    }

    #[test]
    fn errors_have_a_place_and_a_mend() {
        let wrong = |text: &str| {
            let wrong = parse("mine", text).unwrap_err();
            let line = |at: usize| 1 + text[..at].matches('\n').count();
            (wrong.at.map(line), wrong.what)
        };
        for (text, line, words) in [
            (
                CARD.replace("1000", "0"),
                Some(2),
                "`capacity` is 0: a number above 0",
            ),
            (
                CARD.replace("1e5", "\"fast\""),
                Some(3),
                "a number is needed",
            ),
            (
                CARD.replace("1ms", "1"),
                Some(4),
                "`delay` is \"1\": the unit is missing",
            ),
            (CARD.replace("\"2s\"", "2"), Some(5), "a time such as"),
            (
                CARD.replace("card", "moon"),
                Some(1),
                "write \"card\" or \"host\"",
            ),
            (
                CARD.replace("capacity", "rows"),
                Some(2),
                "there is no key `rows`",
            ),
            (
                CARD.replace("capacity = 1000\n", ""),
                None,
                "the key `capacity` is missing",
            ),
            (format!("{CARD}ways = 2\n"), Some(6), "write all three"),
            (
                format!("{CARD}accesses_per_second = 1e6\nways = 7\nslots = 1\n"),
                Some(7),
                "ways and slots may be 2 and 4",
            ),
            (
                format!("{CARD}slots = -1\n"),
                Some(6),
                "a whole number is needed",
            ),
            (
                format!("{CARD}bus_bits_per_second = 0\n"),
                Some(6),
                "`bus_bits_per_second` is 0",
            ),
            (
                format!("{CARD}host_bytes_per_flow = -5\n"),
                Some(6),
                "`host_bytes_per_flow` is -5",
            ),
            (format!("{CARD}capacity = 5\n"), Some(6), "duplicate key"),
        ] {
            let (at, what) = wrong(&text);
            assert!(what.contains(words), "{what} does not say {words}");
            assert_eq!(at, line, "{what}");
        }
    }
}
