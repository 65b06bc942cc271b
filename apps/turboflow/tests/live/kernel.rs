// SPDX-License-Identifier: Apache-2.0
//! `--engine xdp`: the XDP engine on a veth pair, whose records must equal those of the packet
//! ring.

use std::collections::BTreeMap;
use std::process::Stdio;

use crate::captures::replayed;
use crate::exact::{NO_TIMEOUTS, equal, of_file};
use crate::link::{Ended, FAR, Link, NEAR};
use crate::service::{conserves, metrics, page, serve};
use crate::silence::{PACKETS, PACKETS_NON_IP, flows_leave, options};
use crate::support::{Folder, command, office, turboflow};

pub(crate) const XDP: [&str; 2] = ["--engine", "xdp"];
pub(crate) const OFFICE_PACKETS: &str = "13035";

/// Replays a capture with few and with many slots, in both table designs and both modes, on several
/// threads. The records are those of the file.
#[test]
fn a_replay_gives_the_records_of_its_file() {
    let Some(link) = Link::for_xdp() else { return };
    let expected = of_file(&office(), &[]).1;
    for options in [
        "--threads 1",
        "--threads 3 --table row-lock",
        "--xdp-mode generic --microflow-slots 7",
        "--xdp-mode native --microflow-slots 1 --table row-lock",
        "--xdp-clock coarse",
    ] {
        let fixed = ["-w", "live.csv", "--packets", OFFICE_PACKETS];
        let options: Vec<&str> = options.split(' ').collect();
        let options = [&fixed, &XDP[..], &NO_TIMEOUTS, &options].concat();
        let recording = link.record(&[FAR], &options);
        assert!(link.replay(&office(), &["--pps", "10000"]));
        let ended = recording.end().balanced(0);
        assert_eq!(ended.count("source_seen"), 13_035, "{options:?}");
        assert_eq!(ended.count("packets_non_ip"), 31);
        equal(&ended, &expected);
    }
}

#[test]
fn real_captures_give_the_records_of_their_files() {
    let Some(link) = Link::for_xdp() else { return };
    for table in ["per-cpu", "row-lock"] {
        replayed(&link, &["--engine", "xdp", "--table", table]);
    }
}

pub(crate) const BY_SIZE: &str = r#"
[[feature]]
name = "packets"
op = "count"
[[feature]]
name = "lengths"
op = "list"
of = "payload_length"
k = 20
[[feature]]
name = "variance"
op = "variance"
of = "payload_length"
[[feature]]
name = "sizes"
op = "histogram"
of = "ip_length"
edges = [64, 128, 256, 512, 1024]
[[feature]]
name = "options"
op = "bit_or"
of = "tcp_options"
[[feature]]
name = "smallest_window"
op = "min"
of = "tcp_window"
[[feature]]
name = "last_sequence"
op = "last"
of = "tcp_sequence"
"#;

const BY_TAG: &str = r#"
[key]
fields = ["source_address", "destination_address", "vlan", "inner_vlan", "ether_type"]
[[feature]]
name = "packets"
op = "count"
[[feature]]
name = "ports"
op = "max"
of = "tcp_acknowledgement"
"#;

/// Replays a capture with definitions of two keys, in both table designs. The records are those of
/// the file.
#[test]
fn a_definition_gives_the_records_of_its_file() {
    let Some(link) = Link::for_xdp() else { return };
    // Tags have to be in the frames, where the program reads them.
    for end in [NEAR, FAR] {
        link.shell(&format!("ethtool -K {end} rxvlan off txvlan off"));
    }
    let folder = Folder::new();
    for (name, text) in [("by-size.toml", BY_SIZE), ("by-tag.toml", BY_TAG)] {
        let definition = folder.write(name, text);
        let expected = of_file(&office(), &["--definition", &definition]).1;
        for options in [
            "--threads 1",
            "--threads 2 --table row-lock --microflow-slots 7",
            "--xdp-mode generic --microflow-slots 1",
        ] {
            let fixed = ["-w", "live.csv", "--packets", OFFICE_PACKETS];
            let options: Vec<&str> = options.split(' ').collect();
            let definition = ["--definition", &definition];
            let options = [&fixed, &XDP[..], &NO_TIMEOUTS, &definition, &options].concat();
            let recording = link.record(&[FAR], &options);
            // Lists and last values also depend on the order of packets.
            assert!(link.replay(&office(), &["--pps", "10000"]));
            let ended = recording.end().balanced(0);
            assert_eq!(ended.count("source_seen"), 13_035, "{options:?}");
            equal(&ended, &expected);
        }
    }
}

/// Inputs that only this engine has, in the key and as a feature.
#[test]
fn interface_and_queue_are_those_of_arrival() {
    let Some(link) = Link::for_xdp() else { return };
    let folder = Folder::new();
    let definition = r#"
[key]
fields = ["ingress_interface", "receive_queue"]
[[feature]]
name = "packets"
op = "count"
[[feature]]
name = "highest_queue"
op = "max"
of = "receive_queue"
"#;
    let definition = folder.write("by-interface.toml", definition);
    let index = link
        .inside("cat")
        .arg(format!("/sys/class/net/{FAR}/ifindex"))
        .output();
    let index = String::from_utf8(index.unwrap().stdout).unwrap();
    let fixed = [
        "-w",
        "live.csv",
        "--packets",
        "200",
        "--definition",
        &definition,
    ];
    let options = [&fixed[..], &XDP, &NO_TIMEOUTS].concat();
    let recording = link.record(&[FAR], &options);
    assert!(link.replay(&office(), &["--pps", "10000", "--limit", "200"]));
    let ended = recording.end().balanced(0);
    let packets = ended.count("packets_recorded");
    assert_eq!(
        ended.folder.read("live.csv"),
        format!(
            "ingress_interface,receive_queue,packets,highest_queue,end_reason\n{},0,{packets},0,4\n",
            index.trim()
        )
    );
}

#[test]
fn flows_expire_on_a_silent_link() {
    let Some(link) = Link::for_xdp() else { return };
    for table in ["1 --table per-cpu", "2 --table row-lock"] {
        let mut recording = link.record(&[FAR], &[&options(table), &XDP[..]].concat());
        flows_leave(&link, &mut recording);
        let ended = recording.interrupt().balanced(0);
        assert_eq!(ended.count("packets_received"), PACKETS);
        assert_eq!(ended.count("packets_recorded"), PACKETS - PACKETS_NON_IP);
    }
}

/// Once attached to its interfaces, the program needs no root.
#[test]
fn privileges_can_be_dropped() {
    let Some(link) = Link::for_xdp() else { return };
    let folder = Folder::new();
    let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(folder.path(), everybody).unwrap();
    let args = "record -w live.csv --ledger ledger.json --user daemon --table row-lock -i";
    let mut args: Vec<&str> = args.split(' ').collect();
    args.extend([FAR].iter().chain(&XDP));
    let recording = link.start(folder, &args, &[]);
    assert!(link.replay(&office(), &["--pps", "5000"]));
    let ended = recording.interrupt().balanced(0);
    assert_eq!(ended.count("source_seen"), 13_035);
}

/// Replays the office sample while the program is stopped, with tables in which every packet evicts
/// a record.
fn with_a_full_ring(link: &Link, options: &[&str]) -> Ended {
    let fixed = "-w live.csv --ring-size 64KiB --microflow-slots 1 --linger none";
    let fixed: Vec<&str> = fixed.split(' ').collect();
    let recording = link.record(&[FAR], &[&fixed, options, &XDP[..]].concat());
    recording.signal("STOP");
    assert!(link.replay(&office(), &["--topspeed"]));
    recording.signal("CONT");
    recording.interrupt().balanced(1)
}

#[test]
fn a_full_ring_is_counted_exactly() {
    let Some(link) = Link::for_xdp() else { return };
    for table in ["per-cpu", "row-lock"] {
        let ended = with_a_full_ring(&link, &["--table", table]);
        assert_eq!(ended.count("source_seen"), 13_035);
        assert!(ended.count("source_dropped") > 1_000);
        assert!(ended.count("microflows_dropped") > 1_000);
        assert!(ended.said.contains("--ring-size"), "{}", ended.said);
        incomplete_flows_list_what_they_miss(&ended);
    }
}

/// Flows with a key other than the 5-tuple are listed too, even if records have additional words.
#[test]
fn incomplete_flows_of_any_definition_are_named() {
    let Some(link) = Link::for_xdp() else { return };
    let folder = Folder::new();
    let text = "[key]\nfields = [\"source_address\", \"vlan\"]\n\
                [[feature]]\nname = \"window\"\nop = \"max\"\nof = \"tcp_window\"\n";
    let path = folder.write("d.toml", text);
    for table in ["per-cpu", "row-lock"] {
        let ended = with_a_full_ring(&link, &["--table", table, "--definition", &path]);
        let short = ended.ledger["flows_short"].as_array().unwrap();
        let sum =
            |name: &str| -> u64 { short.iter().map(|flow| flow[name].as_u64().unwrap()).sum() };
        assert_eq!(sum("packets_dropped"), ended.count("source_dropped"));
        assert_eq!(sum("microflows_dropped"), ended.count("microflows_dropped"));
        assert!(short.iter().any(|flow| flow["vlan"].is_u64()));
        assert!(short.iter().all(|flow| flow["src_addr"].is_string()));
    }
}

/// For every flow, the recorded part plus what the ledger lists as missing equals the flow in the
/// file.
fn incomplete_flows_list_what_they_miss(ended: &Ended) {
    let mut totals = totals(&ended.folder.read("live.csv"));
    let short = ended.ledger["flows_short"].as_array().unwrap();
    assert!(!short.is_empty());
    assert_eq!(ended.count("microflows_dropped_unnamed"), 0);
    let mut records = 0;
    for flow in short {
        let text = |name: &str| flow[name].to_string().replace('"', "");
        let key = KEY.map(text).join(",");
        let missing = |name: &str| flow[name].as_u64().unwrap();
        let (packets, bytes) = totals.entry(key).or_default();
        *packets += missing("packets_dropped");
        *bytes += missing("bytes_dropped");
        records += missing("microflows_dropped");
    }
    assert_eq!(records, ended.count("microflows_dropped"));
    let folder = Folder::new();
    let whole = folder.file("whole.csv");
    turboflow(["record", "-q", "-r", &office(), "-w", &whole]).exits(0);
    assert_eq!(totals, self::totals(&folder.read("whole.csv")));
}

const KEY: [&str; 5] = ["src_addr", "dst_addr", "src_port", "dst_port", "protocol"];

/// Packets and bytes by key. The key is the first column.
fn totals(csv: &str) -> BTreeMap<String, (u64, u64)> {
    let mut totals = BTreeMap::<String, (u64, u64)>::new();
    for line in csv.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let (key, rest) = cells.split_at(KEY.len());
        let (packets, bytes) = totals.entry(key.join(",")).or_default();
        *packets += rest[0].parse::<u64>().unwrap();
        *bytes += rest[1].parse::<u64>().unwrap();
    }
    totals
}

/// Metrics balance during traffic, while CPUs are processing packets.
#[test]
fn metrics_of_a_service_always_balance() {
    let Some(link) = Link::for_xdp() else { return };
    let running = serve(&link, "engine = \"xdp\"\nmicroflow-slots = 7\n");
    let mut flood = link.inside("tcpreplay");
    flood.args(["-q", "-i", NEAR, "--topspeed", "--loop", "0", &office()]);
    let mut flood = flood
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut packets = 0;
    for _ in 0..30 {
        let scraped = metrics(&link);
        conserves(&scraped);
        assert!(page(&link, "/healthz").starts_with("HTTP/1.1 200 OK"));
        packets = scraped["packets_received_total"].max(packets);
    }
    flood.kill().unwrap();
    flood.wait().unwrap();
    assert!(packets > 1_000, "{packets}");
    running.signal("TERM");
    running.end().balanced(0);
}

/// Whether a program is attached to the interface.
pub(crate) fn has_program(link: &Link) -> bool {
    let mut command = link.inside("ip");
    let listed = command.args(["link", "show", FAR]).output().unwrap();
    String::from_utf8_lossy(&listed.stdout).contains("prog/xdp")
}

#[test]
fn the_program_is_detached_when_the_process_exits() {
    let Some(link) = Link::for_xdp() else { return };
    for signal in ["INT", "KILL"] {
        let recording = link.record(&[FAR], &[&["-w", "live.csv"], &XDP[..]].concat());
        assert!(has_program(&link));
        recording.signal(signal);
        if signal == "KILL" {
            recording.killed();
        } else {
            recording.end().balanced(0);
        }
        assert!(!has_program(&link), "{signal}");
    }
}

/// The exit code and message of a second program on the same interface.
fn second(link: &Link, options: &[&str]) -> (Option<i32>, String) {
    let program = command([""; 0]).get_program().to_os_string();
    let folder = Folder::new();
    let mut second = link.inside(program.to_str().unwrap());
    second.current_dir(folder.path());
    second.args(["record", "-i", FAR, "-w", "second.csv", "--duration", "1ms"]);
    let output = second.args(XDP).args(options).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), said)
}

#[test]
fn an_attached_program_stays_unless_replacement_is_requested() {
    let Some(link) = Link::for_xdp() else { return };
    let recording = link.record(&[FAR], &[&["-w", "live.csv"], &XDP[..]].concat());
    for mode in ["native", "generic", "auto"] {
        let (code, said) = second(&link, &["--xdp-mode", mode]);
        assert_eq!(code, Some(2), "{said}");
        assert!(
            said.contains("already has an XDP program") && said.contains("--replace"),
            "{said}"
        );
    }
    assert!(link.replay(&office(), &["--pps", "10000", "--limit", "100"]));
    let folder = Folder::new();
    let args = ["record", "-i", FAR, "-w", "replaced.csv", "--replace"];
    let args = [&args[..], &XDP, &["--ledger", "ledger.json"]].concat();
    let replacing = link.start(folder, &args, &[]);
    assert!(link.replay(&office(), &["--pps", "10000", "--limit", "50"]));
    assert_eq!(replacing.interrupt().balanced(0).count("source_seen"), 50);
    // The replaced process has noticed it, and exits.
    assert_eq!(recording.end().balanced(1).count("source_seen"), 100);
}

/// A program on an interface with this index in another namespace must stay.
#[test]
fn a_program_without_a_bpf_link_is_replaced_too() {
    let (Some(link), Some(other)) = (Link::for_xdp(), Link::for_xdp()) else {
        return;
    };
    let elsewhere = other.record(&[FAR], &[&["-w", "live.csv"], &XDP[..]].concat());
    // Any program will do. ip attaches it without a BPF link. It does not support frames of several
    // buffers.
    for end in [NEAR, FAR] {
        link.ip(&["link", "set", end, "mtu", "1500"]);
    }
    let folder = Folder::new();
    let object = folder.file("pass.o");
    let source = folder.write(
        "pass.c",
        b"__attribute__((section(\"xdp\"), used)) int pass(void *frame) { return 2; }\n",
    );
    link.shell(&format!("clang -O2 -target bpf -c {source} -o {object}"));
    link.shell(&format!("ip link set dev {FAR} xdp obj {object} sec xdp"));
    assert!(has_program(&link));
    let (code, said) = second(&link, &[]);
    assert_eq!(code, Some(2), "{said}");
    let (code, said) = second(&link, &["--replace"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(!has_program(&link) && has_program(&other));
    elsewhere.interrupt().balanced(0);
}

#[test]
fn removal_ends_the_run_and_loses_nothing() {
    let Some(link) = Link::for_xdp() else { return };
    let recording = link.record(&[FAR], &[&["-w", "live.csv"], &XDP[..]].concat());
    assert!(link.replay(&office(), &["--pps", "10000", "--limit", "100"]));
    link.ip(&["link", "del", NEAR]);
    let ended = recording.end().balanced(1);
    assert_eq!(ended.count("packets_received"), 100);
    assert!(ended.said.contains("vb was removed"), "{}", ended.said);
}

#[test]
fn unsupported_options_are_refused_with_a_fix() {
    let Some(link) = Link::for_xdp() else { return };
    let folder = Folder::new();
    let feature = |text: &str| format!("[[feature]]\nname = \"x\"\n{text}\n");
    let long = folder.write("long.toml", feature("op = \"list\"\nof = \"ttl\"\nk = 120"));
    let clock = "op = \"last\"\nof = \"hop_latency\"";
    let clock = folder.write("clock.toml", feature(clock));
    for (options, named) in [
        (
            &["--definition", &long][..],
            "long.toml, line 2: feature `x`: this definition takes 121 words of state; the engine in the kernel has room for \
             120; --engine software works",
        ),
        (
            &["--definition", &clock],
            "engine `xdp` cannot see `hop_latency`; it sees: ip_length",
        ),
        (&["--biflow"], "--biflow"),
        (&["--decapsulate"], "--decapsulate"),
        (&["--readers", "2"], "--readers"),
        (&["tcp"], "a filter"),
        (
            &["--microflow-slots", "0"],
            "the number of microflow slots is 0",
        ),
        (&["--microflow-slots", "5M"], "1 to 4194304"),
        (&["--ring-size", "3GiB"], "--ring-size must be from 65536"),
        (&["-i", "nowhere"], "there is no interface nowhere"),
    ] {
        let (code, said) = second(&link, options);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(named), "{said}");
    }
    assert!(!has_program(&link));
}
