// SPDX-License-Identifier: Apache-2.0
//! Tests of the rendered page.

use turboflow_formats::WriteProgress;
use turboflow_run::OutputSnapshot;

use super::*;

#[test]
fn every_counter_of_the_ledger_is_exposed_once() {
    let snapshot = LiveSnapshot {
        ledger: Ledger {
            inspection: Some(InspectionCounts::default()),
            ..Ledger::default()
        },
        clock_ns: 0,
        interfaces: vec![("e\"0".to_owned(), Default::default(), PortState::Up)],
        own_counts: vec![
            OwnCount {
                name: "offload_hits",
                about: "Packets with a verdict",
                is_gauge: false,
                count: 7,
            },
            OwnCount {
                name: "engine_collector_messages",
                about: "Messages that were read",
                is_gauge: false,
                count: 9,
            },
        ],
        outputs: vec![OutputSnapshot {
            name: "ipfix+udp://c".to_owned(),
            records: 3,
            records_overrun: 0,
            progress: WriteProgress::default(),
            failed: false,
            sending: Some(SendSnapshot {
                records_lost: 2,
                ..SendSnapshot::default()
            }),
        }],
    };
    let told = Told {
        rules: vec![RuleCount {
            rule: "no \"x\"".to_owned(),
            action: "drop",
            flows: 1,
            packets: Some((5, 500)),
        }],
        ..Told::default()
    };
    let page = render(&snapshot, Some(&told));
    let sample = "turboflow_rule_packets_total{rule=\"no \\\"x\\\"\",action=\"drop\"} 5\n";
    assert!(page.contains(sample), "{page}");
    let ledger = serde_json::to_value(&snapshot.ledger).unwrap();
    // The commonest EtherTypes change during a run, and a time series must not come and go. Their
    // sum is covered by a reason for packets that are not IP.
    let names = ledger.as_object().unwrap().keys();
    for name in names.filter(|name| *name != "unread_ether_types") {
        let heads = page.lines().filter(|line| {
            let named = line.strip_prefix("# TYPE turboflow_");
            let named = named.and_then(|rest| rest.split(' ').next());
            named.is_some_and(|found| found.trim_end_matches("_total").starts_with(name.as_str()))
        });
        assert!(heads.count() >= 1, "{name}: {page}");
    }
    // The dashboard must not query a metric that does not exist.
    let dashboard = include_str!("../../../../../contrib/grafana/dashboards/health.json");
    let mut asked = 0;
    for part in dashboard.split("turboflow_").skip(1) {
        let is_name = |c: char| c.is_ascii_lowercase() || c == '_';
        let name = &part[..part.find(|c| !is_name(c)).unwrap()];
        let head = format!("# TYPE turboflow_{name} ");
        assert!(page.contains(&head), "health.json asks for {name}");
        asked += 1;
    }
    assert!(asked > 20, "{asked}");
    let manual = include_str!("../../../../../docs/operating.md");
    for name in page
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE turboflow_"))
    {
        let name = name.split(' ').next().unwrap();
        let known = [format!("`{name}`"), format!("`{name}{{")];
        let is_known = known.iter().any(|known| manual.contains(known.as_str()));
        assert!(is_known, "docs/operating.md lacks {name}");
    }
    assert!(
        page.contains("turboflow_interface_up{interface=\"e\\\"0\"} 1\n"),
        "{page}"
    );
    assert!(page.contains("turboflow_offload_hits_total 7\n"), "{page}");
    assert!(page.contains("turboflow_engine_collector_messages_total 9\n"));
    let mut heads: Vec<&str> = page
        .lines()
        .filter(|line| line.contains("# TYPE"))
        .collect();
    let count = heads.len();
    heads.sort_unstable();
    heads.dedup();
    assert_eq!(heads.len(), count, "a metric has one type: {page}");
    let lost = "turboflow_collector_records_lost_total{output=\"ipfix+udp://c\"} 2\n";
    assert!(page.contains(lost), "{page}");
    assert!(
        page.lines()
            .all(|line| line.starts_with("# ") || line.starts_with("turboflow_"))
    );
}
