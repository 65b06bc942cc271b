// SPDX-License-Identifier: Apache-2.0
//! `turboflow p4 generate`: the sources of the P4 program. Captures through its pipeline.

use serde_json::Value;
use turboflow_testing::{Need, is_missing};

use crate::support::{
    Folder, Ran, office, pcap_header, pcap_packet, project, turboflow, udp_frame,
};

/// The path of a definition that ships with the engine.
fn definition(name: &str) -> String {
    project(&format!("engines/p4/definitions/{name}.toml"))
}

fn generate(target: &str, definition: &str, folder: &Folder) -> Ran {
    let to = folder.file("switch");
    turboflow([
        "p4",
        "generate",
        "--target",
        target,
        "--definition",
        definition,
        &to,
    ])
}

#[test]
fn writes_the_sources_that_come_with_the_engine() {
    for (target, name, command) in [
        ("v1model", "paper_four", "p4c-bm2-ss -I"),
        ("v1model", "queue", "p4c-bm2-ss -DBEHIND_QUEUE -I"),
        ("pna", "paper_four", "p4c-dpdk --arch pna"),
        ("tna", "paper_eight", "-DQUEUE_FEATURES -I"),
    ] {
        let folder = Folder::new();
        let said = generate(target, &definition(name), &folder).exits(0).stdout;
        assert!(said.contains(command), "{said}");
        for path in [
            format!("{target}/turboflow.p4"),
            "shared/lane.p4".to_owned(),
            format!("shared/records/{name}/record.p4"),
        ] {
            let own = project(&format!("engines/p4/p4/{path}"));
            assert_eq!(
                folder.read(&format!("switch/{path}")),
                std::fs::read_to_string(own).unwrap(),
                "{path}"
            );
        }
    }
}

#[test]
fn refuses_by_name_what_a_pipeline_cannot_fold() {
    let folder = Folder::new();
    let egress = folder.write(
        "egress.toml",
        "[[feature]]\nname = \"way\"\nop = \"last\"\nof = \"egress_interface\"\n",
    );
    let feature = |name: &str, rest: &str| format!("[[feature]]\nname = \"{name}\"\n{rest}\n");
    let count = feature("packets", "op = \"count\"");
    let histogram = "op = \"histogram\"\nof = \"ttl\"\nedges = [64]";
    let spread = feature("spread", "op = \"variance\"\nof = \"ttl\"");
    let variance = [&*count, &spread, &feature("bins", histogram)].concat();
    let variance = folder.write("variance.toml", &variance);
    let pair = format!("\n[key]\nfields = [\"source_address\", \"destination_address\"]\n{count}");
    let pair = folder.write("pair.toml", &pair);
    for (target, definition, lacks) in [
        (
            "pna",
            definition("queue"),
            "feature `max_queue_depth`: this pipeline does not support the input `queue_depth`",
        ),
        (
            "tna",
            egress,
            "egress.toml, line 2: feature `way`: this pipeline does not support the input \
             `egress_interface`",
        ),
        (
            "v1model",
            variance.clone(),
            "variance.toml, line 5: feature `spread`: this pipeline does not support the variance \
             of `ttl`",
        ),
        (
            "v1model",
            pair,
            "pair.toml, line 3: key: this pipeline does not support a key other than the 5-tuple",
        ),
    ] {
        generate(target, &definition, &folder)
            .exits(2)
            .says(&[lacks]);
    }
    let (office, port) = (office(), ["--engine", "p4", "--cpu-port", "lo"]);
    let swx = ["--engine", "p4", "--p4-pipeline", "swx"];
    let queue = definition("queue");
    for (options, definition, lacks) in [
        (
            port,
            &variance,
            "line 5: feature `spread`: engine `p4` does not support the variance",
        ),
        (
            swx,
            &queue,
            "feature `max_queue_depth`: the pipeline `swx` does not support the input",
        ),
    ] {
        let args = ["record", "-r", &office, "--definition", definition];
        turboflow(args.iter().chain(&options))
            .exits(2)
            .says(&[lacks]);
    }
}

/// What captures have besides frames is counted as by the software engine: packets of unknown link
/// types, files that cannot be metered, damage.
#[test]
fn captures_through_a_pipeline_lose_nothing_silently() {
    let (folder, office) = (Folder::new(), office());
    let (csv, ledger) = (folder.file("a.csv"), folder.file("ledger.json"));
    let swx = ["--engine", "p4", "--p4-pipeline", "swx"];
    let run = ["record", "-q", "-w", &csv, "--ledger", &ledger, "-r"];
    let of = |capture: &str, engine: &[&str]| {
        turboflow(run.iter().chain(&[capture]).chain(engine).copied()).code
    };
    let is_built = of(&office, &swx) == Some(0);
    if is_missing(&[Need::Engine("swx", is_built), Need::Captures]) {
        return;
    }
    for (capture, code) in [
        ("linktypes", 1),
        ("linktypes/wireshark__wep.pcapng", 1),
        ("vlan-mpls/cilium__shb-option-too-long.pcapng", 1),
        // Says itself that nine packets were lost, which is no failure.
        ("icmp/mike01__packets_ether2.pcapng", 0),
        ("non-ip", 0),
    ] {
        let capture = project(&format!("../shared/captures/{capture}"));
        let [software, p4] = [&[][..], &swx].map(|engine| {
            let code = of(&capture, engine);
            let ledger: Value = serde_json::from_str(&folder.read("ledger.json")).unwrap();
            let names = [
                "packets_received",
                "packets_unknown_link_type",
                "packets_without_time",
                "source_dropped",
                "unread_ether_types",
                "passed_over",
                "damaged",
                "balanced",
            ];
            let [seen, received, dropped] = ["source_seen", "packets_received", "source_dropped"]
                .map(|name| ledger[name].as_u64().unwrap());
            if !engine.is_empty() {
                assert_eq!(seen, received + dropped, "{capture}");
            }
            (code, names.map(|name| ledger[name].clone()))
        });
        assert_eq!(software.0, Some(code), "{capture}");
        assert_eq!(p4, software, "{capture}");
    }
}

/// The packets go back by more than the idle timeout, but by less than a live clock may be behind.
#[test]
fn a_clock_that_is_set_back_a_little_ends_all_flows() {
    let folder = Folder::new();
    let at = |us: u64| pcap_packet(1_700_000_000_000_000 + us, &udp_frame(7));
    let packets = [0, 1_000_000, 5_000_000, 500_000, 1_500_000].map(at);
    let capture = folder.write("a.pcap", [pcap_header(1), packets.concat()].concat());
    let run = ["record", "-r", &capture, "--idle-timeout", "3s", "-w"];
    let [software, p4] = ["software.csv", "p4.csv"].map(|name| folder.file(name));
    let says = "the clock was set back 1 time by more than 3s";
    turboflow(run.iter().chain(&[software.as_str()]))
        .exits(0)
        .says(&[says, "reordercap"]);
    let swx = ["--engine", "p4", "--p4-pipeline", "swx"];
    let office = office();
    let trial = [&["record", "-q", "-r", &office][..], &swx].concat();
    let is_built = turboflow(trial).code == Some(0);
    if is_missing(&[Need::Engine("swx", is_built)]) {
        return;
    }
    let ran = turboflow([&run[..], &[&p4], &swx].concat());
    ran.exits(0).says(&[says, "reordercap"]);
    assert_eq!(folder.read("p4.csv"), folder.read("software.csv"));
    assert_eq!(folder.read("p4.csv").lines().count(), 4);
}

#[test]
fn runs_that_cannot_be_say_why() {
    let (folder, office) = (Folder::new(), office());
    let file = folder.write("program.json", "{}");
    turboflow(["p4", "generate", "--target", "pna", &file])
        .exits(2)
        .says(&["program.json is not a folder"]);
    let run = [
        "record",
        "-r",
        &office,
        "--engine",
        "p4",
        "--p4-pipeline",
        "swx",
    ];
    for (slots, words) in [
        ("70k", "--microflow-slots 70000: "),
        (
            "70k",
            "is a power of two up to 2147483648: 65536 for example",
        ),
        ("4294967296", "up to 2147483648: 2147483648 for example"),
        ("0", "16384 for example"),
    ] {
        let args = [&run[..], &["--microflow-slots", slots]].concat();
        turboflow(args).exits(2).says(&[words]);
    }
    turboflow(["record", "-i", "lo", "--engine", "p4"])
        .exits(2)
        .says(&["meters at CPU ports: add --cpu-port IFACE instead of --interface"]);
    // An engine is advised if the source allows it.
    turboflow(["record", "-i", "lo", "--p4-pipeline", "swx"])
        .exits(2)
        .says(&["--p4-pipeline is for engine `p4`: leave it out\n"]);
    turboflow(["record", "-r", &office, "--p4-pipeline", "swx"])
        .exits(2)
        .says(&["--p4-pipeline is for engine `p4`: add --engine p4, or leave it out\n"]);
    let is_built = turboflow(run).code == Some(0);
    if is_missing(&[Need::Engine("swx", is_built)]) {
        return;
    }
    let program = ["--p4-program", &file];
    turboflow(run.iter().chain(&program).copied())
        .exits(2)
        .says(&[
            "line 1: `{}` is not understood",
            "turboflow-swx does not run",
            "program.json: swx: the pipeline has ended",
        ]);
}

/// The owner of a switch edits the stub that forwards, and changes the definition later.
#[test]
fn edited_sources_are_not_overwritten() {
    let folder = Folder::new();
    let definition_of = |rest: &str| {
        let text = format!("[[feature]]\nname = \"packets\"\nop = \"count\"\n{rest}");
        folder.write("mine.toml", &text)
    };
    let mine = definition_of("");
    generate("v1model", &mine, &folder).exits(0);
    let record = "switch/shared/records/mine/record.p4";
    let first = folder.read(record);
    definition_of("[[feature]]\nname = \"ttl\"\nop = \"max\"\nof = \"ttl\"\n");
    generate("v1model", &mine, &folder).exits(0);
    let second = folder.read(record);
    assert_ne!(first, second);

    let edited = folder.file("switch/v1model/turboflow.p4");
    let own = std::fs::read_to_string(&edited).unwrap();
    std::fs::write(&edited, format!("{own}// our own forwarding\n")).unwrap();
    definition_of("");
    let said = generate("v1model", &mine, &folder).exits(2).stderr;
    for words in ["v1model/turboflow.p4; choose", "--overwrite"] {
        assert!(said.contains(words), "{said}");
    }
    assert!(!said.contains("record.p4"), "{said}");
    assert_eq!(folder.read(record), second, "nothing was written");
    let to = folder.file("switch");
    let again = ["p4", "generate", "--target", "v1model", "--overwrite", &to];
    turboflow(again).exits(0);
    assert_eq!(folder.read("switch/v1model/turboflow.p4"), own);
}
