// SPDX-License-Identifier: Apache-2.0

use std::path::PathBuf;
use std::time::Duration;

use proptest::prelude::*;
use turboflow_formats::{Format, ParquetTypes, RotateBy, TimeForm};
use turboflow_merge::Initiator;
use turboflow_packet::{DscpMark, Tunnel, TunnelSet};
use turboflow_record::TimeUnit;

use super::*;

fn read(text: &str) -> RunConfig {
    toml::from_str(text).unwrap()
}

#[test]
fn an_empty_file_is_the_default() {
    assert_eq!(read(""), RunConfig::default());
    let written = RunConfig::default().to_toml().unwrap();
    assert_eq!(read(&written), RunConfig::default(), "{written}");
}

#[test]
fn sections_are_read_into_types() {
    let run = read(
        "[source]\ninterfaces = \"eth0\"\nring-size = 65536\n[engine]\nname = \"other\"\n\
         [engine.other]\nmode = 1\n[flow]\ndecapsulate = true\n[timeouts]\nidle = \"none\"\n\
         linger = 0\n[[output]]\nto = \"a.csv\"\n[[output]]\nto = \"-\"\nformat = \"jsonl\"\n\
         mtu = 600\n[meter]\nmax-flows = \"1.5M\"\n",
    );
    assert_eq!(run.source.interfaces, ["eth0"]);
    assert_eq!(run.source.ring_size, Size(65_536));
    assert_eq!(run.engine.name, "other");
    assert_eq!(run.engine.options["other"]["mode"].as_integer(), Some(1));
    assert_eq!(run.flow.decapsulate, TunnelSet::ALL);
    assert_eq!(run.timeouts.idle, Timeout(None));
    assert_eq!(run.timeouts.linger, Linger(Some(0)));
    assert_eq!(run.outputs[0].format, None);
    assert_eq!(run.outputs[1].format, Some(Format::JsonLines));
    assert_eq!(run.outputs[1].mtu, Mtu(600));
    assert_eq!(run.meter.max_flows, Count(1_500_000));
}

#[test]
fn errors_say_what_to_write() {
    for (text, words) in [
        ("[timeouts]\nidle = \"30\"", "the unit is missing"),
        (
            "[timeouts]\nidle = 1.5",
            "text in quotes, or a whole number",
        ),
        ("[flow]\nbiflow = \"yes\"", "true or false"),
        ("[flow]\ndecapsulate = \"vlan\"", "unknown tunnel `vlan`"),
        ("[[output]]\nmtu = 5", "write a number from 512 to 65507"),
        ("[[output]]\ntime-unit = \"h\"", "write ms, us or ns"),
        ("[[output]]\nformat = \"xyz\"", "xyz"),
        ("[source]\ninterfaces = 1", "text, or a list of texts"),
        ("[meter]\nthreads = -1", "write a whole number"),
        ("[service]\nmetrics = \"9414\"", "127.0.0.1:9414"),
        ("[engine]\nspeed = 1", "unknown field `speed`"),
        ("[flows]\nbiflow = true", "unknown field `flows`"),
    ] {
        let error = toml::from_str::<RunConfig>(text).unwrap_err();
        assert!(error.message().contains(words), "{text}: {error}");
    }
}

#[test]
fn names_the_keys_that_differ() {
    let run = |text: &str| read(text);
    let ours = run("[timeouts]\nidle = \"1s\"\n[engine.xdp]\nmode = \"auto\"\n");
    let theirs = run(
        "[timeouts]\nidle = \"1000ms\"\nlinger = \"1s\"\n[engine.xdp]\nmode = \"native\"\n\
         [[output]]\nto = \"a.csv\"\n[meter]\nthreads = 2\n",
    );
    let keys = [
        "engine.xdp.mode",
        "timeouts.linger",
        "meter.threads",
        "output",
    ];
    assert_eq!(ours.keys_that_differ(&theirs), keys);
    assert_eq!(theirs.keys_that_differ(&theirs.clone()), [""; 0]);
}

fn time() -> impl Strategy<Value = Duration> {
    prop_oneof![1..1_000_000_u64, 1..i64::MAX as u64].prop_map(Duration::from_nanos)
}

fn timeout() -> impl Strategy<Value = Timeout> {
    proptest::option::of(1..i64::MAX as u64).prop_map(Timeout)
}

fn path() -> impl Strategy<Value = PathBuf> {
    "[a-zA-Z0-9/%\"'\\\\ ü#=\\[\\]-]{1,20}".prop_map(PathBuf::from)
}

fn some<T: std::fmt::Debug>(of: impl Strategy<Value = T>) -> impl Strategy<Value = Option<T>> {
    proptest::option::of(of)
}

fn source() -> impl Strategy<Value = SourceConfig> {
    let lists = (
        proptest::collection::vec(path(), 0..3),
        proptest::collection::vec(".*", 0..3),
        proptest::collection::vec(".*", 0..3),
    );
    let limits = (
        some(".*"),
        some(time()),
        some(1..u64::MAX),
        some(14..u32::MAX),
    );
    (lists, limits, any::<bool>(), any::<u64>(), any::<u64>()).prop_map(
        |(
            (files, interfaces, cpu_ports),
            (filter, duration, packets, snap),
            promiscuous,
            ring,
            readers,
        )| {
            SourceConfig {
                files,
                interfaces,
                cpu_ports,
                filter,
                duration: duration.map(Time),
                packets: packets.map(CountAboveZero),
                snap_length: snap.map(SnapLength),
                promiscuous,
                ring_size: Size(ring),
                readers: Count(readers),
            }
        },
    )
}

fn flow() -> impl Strategy<Value = FlowConfig> {
    (
        some(path()),
        any::<[bool; 4]>(),
        any::<u16>(),
        some(any::<u16>()),
    )
        .prop_map(
            |(definition, [biflow, first, reassemble, icmp_ports], tunnels, port)| FlowConfig {
                definition,
                biflow,
                initiator: match first {
                    true => Initiator::FirstSender,
                    false => Initiator::Auto,
                },
                decapsulate: Tunnel::ALL
                    .into_iter()
                    .filter(|tunnel| tunnels >> *tunnel as u8 & 1 == 1)
                    .collect(),
                reassemble,
                icmp_ports,
                int_dscp: match first {
                    true => DscpMark::NONE,
                    false => DscpMark::DEFAULT,
                },
                int_port: port.filter(|_| biflow),
                int_report_port: port,
            },
        )
}

fn output() -> impl Strategy<Value = OutputConfig> {
    let format = some(prop_oneof![
        Just(Format::Csv),
        Just(Format::JsonLines),
        Just(Format::Ipfix)
    ]);
    let time = prop_oneof![
        Just(TimeForm::Nanoseconds),
        Just(TimeForm::Seconds),
        Just(TimeForm::Iso)
    ];
    let types = prop::sample::select(ParquetTypes::NAMES.map(|(_, types)| types).to_vec());
    let format = (format, time, any::<bool>(), any::<bool>(), types);
    let unit = prop_oneof![Just(TimeUnit::Milliseconds), Just(TimeUnit::Nanoseconds)];
    let seconds = || (1..1_000_000_u64).prop_map(Duration::from_secs);
    let rotation = (
        some(seconds()),
        some(any::<u64>()),
        some(seconds()),
        some(any::<u64>()),
        some(path()),
        prop::sample::select(RotateBy::NAMES.map(|(_, by)| by).to_vec()),
    );
    let message = (
        some(1..u64::MAX),
        512..=65_507_u16,
        seconds(),
        any::<bool>(),
        unit,
    );
    let domain = (some(any::<u32>()), any::<u32>());
    let tls = (some(path()), some(path()), some(path()));
    (path(), format, rotation, message, domain, tls).prop_map(
        |(to, format, rotation, message, domain, tls)| OutputConfig {
            to,
            format: format.0,
            text_time: format.1,
            names: format.2,
            rotate: rotation.0.map(Rotation),
            rotate_size: rotation.1.map(Size),
            rotate_by: rotation.5,
            keep: rotation.2.map(Time),
            keep_size: rotation.3.map(Size),
            anonymize: rotation.4,
            identity: format.3,
            parquet_types: format.4,
            rate: message.0.map(CountAboveZero),
            mtu: Mtu(message.1),
            template_interval: Interval(message.2),
            options: message.3,
            time_unit: message.4,
            observation_domain: domain.0,
            enterprise_number: domain.1,
            tls_ca: tls.0,
            tls_cert: tls.1,
            tls_key: tls.2,
        },
    )
}

fn engine() -> impl Strategy<Value = EngineConfig> {
    let options: toml::Table = toml::from_str("mode = \"native\"\ndrop = true\n").unwrap();
    ("[a-z]{1,8}", some(any::<u64>()), any::<bool>()).prop_map(move |(name, slots, has)| {
        let table = ("xdp".to_owned(), options.clone());
        EngineConfig {
            name,
            microflow_slots: slots.map(Count),
            options: has.then_some(table).into_iter().collect(),
        }
    })
}

fn bridge() -> impl Strategy<Value = BridgeConfig> {
    (some(".*"), some(".*"), some(path()), any::<bool>()).prop_map(
        |(first, second, rules, dry_run)| BridgeConfig {
            first,
            second,
            rules,
            dry_run,
        },
    )
}

fn service() -> impl Strategy<Value = ServiceConfig> {
    let metrics = some(
        some((any::<std::net::IpAddr>(), any::<u16>()).prop_map(Into::into)).prop_map(MetricsAt),
    );
    let format = prop_oneof![
        Just(LogFormat::Auto),
        Just(LogFormat::Json),
        Just(LogFormat::Text)
    ];
    let flags = (any::<bool>(), some(any::<bool>()), any::<bool>());
    let names = (some(".*"), some(".*"));
    (metrics, names, some(path()), flags, format).prop_map(
        |(metrics, (user, exporter), ledger, (quiet, sync, follow_links), log_format)| {
            ServiceConfig {
                metrics,
                user,
                exporter,
                ledger,
                quiet,
                log_format,
                sync,
                follow_links,
            }
        },
    )
}

proptest! {
    #[test]
    fn a_written_configuration_reads_back_equal(
        source in source(),
        engine in engine(),
        flow in flow(),
        outputs in proptest::collection::vec(output(), 0..3),
        timeouts in (timeout(), timeout(), some(0..i64::MAX as u64), some(1..86_400_u64)),
        meter in (some(any::<u64>()), any::<u64>(), some(any::<u64>())),
        dpi in (any::<bool>(), any::<u64>()),
        service in service(),
        bridge in bridge(),
    ) {
        let run = RunConfig {
            source,
            bridge,
            engine,
            flow,
            timeouts: TimeoutsConfig {
                idle: timeouts.0,
                active: timeouts.1,
                linger: Linger(timeouts.2),
                align: timeouts.3.map(|seconds| Window(Duration::from_secs(seconds))),
            },
            meter: MeterConfig {
                threads: meter.0.map(Count),
                max_flows: Count(meter.1),
                seed: meter.2.map(Seed),
                dpi: dpi.0,
                dpi_flows: Count(dpi.1),
            },
            service,
            outputs,
        };
        let written = run.to_toml().unwrap();
        let read: RunConfig = toml::from_str(&written).unwrap();
        prop_assert_eq!(&read, &run, "{}", written);
        prop_assert!(read.keys_that_differ(&run).is_empty());
    }
}

#[test]
fn metrics_are_served_at_an_address() {
    let loopback = "127.0.0.1:9414".parse().unwrap();
    assert_eq!("127.0.0.1:9414".parse(), Ok(MetricsAt(Some(loopback))));
    assert!("[::1]:0".parse::<MetricsAt>().is_ok());
    assert_eq!("none".parse(), Ok(MetricsAt(None)));
    for text in ["", "9414", "localhost", "127.0.0.1", "127.0.0.1:70000"] {
        assert!(text.parse::<MetricsAt>().is_err(), "{text}");
    }
}
