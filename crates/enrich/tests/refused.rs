// SPDX-License-Identifier: Apache-2.0
//! Files that are refused: the error names the line and what is expected instead.

use turboflow_enrich::{Enricher, Enrichment};

use crate::columns::{records, schema, system};
use crate::maxmind::database;

#[test]
fn lines_that_say_nothing_are_named() {
    let hosts = |text: &str| Enrichment::default().add_hosts(text);
    let services = |text: &str| Enrichment::default().add_services(text);
    let networks =
        |lines: &str| Enrichment::default().add_networks(&format!("network,site,owner\n{lines}"));
    let cases = [
        (
            hosts("192.0.2.1 a\nrouter 192.0.2.1\n"),
            "line 2: \"router\" is not an address",
        ),
        (hosts("192.0.2.1\n"), "line 1: write an address and a name"),
        (
            hosts("192.0.2.1 a\u{202e}b\n"),
            r#"line 1: "a\u{202e}b" is not a name"#,
        ),
        (
            services("https 443\n"),
            "line 1: write a name, a port and a protocol",
        ),
        (
            services("https 70000/tcp\n"),
            "line 1: write a name, a port",
        ),
        (
            Enrichment::default().add_networks("net,site\n"),
            "line 1: \"net,site\" is not a header",
        ),
        (
            Enrichment::default().add_networks(""),
            "line 1: \"\" is not a header: write network,site,owner",
        ),
        (
            networks("10.0.0.0/33,a,b\n"),
            "line 2: \"10.0.0.0/33\" is not a network",
        ),
        (networks("10.0.0.0/8,a\n"), "line 2: it has 2 fields"),
        (
            networks("10.0.0.0/8,\"a,b\n"),
            "line 2: a quote is not closed",
        ),
        (
            networks("10.0.0.0/8,a,b\n\n10.9.0.0/8,c,d\n"),
            "line 4: 10.0.0.0/8 is there twice",
        ),
    ];
    for (outcome, expected) in cases {
        let error = outcome.expect_err(expected).to_string();
        assert!(error.contains(expected), "{error}\n{expected}");
    }
}

#[test]
fn files_that_are_no_database_of_that_kind_are_refused() {
    let mut enrichment = Enrichment::default();
    let error = enrichment
        .add_systems(b"PAR1".to_vec())
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("it is not a database in MaxMind's format (.mmdb)"),
        "{error}"
    );
    let error = enrichment
        .add_systems(database("GeoLite2-Country", &[]))
        .unwrap_err();
    let error = error.to_string();
    let expected = "type \"GeoLite2-Country\", not one whose type has \"ASN\"";
    assert!(error.contains(expected), "{error}");
    // A truncated database is refused or gives fewer results, but never causes a panic.
    let whole = database("GeoLite2-ASN", &[]);
    for end in 0..whole.len() {
        let _ = Enrichment::default().add_systems(whole[..end].to_vec());
    }
    assert!(enrichment.is_empty());
}

/// A broken database gives fewer or different results, but never causes a panic.
#[test]
fn changed_databases_are_refused_or_answer() {
    let networks = [
        ([192, 0, 2, 0], 25, system(64_500, "Example One")),
        ([198, 51, 100, 0], 24, system(64_501, "Example Two")),
    ];
    let whole = database("GeoLite2-ASN", &networks);
    let mut answered = 0;
    for at in 0..whole.len() {
        for with in [0, 1, 0x1f, 0x3f, 0x7f, 0x80, 0xff] {
            let mut changed = whole.clone();
            changed[at] = with;
            let mut enrichment = Enrichment::default();
            if enrichment.add_systems(changed).is_err() {
                continue;
            }
            let mut enricher = Enricher::new(enrichment, &schema());
            for column in 0..enricher.columns().count() {
                assert_eq!(enricher.values(column, &records()).data.len(), 4);
            }
            answered += 1;
        }
    }
    assert!(answered > 1_000, "{answered}");
}
