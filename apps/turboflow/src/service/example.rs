// SPDX-License-Identifier: Apache-2.0
//! The configuration that `turboflow run --print-config` prints, made of the command line's own
//! declarations.

use clap::Arg;

use super::keys::{Takes, default_of, key_of, record_command};

const HEAD: &str = "\
# Configuration of `turboflow run`. Every key is the flag of that name of `turboflow record` and
# has its default here; keys behind `#` are left out by default. What may be given several times
# is a list.
";
/// Characters of a line of comment.
const WIDTH: usize = 98;

/// What is written behind keys that have no default.
const VALUES: [(&str, &str); 19] = [
    ("interface", "[\"eth0\"]"),
    (
        "write",
        "[\"/var/lib/turboflow/flows-%Y%m%dT%H%M%S.parquet\"]",
    ),
    ("rotate", "\"5m\""),
    ("rotate-size", "\"1GiB\""),
    ("filter", "\"not port 22\""),
    ("user", "\"turboflow\""),
    ("format", "\"csv\""),
    ("ledger", "\"/var/lib/turboflow/ledger.json\""),
    ("duration", "\"1h\""),
    ("packets", "\"10M\""),
    ("snap-length", "128"),
    ("unparsed-to", "\"/var/lib/turboflow/unparsed.pcap\""),
    ("definition", "\"/etc/turboflow-definition.toml\""),
    ("decapsulate", "\"vxlan,gre\""),
    ("export-rate", "\"50k\""),
    ("observation-domain", "1"),
    ("tls-ca", "\"/etc/turboflow/authorities.pem\""),
    ("tls-cert", "\"/etc/turboflow/exporter.pem\""),
    ("tls-key", "\"/etc/turboflow/exporter.key\""),
];
/// What every configuration has to say for itself, and what goes with it.
const NEEDED: [&str; 3] = ["interface", "write", "rotate"];

/// The whole file.
pub(super) fn text() -> String {
    let command = record_command();
    let mut text = HEAD.to_owned();
    let mut heading = "";
    let args: Vec<&Arg> = command.get_arguments().collect();
    for arg in &args {
        let Some(key) = key_of(arg) else { continue };
        let own = arg.get_help_heading().unwrap_or_default();
        if own != heading {
            heading = own;
            text += &format!("\n## {heading}\n");
        }
        text += &format!("\n{}{}\n", comment(arg), line(arg, key));
    }
    text
}

fn line(arg: &Arg, key: &str) -> String {
    if Takes::of(arg) == Takes::Flag {
        return format!("{key} = false");
    }
    if let Some(default) = default_of(arg) {
        return match default.parse::<u64>() {
            Ok(number) => format!("{key} = {number}"),
            Err(_) => format!("{key} = \"{default}\""),
        };
    }
    let value = VALUES.iter().find(|(name, _)| *name == key);
    let value = value.map_or("1", |(_, value)| value);
    match NEEDED.contains(&key) {
        true => format!("{key} = {value}"),
        false => format!("# {key} = {value}"),
    }
}

/// What the option's help says, in lines of comment.
fn comment(arg: &Arg) -> String {
    let help = arg.get_long_help().or_else(|| arg.get_help());
    let help = help.map(ToString::to_string).unwrap_or_default();
    let mut lines = vec![String::from("#")];
    for word in help.split_whitespace() {
        let last = lines.last().map_or(0, String::len);
        if last + 1 + word.len() > WIDTH {
            lines.push(String::from("#"));
        }
        if let Some(line) = lines.last_mut() {
            *line += " ";
            *line += word;
        }
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches;

    use super::super::config::parse;
    use super::super::keys::SERVICE_DEFAULTS;
    use super::*;
    use crate::record::RecordArgs;

    #[test]
    fn the_example_equals_the_defaults() {
        let write = "write=/var/lib/turboflow/flows-%Y%m%dT%H%M%S.parquet";
        let needed = ["interface=eth0", write, "rotate=5m"];
        let needed = needed.iter().map(|word| format!("--{word}"));
        let own = SERVICE_DEFAULTS
            .iter()
            .map(|(key, value)| format!("--{key}={value}"));
        let matches = record_command().try_get_matches_from(needed.chain(own));
        let defaults = RecordArgs::from_arg_matches(&matches.unwrap()).unwrap();
        let example = parse(&text()).unwrap().options().unwrap();
        assert_eq!(format!("{example:?}"), format!("{defaults:?}"));
    }

    #[test]
    fn every_flag_of_a_live_recording_has_a_key_and_what_is_left_out_is_right_too() {
        let text = text();
        for arg in record_command().get_arguments() {
            let Some(key) = key_of(arg) else {
                assert_eq!(arg.get_id(), "read", "has no key");
                continue;
            };
            let found = text.lines().filter(|line| {
                line.trim_start_matches("# ")
                    .starts_with(&format!("{key} = "))
            });
            assert_eq!(found.count(), 1, "{key}");
        }
        let all: String = text
            .lines()
            .map(|line| match line.strip_prefix("# ") {
                Some(rest)
                    if rest
                        .split_once(" = ")
                        .is_some_and(|(key, _)| !key.contains(' ')) =>
                {
                    format!("{rest}\n")
                }
                _ => format!("{line}\n"),
            })
            .collect();
        parse(&all).unwrap().options().unwrap();
    }

    #[test]
    fn the_example_is_readable() {
        assert!(text().lines().all(|line| line.chars().count() <= 100));
    }
}
