// SPDX-License-Identifier: Apache-2.0

use clap::{Args, Command, FromArgMatches};
use turboflow_run::Mtu;

use super::*;
use crate::record::RecordArgs;

const NEEDED: &str = "[source]\ninterfaces = \"eth0\"\n[[output]]\nto = \"a.csv\"\n";
const NEEDED_ONCE: &str = "interface = \"eth0\"\nwrite = [\"a.csv\", \"b.jsonl\"]\n";

fn command() -> Command {
    RecordArgs::augment_args(Command::new("record")).no_binary_name(true)
}

fn typed(words: &[&str]) -> RunConfig {
    let matches = command().try_get_matches_from(words).unwrap();
    RecordArgs::from_arg_matches(&matches)
        .unwrap()
        .into_run()
        .unwrap()
}

fn read(text: &str) -> RunConfig {
    parse(text).unwrap().run
}

/// For each flag, a value other than the default. Used as a flag, as an old key, and as a key.
const VALUES: [(Key, &str); 59] = [
    (Key::Interfaces, "\"eth0\""),
    (Key::CpuPorts, "\"eth1\""),
    (Key::Filter, "\"tcp port 443\""),
    (Key::Duration, "\"90s\""),
    (Key::Packets, "\"10k\""),
    (Key::SnapLength, "256"),
    (Key::Promiscuous, "true"),
    (Key::RingSize, "\"1MiB\""),
    (Key::Readers, "3"),
    (Key::Engine, "\"xdp\""),
    (Key::MicroflowSlots, "4096"),
    (Key::Definition, "\"own.toml\""),
    (Key::Biflow, "true"),
    (Key::Initiator, "\"first\""),
    (Key::Decapsulate, "\"gre,vxlan\""),
    (Key::Reassemble, "true"),
    (Key::IcmpPorts, "true"),
    (Key::IntDscp, "\"32/32\""),
    (Key::IntPort, "5000"),
    (Key::IntReportPort, "5001"),
    (Key::IdleTimeout, "\"5s\""),
    (Key::ActiveTimeout, "\"none\""),
    (Key::Linger, "\"0\""),
    (Key::Align, "\"5m\""),
    (Key::Threads, "2"),
    (Key::MaxFlows, "\"1.5M\""),
    (Key::Seed, "\"18446744073709551615\""),
    (Key::Dpi, "true"),
    (Key::DpiFlows, "\"100k\""),
    (Key::Metrics, "\"none\""),
    (Key::User, "\"turboflow\""),
    (Key::Exporter, "\"tap-7\""),
    (Key::Ledger, "\"ledger.json\""),
    (Key::Quiet, "true"),
    (Key::LogFormat, "\"json\""),
    (Key::Sync, "true"),
    (Key::FollowLinks, "true"),
    (Key::To, "\"ipfix+tls://127.0.0.1:4740\""),
    (Key::Format, "\"ipfix\""),
    (Key::TextTime, "\"iso\""),
    (Key::Names, "true"),
    (Key::ParquetTypes, "\"lake\""),
    (Key::Rotate, "\"5m\""),
    (Key::RotateSize, "\"1GiB\""),
    (Key::RotateBy, "\"record\""),
    (Key::Keep, "\"30d\""),
    (Key::KeepSize, "\"100GB\""),
    (Key::Anonymize, "\"anonymize.key\""),
    (Key::Identity, "true"),
    (Key::Rate, "\"50k\""),
    (Key::Mtu, "600"),
    (Key::TemplateInterval, "\"1m\""),
    (Key::ExportOptions, "true"),
    (Key::TimeUnit, "\"ns\""),
    (Key::ObservationDomain, "7"),
    (Key::EnterpriseNumber, "9"),
    (Key::TlsCa, "\"ca.pem\""),
    (Key::TlsCert, "\"cert.pem\""),
    (Key::TlsKeyFile, "\"key.pem\""),
];

/// One output of each kind, so that every option applies to one.
const OUTPUTS: [&str; 6] = [
    "a.csv",
    "-",
    "f-%H.ipfix",
    "g.parquet",
    "ipfix+tls://127.0.0.1:4739",
    "ipfix+udp://127.0.0.1:4739",
];

fn value_of(key: Key) -> &'static str {
    if let Key::Of(option) = key {
        return option.example;
    }
    let found = VALUES.iter().find(|(its, _)| *its == key);
    found
        .unwrap_or_else(|| panic!("no value of {key:?} to test with"))
        .1
}

/// The command-line words that set a value.
fn words(key: Key) -> Vec<String> {
    let (flag, value) = (key.flag(), value_of(key).trim_matches('"'));
    match (key, value) {
        (Key::Filter, value) => vec![value.to_owned()],
        (_, "true") => vec![format!("--{flag}")],
        (_, value) => vec![format!("--{flag}={value}")],
    }
}

/// A file in sections that sets values, with outputs of each kind.
fn sections(keys: &[Key]) -> String {
    let mut root = toml::Table::new();
    let value = |key: Key| -> toml::Value {
        match (key.is_inverted(), value_of(key)) {
            (true, _) => false.into(),
            (false, text) => text.parse().unwrap(),
        }
    };
    for key in keys.iter().filter(|key| key.section() != OUTPUT) {
        let mut table = &mut root;
        for section in key.section().split('.') {
            let inner = table
                .entry(section)
                .or_insert_with(|| toml::Table::new().into());
            table = inner.as_table_mut().unwrap();
        }
        table.insert(key.name().to_owned(), value(*key));
    }
    let outputs = OUTPUTS.iter().copied();
    let more = keys
        .contains(&Key::To)
        .then(|| value_of(Key::To).trim_matches('"'));
    let outputs = outputs.chain(more).map(|to| {
        let mut output = toml::Table::new();
        output.insert("to".to_owned(), to.into());
        for key in keys
            .iter()
            .filter(|key| key.section() == OUTPUT && **key != Key::To)
        {
            let format = keys.contains(&Key::Format).then(|| value_of(Key::Format));
            let format = format.map(|text| text.trim_matches('"').parse().unwrap());
            if crate::record::applies_to(*key, Path::new(to), format, true) {
                output.insert(key.name().to_owned(), value(*key));
            }
        }
        toml::Value::from(output)
    });
    root.insert(OUTPUT.to_owned(), outputs.collect::<Vec<_>>().into());
    root.to_string()
}

/// The keys that a flag requires.
fn with_needed(key: Key) -> Vec<Key> {
    let mut keys = vec![Key::Interfaces, key];
    keys.extend(match key {
        Key::TlsCert => Some(Key::TlsKeyFile),
        Key::TlsKeyFile => Some(Key::TlsCert),
        _ => None,
    });
    keys.dedup();
    keys
}

#[test]
fn flags_keys_and_old_keys_are_equivalent() {
    for arg in command().get_arguments() {
        let positional = arg.is_positional().then(|| arg.get_id().as_str());
        let flag = arg.get_long().or(positional).unwrap();
        if matches!(flag, "help" | "print-config" | "read") {
            continue;
        }
        let key = Key::from_flag(flag).unwrap_or_else(|| panic!("--{flag} has no key"));
        let keys = with_needed(key);
        let outputs = OUTPUTS.map(|to| format!("--write={to}"));
        let mut line: Vec<_> = outputs
            .into_iter()
            .chain(keys.iter().copied().flat_map(words))
            .collect();
        line.sort_by_key(|word| !word.starts_with("--"));
        let line: Vec<_> = line.iter().map(String::as_str).collect();
        let meant = typed(&line);
        let plain: Vec<_> = OUTPUTS.iter().map(|to| format!("--write={to}")).collect();
        let plain: Vec<_> = plain
            .iter()
            .map(String::as_str)
            .chain(["--interface=eth0"])
            .collect();
        assert!(
            key == Key::Interfaces || meant != typed(&plain),
            "{key:?} changes nothing"
        );
        assert_eq!(read(&sections(&keys)), meant, "{key:?} in sections");

        let mut write = OUTPUTS.to_vec();
        write.extend(
            keys.contains(&Key::To)
                .then(|| value_of(Key::To).trim_matches('"')),
        );
        let mut once = format!("write = {write:?}\n");
        for key in keys.iter().filter(|key| **key != Key::To) {
            once += &format!("{} = {}\n", key.flag(), value_of(*key));
        }
        let Read { run, renamed } = parse(&once).unwrap();
        assert_eq!(run, meant, "{once}");
        assert_eq!(renamed.len(), once.lines().count(), "{renamed:?}");
        // The printed configuration reads back equal.
        assert_eq!(read(&meant.to_toml().unwrap()), meant, "{key:?} printed");
    }
}

#[test]
fn all_flags_together_equal_all_keys_together() {
    // A bridge has ports instead of interfaces, and its flags belong to another command.
    let apart = |key: &Key| !matches!(key, Key::Files) && key.section() != "bridge";
    let keys: Vec<_> = Key::all().filter(apart).collect();
    let mut line: Vec<String> = OUTPUTS.map(|to| format!("--write={to}")).to_vec();
    line.extend(keys.iter().copied().flat_map(words));
    line.sort_by_key(|word| !word.starts_with("--"));
    let line: Vec<_> = line.iter().map(String::as_str).collect();
    assert_eq!(read(&sections(&keys)), typed(&line));
}

#[test]
fn every_output_has_options_of_its_own() {
    let run = read(
        "[source]\ninterfaces = [\"eth0\", \"eth1\"]\n\
         [[output]]\nto = \"ipfix+tls://a.example\"\nobservation-domain = 6\ntls-ca = \"a.pem\"\n\
         [[output]]\nto = \"ipfix+udp://b.example\"\nmtu = 1_200\nrate = \"1k\"\n",
    );
    let [first, second] = &run.outputs[..] else {
        panic!("{run:?}")
    };
    assert_eq!((first.mtu, second.mtu), (Mtu(1_400), Mtu(1_200)));
    assert_eq!(
        (first.observation_domain, second.observation_domain),
        (Some(6), None)
    );
    assert!(first.tls_ca.is_some() && second.tls_ca.is_none());
    assert!(first.rate.is_none() && second.rate.is_some());
}

#[test]
fn old_keys_are_reported_with_their_new_names() {
    let text = format!("{NEEDED_ONCE}\nidle-timeout = \"5s\"\nno-promiscuous = true\n");
    let Read { run, renamed } = parse(&text).unwrap();
    let said: Vec<_> = renamed
        .iter()
        .map(|(line, what)| format!("{line}: {what}"))
        .collect();
    assert_eq!(
        said,
        [
            "1: \"interface\" is now \"interfaces\" in [source]",
            "2: \"write\" is now \"to\" in [[output]]",
            "4: \"idle-timeout\" is now \"idle\" in [timeouts]",
            "5: \"no-promiscuous\" is now \"promiscuous\" in [source], with the opposite value",
        ]
    );
    assert!(!run.source.promiscuous);
}

#[test]
fn old_and_new_keys_mix_unless_both_set_one_value() {
    let mixed = "interface = \"eth0\"\nexport-mtu = 600\nengine = \"software\"\n[timeouts]\n\
                 idle = \"5s\"\n[[output]]\nto = \"ipfix+udp://a.example\"\n";
    let Read { run, renamed } = parse(mixed).unwrap();
    assert_eq!((run.outputs[0].mtu, renamed.len()), (Mtu(600), 3));
    for (more, line, words) in [
        (
            "idle-timeout = \"1s\"\n",
            1,
            "`idle-timeout` and `idle` in [timeouts]",
        ),
        (
            "export-mtu = 700\n",
            1,
            "`export-mtu` and `mtu` in [[output]]",
        ),
        (
            "interface = \"eth1\"\n",
            1,
            "`interface` and `interfaces` in [source]",
        ),
    ] {
        let text = format!(
            "{more}[source]\ninterfaces = \"eth0\"\n[timeouts]\nidle = \"5s\"\n[[output]]\n\
             to = \"ipfix+udp://a.example\"\nmtu = 600\n"
        );
        let wrong = parse(&text).unwrap_err();
        assert_eq!(wrong.line, Some(line), "{wrong:?}");
        assert!(wrong.what.contains(words), "{wrong:?}");
    }
}

#[test]
fn refuses_invalid_old_keys_with_line_and_remedy() {
    for (text, line, words) in [
        (
            "idel-timeout = \"5s\"",
            3,
            "did you mean `idle` in [timeouts]?",
        ),
        ("\ncolour = 1", 4, "--print-config"),
        ("read = \"a.pcap\"", 3, "unknown key `read`"),
        (
            "idle-timeout = \"30\"",
            3,
            "`idle-timeout`: the unit is missing",
        ),
        ("idle-timeout = 1.5", 3, "text in quotes"),
        ("biflow = \"yes\"", 3, "true or false"),
        ("no-export-options = 1", 3, "true or false"),
        ("export-mtu = 5", 3, "write a number from 512 to 65507"),
        ("threads = -1", 3, "whole number"),
        ("[outputs]\nwrite = 1", 3, "did you mean [[output]]?"),
        ("biflow = true\nbiflow = true", 4, "duplicate key"),
        ("biflow = ", 3, "value"),
        ("engine = \"fpga\"", 3, "software or xdp or offload or p4"),
        (
            "format = \"ipfix\"",
            3,
            "a.csv, whose extension selects the format",
        ),
        (
            "rotate = \"5m\"",
            3,
            "needs an output whose name has a time",
        ),
        ("tls-ca = \"a.pem\"", 3, "for collectors over TLS"),
    ] {
        let wrong = parse(&format!("{NEEDED_ONCE}{text}")).unwrap_err();
        assert_eq!(wrong.line, Some(line), "{text}: {wrong:?}");
        assert!(wrong.what.contains(words), "{text}: {wrong:?}");
    }
}

#[test]
fn refuses_invalid_keys_with_line_and_remedy() {
    for (text, line, words) in [
        (
            "[timeouts]\nidel = \"5s\"",
            6,
            "unknown key `idel` in [timeouts]; did you mean `idle`?",
        ),
        (
            "[timeouts]\nidle-timeout = \"5s\"",
            6,
            "did you mean `idle` in [timeouts]?",
        ),
        (
            "[flow]\nidle = \"5s\"",
            6,
            "did you mean `idle` in [timeouts]?",
        ),
        ("[flow]\n\ncolour = 1", 7, "--print-config"),
        ("[flows]\nbiflow = true", 5, "did you mean [flow]?"),
        (
            "[timeouts]\nidle = \"30\"",
            6,
            "`idle`: the unit is missing",
        ),
        ("[timeouts]\nidle = 1.5", 6, "`idle`: floating point"),
        ("[flow]\nbiflow = \"yes\"", 6, "true or false"),
        ("[meter]\nthreads = -1", 6, "whole number"),
        (
            "[engine]\nname = \"fpga\"",
            6,
            "software or xdp or offload or p4",
        ),
        (
            "[engine.xdp]\nmode = \"fast\"",
            6,
            "`mode`: there is no `fast`, expected one of `auto`",
        ),
        (
            "[engine.xdp]\nspeed = 1",
            6,
            "unknown key `speed` in [engine.xdp]",
        ),
        (
            "[engine.fpga]\nspeed = 1",
            5,
            "unknown key `fpga` in [engine]",
        ),
        ("[[output]]\nformat = \"csv\"", 5, "has no `to`"),
        ("[[output]]\nto = \"-\"\nformat = \"xyz\"", 7, "`format`: "),
        (
            "[[output]]\nto = \"a.ipfix\"\nmtu = 5",
            7,
            "`mtu`: write a number from 512 to 65507",
        ),
        (
            "[timeouts]\nidle = \"5s\"\nidle = \"5s\"",
            7,
            "duplicate key",
        ),
    ] {
        let wrong = parse(&format!("{NEEDED}{text}")).unwrap_err();
        assert_eq!(wrong.line, Some(line), "{text}: {wrong:?}");
        assert!(wrong.what.contains(words), "{text}: {wrong:?}");
    }
    let wrong = parse("[output]\nto = \"a.csv\"").unwrap_err();
    assert!(wrong.what.contains("write [[output]]"), "{wrong:?}");
}

#[test]
fn takes_the_port_of_a_switch_for_interfaces() {
    let text =
        "[source]\ncpu-ports = \"eth1\"\n[engine]\nname = \"p4\"\n[[output]]\nto = \"a.csv\"\n";
    let run = parse(text).unwrap().run;
    assert_eq!(run.source.cpu_ports, ["eth1"]);
    assert!(run.is_live());
}

#[test]
fn reports_what_is_empty_or_missing() {
    for (text, line, words) in [
        (
            "interface = \"eth0\"\nwrite = []",
            Some(2),
            "`write` is empty",
        ),
        (
            "interface = []\nwrite = \"a.csv\"",
            Some(1),
            "`interface` is empty",
        ),
        (
            "[source]\ninterfaces = []",
            Some(2),
            "`interfaces` is empty",
        ),
        ("", None, "the key `interfaces` in [source] is missing"),
        ("interface = \"eth0\"", None, "[[output]] is missing"),
    ] {
        let wrong = parse(text).unwrap_err();
        assert_eq!(wrong.line, line, "{wrong:?}");
        assert!(wrong.what.contains(words), "{wrong:?}");
    }
}
