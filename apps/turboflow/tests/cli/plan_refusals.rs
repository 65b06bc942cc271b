// SPDX-License-Identifier: Apache-2.0
//! `turboflow plan` refuses impossible questions before it reads anything, and names the argument.

use turboflow_testing::is_missing;

use crate::support::{Folder, libpcap, office, pcap_header, pcap_packet, turboflow, udp_frame};

#[test]
fn impossible_active_flows_are_refused_with_their_bound() {
    let ask = |active: &str, idle: &str| {
        turboflow([
            "plan",
            "--packets-per-second=100",
            "--flows-per-second=2",
            &format!("--active-flows={active}"),
            &format!("--idle-timeout={idle}"),
        ])
    };
    ask("500k", "30s")
        .exits(2)
        .says(&["--active-flows is 500000", "room for 3001 at most"]);
    ask("59", "30s")
        .exits(2)
        .says(&["--active-flows is 59", "there are 60 or more"]);
    for (active, idle) in [
        ("60", "30s"),
        ("3001", "30s"),
        ("59", "20s"),
        ("500k", "2h"),
    ] {
        ask(active, idle).exits(0);
    }
}

#[test]
fn options_without_effect_are_refused() {
    let office = office();
    let read = ["-r", &office];
    let stated = [
        "--packets-per-second=1000",
        "--flows-per-second=100",
        "--active-flows=5000",
    ];
    for (base, more, said) in [
        (
            &["--paper"][..],
            &["--links=7"][..],
            "--links is of no use with --paper",
        ),
        (
            &["--paper"],
            &["--assume", "server_cost_usd=1"],
            "--assume is of no use with --paper",
        ),
        (
            &["--paper"],
            &["--cores=2", "--idle-timeout=5s"],
            "--cores is of no use with --paper",
        ),
        (
            &["--assumptions"],
            &["--cores=2"],
            "--cores is of no use with --assumptions",
        ),
        (&read, &["--for", "10s"], "--for is of no use without -i"),
        (
            &read,
            &["--ring-size", "1MiB"],
            "--ring-size is of no use without -i",
        ),
        (
            &stated,
            &["--seed", "5"],
            "--seed is of no use with --packets-per-second",
        ),
        (
            &stated,
            &["udp"],
            "FILTER is of no use with --packets-per-second",
        ),
        (
            &read,
            &["--table-memory=1MB", "--cores=2", "--links=4"],
            "--links is of no use with --table-memory and --cores",
        ),
        (
            &read,
            &[
                "--measure",
                "--assume",
                "aggregator_records_per_second_per_core=5",
            ],
            "--measure contradict each other",
        ),
        (&read, &["--idle-timeout=none"], "such as 30s\n"),
        (
            &read,
            &["--links", "-3"],
            "invalid value '-3' for '--links <N>'",
        ),
        (
            &read,
            &["--idle-timeout", "-5s"],
            "invalid value '-5s' for '--idle-timeout <TIME>'",
        ),
        (
            &read,
            &["--seed", "99999999999999999999999"],
            "from 0 to 18446744073709551615",
        ),
        (
            &[
                "--packets-per-second=1e30",
                "--flows-per-second=1",
                "--active-flows=99",
            ],
            &[],
            "no link carries more than 1000000000000 packets a second",
        ),
    ] {
        let ran = turboflow(["plan"].iter().chain(base).chain(more)).exits(2);
        assert_eq!(ran.stdout, "", "{more:?}");
        ran.says(&[said]);
    }
}

#[test]
fn filters_that_leave_no_packets_are_refused() {
    if is_missing(&[libpcap()]) {
        return;
    }
    for (filter, said) in [
        ("udp port 1", "matched the filter `udp port 1`"),
        (
            "arp",
            "matched the filter `arp`, but none of them is an IP packet",
        ),
    ] {
        let ran = turboflow(["plan", "-r", &office(), "--", filter]).exits(2);
        assert_eq!(ran.stdout, "", "{filter}");
        ran.says(&[said]);
    }
}

#[test]
fn impossible_questions_get_one_error_that_names_the_argument() {
    let office = office();
    let read = ["-r", &office];
    let rates = [
        "--packets-per-second=1000",
        "--flows-per-second=100",
        "--active-flows=5000",
    ];
    let [packets, flows, active] = rates;
    for (words, said) in [
        (&[][..], "-r FILE"),
        (&[&read[..], &["--links", "0"]].concat(), "--links is 0"),
        (&[&read[..], &["--cores", "0"]].concat(), "--cores is 0"),
        (&[&read[..], &["--cores=-2"]].concat(), "--cores is -2"),
        (&[&read[..], &["--cores=NaN"]].concat(), "--cores is NaN"),
        (
            &[&read[..], &["--table-memory=0"]].concat(),
            "--table-memory is 0",
        ),
        (
            &[&read[..], &["--table-memory=63", "--links=1"]].concat(),
            "--table-memory is 63",
        ),
        (
            &[&read[..], &["--target-ratio=0.5"]].concat(),
            "--target-ratio is 0.5",
        ),
        (
            &[&read[..], &["--target-ratio=18"]].concat(),
            "one for 17.53 packets",
        ),
        (
            &[&read[..], &["--target-rate=1"]].concat(),
            "--target-rate is 1",
        ),
        (
            &[&read[..], &["--utilization=1.5"]].concat(),
            "--utilization is 1.5",
        ),
        (
            &[&read[..], &["--assume", "server_cost_usd=-1"]].concat(),
            "--assume server_cost_usd=-1",
        ),
        (
            &[
                &read[..],
                &["--assume", "server_cores=2", "--assume", "server_cores=4"],
            ]
            .concat(),
            "server_cores is assumed twice",
        ),
        (
            &[&read[..], &["--assume", "server_cores=0"]].concat(),
            "--assume server_cores=0",
        ),
        (
            &[&read[..], &["--assume", "cost=1"]].concat(),
            "--assumptions lists",
        ),
        (
            &[&read[..], &["--assume", "server_cores"]].concat(),
            "NAME=VALUE",
        ),
        (
            &[&read[..], &["--assume", "link_bits_per_second=1M"]].concat(),
            "--assume link_bits_per_second=1000000",
        ),
        (
            &[packets, "--flows-per-second=1001", active],
            "--flows-per-second is 1001",
        ),
        (
            &["--packets-per-second=0", flows, active],
            "--packets-per-second is 0",
        ),
        (
            &["--packets-per-second=inf", flows, active],
            "--packets-per-second is inf",
        ),
        (&[packets, flows, "--active-flows=0"], "--active-flows is 0"),
        (&[packets, flows], "--active-flows"),
        (
            &[packets, flows, active, "--utilization=0.5"],
            "--mean-packet-bytes",
        ),
        (
            &[packets, flows, active, "--mean-packet-bytes=1"],
            "--mean-packet-bytes is 1",
        ),
        (&["-r", "nothere.pcap"], "nothere.pcap does not exist"),
    ] {
        let ran = turboflow(["plan"].iter().chain(words)).exits(2);
        assert_eq!(ran.stdout, "", "{words:?}");
        ran.says(&[said]);
    }
}

#[test]
fn a_capture_without_a_rate_is_refused() {
    let folder = Folder::new();
    let one = [pcap_header(1), pcap_packet(5, &udp_frame(1))].concat();
    let none = folder.write("none.pcap", pcap_header(1));
    for capture in [folder.write("one.pcap", one), none] {
        let ran = turboflow(["plan", "-r", &capture]).exits(2);
        ran.says(&["two packets at different times"]);
    }
}
