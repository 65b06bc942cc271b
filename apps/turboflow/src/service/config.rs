// SPDX-License-Identifier: Apache-2.0
//! A configuration as written, turned into the command line of `turboflow record` that says the
//! same: values are read, checked and refused by the same code.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::ops::Range;
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, FromArgMatches};
use toml::de::{DeTable, DeValue};

use super::keys::{Takes, default_of, key_of, nearest, record_command};
use crate::record::RecordArgs;

/// Keys without which there is nothing to do, with what to write.
const NEEDED: [(&str, &str); 2] = [
    ("interface", "interface = [\"eth0\"]"),
    ("write", "write = [\"flows-%Y%m%dT%H%M%S.parquet\"]"),
];

/// What is wrong with a configuration, and where.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    /// From 1; `None` where something is missing altogether.
    line: Option<usize>,
    what: String,
}

impl Wrong {
    fn at(text: &str, span: &Range<usize>, what: String) -> Self {
        let before = &text.as_bytes()[..span.start.min(text.len())];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        Self {
            line: Some(line),
            what,
        }
    }

    /// The error as the operator reads it.
    pub(super) fn in_file(self, path: &Path) -> anyhow::Error {
        let (name, what) = (path.display(), self.what);
        match self.line {
            Some(line) => anyhow::anyhow!("{name}, line {line}: {what}"),
            None => anyhow::anyhow!("{name}: {what}"),
        }
    }
}

/// A configuration: the words of a command line that each key stands for, whether it was written or
/// has a default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Config(BTreeMap<String, Vec<String>>);

impl Config {
    /// The options that it stands for.
    pub(super) fn options(&self) -> Result<RecordArgs, Wrong> {
        let command = record_command();
        let is_filter = |(key, _): &(&String, &Vec<String>)| key.as_str() == "filter";
        let (filters, options): (Vec<_>, Vec<_>) = self.0.iter().partition(is_filter);
        let words = |entries: Vec<(&String, &Vec<String>)>| -> Vec<String> {
            let words = entries.into_iter().flat_map(|(_, words)| words.clone());
            words.collect()
        };
        let mut line = words(options);
        line.push("--".to_owned());
        line.extend(words(filters));
        let typed = command
            .try_get_matches_from(line)
            .and_then(|matches| RecordArgs::from_arg_matches(&matches));
        typed.map_err(|error| Wrong {
            line: None,
            what: first_line(&error),
        })
    }

    /// This one, with those keys of another that `takes` says; and the keys that differ besides.
    pub(super) fn joined(&self, other: &Self, takes: impl Fn(&str) -> bool) -> (Self, Vec<String>) {
        let mut joined = self.clone();
        let mut rest = Vec::new();
        for key in self.0.keys().chain(other.0.keys()).collect::<BTreeSet<_>>() {
            let (ours, theirs) = (self.0.get(key), other.0.get(key));
            if ours == theirs {
                continue;
            }
            match theirs {
                _ if !takes(key) => rest.push(key.clone()),
                Some(words) => drop(joined.0.insert(key.clone(), words.clone())),
                None => drop(joined.0.remove(key)),
            }
        }
        (joined, rest)
    }
}

/// Reads a configuration, and refuses what the command line would refuse.
pub(super) fn parse(text: &str) -> Result<Config, Wrong> {
    let table = DeTable::parse(text).map_err(|error| {
        let what = error.message().replace('\n', ", ");
        Wrong::at(text, &error.span().unwrap_or_default(), what)
    })?;
    let command = record_command();
    let mut entries: Vec<_> = table.get_ref().iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    let mut config = Config::default();
    let mut written = BTreeSet::new();
    for (key, value) in &entries {
        let at = |what| Wrong::at(text, &key.span(), what);
        let arg = arg_of(&command, key.get_ref()).map_err(at)?;
        let words = words(arg, value.get_ref()).map_err(at)?;
        says_something(key.get_ref(), &words).map_err(at)?;
        check(&command, arg, key.get_ref(), &words).map_err(at)?;
        written.insert(key.get_ref().to_string());
        if !words.is_empty() {
            config.0.insert(key.get_ref().to_string(), words);
        }
    }
    for (key, mend) in NEEDED {
        if !written.contains(key) {
            let what = format!("the key `{key}` is missing; write for example {mend}");
            return Err(Wrong { line: None, what });
        }
    }
    for arg in command.get_arguments() {
        if let (Some(key), Some(value)) = (key_of(arg), default_of(arg))
            && !written.contains(key)
            && Takes::of(arg) != Takes::Flag
        {
            config
                .0
                .insert(key.to_owned(), vec![format!("--{key}={value}")]);
        }
    }
    Ok(config)
}

/// A list of nothing is as good as no key.
fn says_something(key: &str, words: &[String]) -> Result<(), String> {
    match NEEDED.iter().find(|(needed, _)| *needed == key) {
        Some((_, mend)) if words.is_empty() => {
            Err(format!("`{key}` is empty; write for example {mend}"))
        }
        _ => Ok(()),
    }
}

fn arg_of<'a>(command: &'a Command, key: &str) -> Result<&'a Arg, String> {
    let mut args = command.get_arguments();
    if let Some(arg) = args.find(|arg| key_of(arg) == Some(key)) {
        return Ok(arg);
    }
    let keys = command.get_arguments().filter_map(key_of);
    let mend = match nearest(key, keys) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`turboflow run --print-config` prints all that there are".to_owned(),
    };
    Err(format!("unknown key `{key}`; {mend}"))
}

/// The words of a command line that say `value` of an option.
fn words(arg: &Arg, value: &DeValue<'_>) -> Result<Vec<String>, String> {
    let key = key_of(arg).unwrap_or_default();
    let takes = Takes::of(arg);
    let option = |value: String| match arg.is_positional() {
        true => value,
        false => format!("--{key}={value}"),
    };
    let refused = || format!("`{key}` takes {}", takes.in_words());
    match (takes, value) {
        (Takes::Flag | Takes::OneOrTrue, DeValue::Boolean(false)) => Ok(Vec::new()),
        (Takes::Flag | Takes::OneOrTrue, DeValue::Boolean(true)) => Ok(vec![format!("--{key}")]),
        (Takes::Flag, _) => Err(refused()),
        (Takes::Several, DeValue::Array(values)) => {
            let texts = values.iter().map(|value| scalar(value.get_ref()));
            let texts: Option<Vec<_>> = texts.collect();
            Ok(texts.ok_or_else(refused)?.into_iter().map(option).collect())
        }
        (_, value) => Ok(vec![option(scalar(value).ok_or_else(refused)?)]),
    }
}

/// Text, or a whole number as text.
fn scalar(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) if number.radix() == 10 => Some(number.as_str().to_owned()),
        _ => None,
    }
}

/// Whether the command line takes these words; the error speaks of the key.
fn check(command: &Command, arg: &Arg, key: &str, words: &[String]) -> Result<(), String> {
    if arg.is_positional() {
        return Ok(());
    }
    let alone = ["--interface=any"].into_iter();
    let tried = command
        .clone()
        .try_get_matches_from(alone.chain(words.iter().map(String::as_str)));
    match tried {
        Ok(_) => Ok(()),
        // A key that it goes with is looked for once all are known.
        Err(error) if error.kind() == ErrorKind::MissingRequiredArgument => Ok(()),
        Err(error) => Err(match error.source() {
            Some(source) => format!("`{key}`: {source}"),
            None => format!("`{key}`: {}", first_line(&error)),
        }),
    }
}

fn first_line(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let first = text.lines().next().unwrap_or_default();
    let first = first.trim_start_matches("error: ").to_owned();
    match error.get(ContextKind::InvalidArg) {
        // The line ends before it says which.
        Some(ContextValue::Strings(missing)) => format!("{first} {}", missing.join(", ")),
        _ => first,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEEDED: &str = "interface = \"eth0\"\nwrite = [\"a.csv\", \"b.jsonl\"]\n";

    fn refused(text: &str) -> (usize, String) {
        let wrong = parse(&format!("{NEEDED}{text}")).unwrap_err();
        (wrong.line.unwrap(), wrong.what)
    }

    #[test]
    fn says_what_the_command_line_says() {
        let text = format!(
            "{NEEDED}\nidle-timeout = \"5s\"\nexport-mtu = 1_200\nbiflow = true\nquiet = false\n\
             decapsulate = true\nfilter = \"tcp port 443\"\n"
        );
        let line = "--interface=eth0 -w a.csv -w b.jsonl --idle-timeout 5s --export-mtu 1200 \
                    --biflow --decapsulate --metrics 127.0.0.1:9414";
        let words = line.split_whitespace().chain(["tcp port 443"]);
        let matches = record_command().try_get_matches_from(words).unwrap();
        let typed = RecordArgs::from_arg_matches(&matches).unwrap();
        let ours = parse(&text).unwrap().options().unwrap();
        assert_eq!(format!("{ours:?}"), format!("{typed:?}"));
    }

    #[test]
    fn takes_what_may_change_and_names_the_rest() {
        let before = parse(&format!(
            "{NEEDED}rotate = \"5m\"\nthreads = 2\nquiet = true\n"
        ));
        let after =
            parse("interface = \"eth0\"\nwrite = \"c.csv\"\nquiet = true\nlinger = \"1s\"\n");
        let (before, after) = (before.unwrap(), after.unwrap());
        let takes = |key: &str| ["write", "rotate", "quiet"].contains(&key);
        let (joined, rest) = before.joined(&after, takes);
        assert_eq!(rest, ["linger", "threads"]);
        let meant = parse("interface = \"eth0\"\nwrite = \"c.csv\"\nthreads = 2\nquiet = true\n");
        assert_eq!(joined, meant.unwrap());
        let one = format!("{NEEDED}threads = 1\n");
        assert_eq!(parse(NEEDED).unwrap(), parse(&one).unwrap());
        // What is written as it is by default is no change.
        let written = parse(
            "interface = \"eth0\"\nwrite = \"c.csv\"\nthreads = 2\nquiet = true\nbiflow = false\nlinger = \"2s\"\n",
        );
        assert_eq!(
            joined.joined(&written.unwrap(), takes),
            (joined.clone(), Vec::new())
        );
    }

    #[test]
    fn refuses_with_line_and_mend() {
        for (text, line, words) in [
            ("idel-timeout = \"5s\"", 3, "did you mean `idle-timeout`"),
            ("\ncolour = 1", 4, "--print-config"),
            ("read = \"a.pcap\"", 3, "unknown key `read`"),
            ("idle-timeout = \"30\"", 3, "the unit is missing"),
            ("idle-timeout = 1.5", 3, "text in quotes"),
            ("biflow = \"yes\"", 3, "true or false"),
            ("export-mtu = 5", 3, "5 is not in 512"),
            ("threads = -1", 3, "whole number"),
            ("[output]\nwrite = 1", 3, "unknown key `output`"),
            ("biflow = true\nbiflow = true", 4, "duplicate key"),
            ("biflow = ", 3, "value"),
        ] {
            let (at, what) = refused(text);
            assert_eq!(at, line, "{text}: {what}");
            assert!(what.contains(words), "{text}: {what}");
        }
    }

    #[test]
    fn says_what_a_key_goes_with() {
        let config = parse(&format!("{NEEDED}tls-cert = \"a.pem\"\n")).unwrap();
        let wrong = config.options().unwrap_err();
        assert!(wrong.what.contains("--tls-key"), "{wrong:?}");
    }

    #[test]
    fn says_what_is_empty() {
        let wrong = parse("interface = \"eth0\"\nwrite = []").unwrap_err();
        assert_eq!(wrong.line, Some(2));
        assert!(wrong.what.contains("`write` is empty"), "{wrong:?}");
    }

    #[test]
    fn says_what_is_missing() {
        for (text, words) in [("", "`interface`"), ("interface = \"eth0\"", "`write`")] {
            let wrong = parse(text).unwrap_err();
            assert!(
                wrong.line.is_none() && wrong.what.contains(words),
                "{wrong:?}"
            );
        }
    }
}
