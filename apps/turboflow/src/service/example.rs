// SPDX-License-Identifier: Apache-2.0
//! The configuration that `turboflow run --print-config` prints: every key with its default and the
//! help text of its flag.

use clap::{Args, Command};
use turboflow_run::{BridgeConfig, OutputConfig, RunConfig};

use crate::engines::{self, EngineKind};
use crate::keys::{Key, header, sections};
use crate::record::RecordArgs;

const HEAD: &str = "\
# Configuration of `turboflow run`. Every key has its default here; keys behind `#` are left out by
# default. `turboflow record ... --print-config` prints flags as a configuration file.
";
/// Width of comment lines.
const WIDTH: usize = 98;

/// Example values of keys that have no default, or that every configuration has to set.
const VALUES: [(Key, &str); 33] = [
    (Key::BridgeIn, "\"eth0\""),
    (Key::BridgeOut, "\"eth1\""),
    (Key::Rules, "\"/etc/turboflow/rules.toml\""),
    (Key::Interfaces, "[\"eth0\"]"),
    (Key::CpuPorts, "[\"eth1\"]"),
    (Key::Filter, "\"not port 22\""),
    (Key::Duration, "\"1h\""),
    (Key::Packets, "\"10M\""),
    (Key::SnapLength, "128"),
    (Key::MicroflowSlots, "16384"),
    (Key::Definition, "\"/etc/turboflow-definition.toml\""),
    (Key::IntPort, "5000"),
    (Key::IntReportPort, "5001"),
    (Key::Align, "\"1m\""),
    (Key::Threads, "1"),
    (Key::Seed, "1"),
    (Key::Metrics, "\"127.0.0.1:9414\""),
    (Key::User, "\"turboflow\""),
    (Key::Exporter, "\"tap-berlin-1\""),
    (Key::Ledger, "\"/var/lib/turboflow/ledger.json\""),
    (Key::Sync, "true"),
    (
        Key::To,
        "\"/var/lib/turboflow/flows-%Y%m%dT%H%M%S.parquet\"",
    ),
    (Key::Format, "\"csv\""),
    (Key::Rotate, "\"5m\""),
    (Key::RotateSize, "\"1GiB\""),
    (Key::Keep, "\"30d\""),
    (Key::KeepSize, "\"100GB\""),
    (Key::Anonymize, "\"/etc/turboflow/anonymize.key\""),
    (Key::Rate, "\"50k\""),
    (Key::ObservationDomain, "1"),
    (Key::TlsCa, "\"/etc/turboflow/authorities.pem\""),
    (Key::TlsCert, "\"/etc/turboflow/exporter.pem\""),
    (Key::TlsKeyFile, "\"/etc/turboflow/exporter.key\""),
];
/// The keys above that are not commented out.
const NOT_COMMENTED: [Key; 6] = [
    Key::Interfaces,
    Key::To,
    Key::Rotate,
    Key::Metrics,
    Key::Threads,
    Key::Sync,
];

/// Descriptions that differ from the help text of the flag.
const OTHER_DESCRIPTIONS: [(Key, &str); 12] = [
    (
        Key::Quiet,
        "No messages about the course of the run, and no summary, on standard error. Errors and \
         losses are still reported",
    ),
    (
        Key::Interfaces,
        "Interfaces to capture from. Capturing needs the capability CAP_NET_RAW",
    ),
    (
        Key::CpuPorts,
        "Instead of `interfaces`, for an engine outside this machine: interfaces that lead to the CPU \
         ports of its pipelines, whose reports are merged",
    ),
    (
        Key::Filter,
        "Only packets that match, in tcpdump's filter language, which `man pcap-filter` \
         describes; libpcap must be installed",
    ),
    (
        Key::BridgeIn,
        "One port of a bridge that passes or drops flows by rules, instead of `interfaces` in \
         [source] (docs/bridge.md)",
    ),
    (Key::BridgeOut, "The other port of the bridge"),
    (
        Key::Rules,
        "The rules of the bridge; SIGHUP reads them again",
    ),
    (
        Key::DryRun,
        "Forward everything, and count what the rules would drop",
    ),
    (
        Key::Promiscuous,
        "Capture all frames that an interface sees, not only those for this host",
    ),
    (
        Key::To,
        "Where flow records go. Each output is a section [[output]] with its own options. For a \
         file, the extension selects the format: .csv, .jsonl (also .ndjson, .json), .parquet, \
         .arrow or .ipfix; `-` is standard output. A collector is ipfix+udp://HOST:PORT, \
         ipfix+tcp://, ipfix+tls://, netflow9+udp:// or netflow5+udp://; a Kafka topic is \
         kafka://HOST:PORT/TOPIC. To merge elsewhere, send microflow records to `turboflow \
         collect` (microflows+udp://HOST:PORT, microflows+tcp:// or microflows+tls://), or write \
         them to FILE.records",
    ),
    (
        Key::ExportOptions,
        "Also send sampling, statistics and descriptions of elements. `false` for collectors that \
         count these options records as lost flow records (nfcapd 1.7 does so with IPFIX)",
    ),
    (
        Key::Format,
        "Format of a file if no extension selects it: csv, jsonl, parquet, arrow or ipfix",
    ),
];

/// Sections, each with the keys that a service may have.
fn printed() -> impl Iterator<Item = (&'static str, Vec<Key>)> {
    let is_used = |key: &Key| match key {
        Key::Files => false,
        Key::Of(option) => engines::is_of_services(option),
        _ => true,
    };
    let printed =
        sections().map(move |section| (section, Key::of(section).filter(is_used).collect()));
    printed.filter(|(_, keys): &(_, Vec<Key>)| !keys.is_empty())
}

/// The whole file.
pub(super) fn text() -> String {
    let command = RecordArgs::augment_args(Command::new("record"));
    let mut text = HEAD.to_owned();
    for (section, keys) in printed() {
        text += &format!("\n{}\n", header(section));
        for key in keys {
            text += &format!("\n{}{}\n", comment(&command, key), line(key));
        }
    }
    text
}

fn defaults() -> toml::Table {
    let section = |value: Result<toml::Table, _>| value.unwrap_or_default();
    let mut table = section(toml::Table::try_from(RunConfig::default()));
    let output = section(toml::Table::try_from(OutputConfig::default()));
    table.insert("output".to_owned(), output.into());
    let bridge = section(toml::Table::try_from(BridgeConfig::default()));
    table.insert("bridge".to_owned(), bridge.into());
    if let Some(toml::Value::Table(options)) = table.get_mut("engine") {
        for engine in engines::all() {
            let written = engine.written().map(|written| written.defaults());
            let name = engine.abilities().name.to_owned();
            options.insert(name, written.unwrap_or_default().into());
        }
    }
    table
}

fn default_of(key: Key) -> Option<toml::Value> {
    let mut table = defaults();
    for section in key.section().split('.') {
        table = table.remove(section)?.try_into().ok()?;
    }
    table.remove(key.name())
}

fn line(key: Key) -> String {
    let name = key.name();
    let own = VALUES.iter().find(|(its, _)| *its == key);
    let own = own.map(|(_, value)| *value);
    let default = default_of(key);
    let own = own.or(match (key, &default) {
        (Key::Of(option), None) => Some(option.example),
        _ => None,
    });
    match own {
        Some(value) if NOT_COMMENTED.contains(&key) => format!("{name} = {value}"),
        Some(value) => format!("# {name} = {value}"),
        None => {
            let value = default.map_or_else(String::new, |value| value.to_string());
            format!("{name} = {value}")
        }
    }
}

/// The description of a key, in comment lines.
fn comment(command: &Command, key: Key) -> String {
    let own = OTHER_DESCRIPTIONS.iter().find(|(its, _)| *its == key);
    let mut words = own.map_or_else(|| help(command, key), |(_, words)| (*words).to_owned());
    if key == Key::CpuPorts {
        let able = engines::all().filter(|engine| engine.has_cpu_ports());
        let able: Vec<_> = able.map(|engine| engine.abilities().name).collect();
        words += &format!(" (engine `{}`)", able.join("`, `"));
    }
    if key == Key::Engine {
        for engine in engines::all().filter(|engine| engine.meters_live()) {
            words += &format!("; `{}`: {}", engine.abilities().name, about(engine));
        }
    }
    let mut lines = vec![String::from("#")];
    for word in words.split_whitespace() {
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

/// The help text of the flag, with flags replaced by keys.
fn help(command: &Command, key: Key) -> String {
    let mut args = command.get_arguments();
    let arg = args.find(|arg| {
        let positional = arg.is_positional().then(|| arg.get_id().as_str());
        arg.get_long().or(positional) == Some(key.flag())
    });
    let help = arg.and_then(|arg| arg.get_long_help().or_else(|| arg.get_help()));
    let help = help.map(ToString::to_string).unwrap_or_default();
    // A help text is a summary without a full stop, an empty line, and details.
    let help = help.replace("\n\n", ". ");
    help.split(' ').map(in_keys).collect::<Vec<_>>().join(" ")
}

/// The description of an engine, with flags replaced by keys.
fn about(engine: &dyn EngineKind) -> String {
    let words = engine.about().split(' ').map(in_keys);
    words.collect::<Vec<_>>().join(" ")
}

/// A word, or the key if the word is a flag.
fn in_keys(word: &str) -> String {
    let start = word.len() - word.trim_start_matches('(').len();
    let (before, word) = word.split_at(start);
    if word == "-w" {
        return format!("{before}`{}`", Key::To.name());
    }
    let Some(rest) = word.strip_prefix("--") else {
        return format!("{before}{word}");
    };
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    let (flag, rest) = rest.split_at(end.unwrap_or(rest.len()));
    match Key::from_flag(flag) {
        Some(key) => format!("{before}`{}`{rest}", key.name()),
        None => format!("{before}{word}"),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use turboflow_run::Rotation;

    use super::super::reread::parse;
    use super::*;

    fn read(text: &str) -> RunConfig {
        parse(Path::new("turboflow.toml"), text).unwrap()
    }

    #[test]
    fn the_example_equals_the_defaults() {
        let rotate = "5m".parse::<Rotation>().unwrap();
        let meant = read(
            "[source]\ninterfaces = \"eth0\"\n[engine.xdp]\nmode = \"auto\"\n[[output]]\n\
             to = \"/var/lib/turboflow/flows-%Y%m%dT%H%M%S.parquet\"\nrotate = \"5m\"\n",
        );
        let example = read(&text());
        let default = RunConfig {
            outputs: vec![OutputConfig {
                to: meant.outputs[0].to.clone(),
                rotate: Some(rotate),
                ..OutputConfig::default()
            }],
            source: meant.source.clone(),
            meter: meant.meter.clone(),
            service: meant.service.clone(),
            ..RunConfig::default()
        };
        assert_eq!(example, default);
        assert_eq!(meant.outputs, default.outputs);
    }

    #[test]
    fn every_key_occurs_once_and_commented_values_are_valid() {
        let text = text();
        for (section, keys) in printed() {
            let (_, rest) = text
                .split_once(&format!("\n{}\n", header(section)))
                .unwrap();
            let own = rest.split("\n[").next().unwrap();
            for key in keys {
                let is_it = |line: &&str| {
                    let line = line.trim_start_matches("# ");
                    line.starts_with(&format!("{} = ", key.name()))
                };
                assert_eq!(own.lines().filter(is_it).count(), 1, "{key:?}");
            }
        }
        let (before, rest) = text.split_once("\n[bridge]\n").unwrap();
        let (bridge, after) = rest.split_once("\n[").unwrap();
        // `[bridge]` replaces the interfaces, so both cannot be in force at once.
        let all = uncommented(&format!("{before}\n[{after}"));
        let all = read(&all);
        assert_eq!(all.engine.options["xdp"].len(), 6);
        assert!(all.outputs[0].tls_key.is_some() && all.source.filter.is_some());
        let bridge = uncommented(&format!("[bridge]\n{bridge}\n[[output]]\nto = \"a.csv\"\n"));
        assert_eq!(read(&bridge).source.interfaces, ["eth0", "eth1"]);
    }

    /// The configuration with all commented-out values in force.
    fn uncommented(text: &str) -> String {
        let line = |line: &str| match line.strip_prefix("# ") {
            Some(rest)
                if rest
                    .split_once(" = ")
                    .is_some_and(|(key, _)| !key.contains(' ')) =>
            {
                format!("{rest}\n")
            }
            _ => format!("{line}\n"),
        };
        text.lines().map(line).collect()
    }

    #[test]
    fn the_example_is_readable_and_names_keys() {
        let text = text();
        assert!(text.lines().all(|line| line.chars().count() <= 100));
        let flags: Vec<_> = text
            .split_whitespace()
            .filter(|word| word.trim_start_matches('(').starts_with('-') && *word != "-")
            .collect();
        // The second is one of `head`.
        assert_eq!(flags, ["--print-config`", "-c"]);
    }
}
