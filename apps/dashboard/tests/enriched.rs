// SPDX-License-Identifier: Apache-2.0
//! Files that add information about addresses and ports.

use std::path::Path;

use serde_json::{Value, json};
use turboflow_dashboard::{Options, Server};
use turboflow_query::EnrichmentFiles;

use crate::answers::{compare, compare_series, hold, text};
use crate::client::{options, records, started};
use crate::watching::Events;

#[path = "../../../crates/enrich/tests/maxmind.rs"]
mod maxmind;

use maxmind::{Item, database};

#[test]
fn answers_with_names_sites_and_countries_are_those_of_show() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("made.csv");
    records(&file, 1000);
    let (enrichment, further) = enrichment(folder.path());
    let dashboard = started(Options {
        enrichment,
        ..options(std::slice::from_ref(&file))
    });
    let fields = dashboard.get("/api/fields").json();
    let names: Vec<&str> = fields
        .as_array()
        .unwrap()
        .iter()
        .map(|it| text(&it["name"]))
        .collect();
    for name in further {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    hold(&dashboard, &file);
    let ask = json!({ "where": "src_site == 'Bern 2' and dst_country == CH", "panels": [
        { "group_by": "src_name,dst_service" }, { "kind": "series", "group_by": "dst_as_name" },
        { "kind": "records", "top": 10 },
    ]});
    let panels = dashboard.panels(&ask);
    assert!(
        panels[0]["totals"]["matched"]["records"].as_u64() > Some(50),
        "{}",
        panels[0]
    );
    compare(&panels[0]);
    compare_series(&panels[1]);
    compare(&panels[2]);
    assert!(
        text(&panels[0]["command"]).contains("--networks "),
        "{}",
        panels[0]["command"]
    );
}

/// A new file in the folder is enriched like the others, without reading the enrichment files
/// again.
#[test]
fn files_of_names_are_read_once() {
    let folder = tempfile::tempdir().unwrap();
    let given = folder.path().join("flows");
    std::fs::create_dir(&given).unwrap();
    records(&given.join("a.csv"), 10);
    let (enrichment, _) = enrichment(folder.path());
    let (hosts, missing) = (enrichment.hosts.clone(), folder.path().join("nothing"));
    let dashboard = started(Options {
        enrichment,
        ..options(std::slice::from_ref(&given))
    });
    std::fs::remove_file(&hosts[0]).unwrap();
    let by_name = json!({ "panels": [{ "group_by": "src_name" }] });
    let desk = |answer: &Value| {
        answer["rows"]
            .as_array()
            .unwrap()
            .iter()
            .any(|row| row[0] == "desk")
    };
    let first = dashboard.panels(&by_name);
    assert!(desk(&first[0]), "{}", first[0]);
    let mut events = Events::of(&dashboard);
    events.next("files");
    records(&given.join("b.csv"), 20);
    assert_eq!(events.next("files")["files"].as_array().unwrap().len(), 2);
    let then = dashboard.panels(&by_name);
    assert!(
        desk(&then[0]) && then[0]["totals"]["matched"]["records"] == 30,
        "{}",
        then[0]
    );
    let wrong = Options {
        enrichment: EnrichmentFiles {
            hosts: vec![missing],
            ..EnrichmentFiles::default()
        },
        ..options(&[given])
    };
    let error = refused(wrong);
    assert!(
        error.starts_with("cannot read ") && error.contains("nothing: "),
        "{error}"
    );
}

fn refused(options: Options) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let server = runtime.block_on(Server::bind(options));
    server.err().unwrap().to_string()
}

/// Enrichment files for the addresses of [`records`], and the fields that they add.
pub(crate) fn enrichment(folder: &Path) -> (EnrichmentFiles, [&'static str; 14]) {
    let write = |name: &str, content: &[u8]| {
        let path = folder.join(name);
        std::fs::write(&path, content).unwrap();
        path
    };
    let system = Item::Map(vec![
        ("autonomous_system_number", Item::Number(64_500)),
        ("autonomous_system_organization", Item::Text("Example")),
    ]);
    let code = Item::Map(vec![("iso_code", Item::Text("CH"))]);
    let country = Item::Map(vec![("country", code)]);
    let systems = database("GeoLite2-ASN", &[([192, 0, 2, 0], 30, system)]);
    let countries = database("GeoLite2-Country", &[([192, 0, 2, 0], 31, country)]);
    let networks = "network,site,owner\n10.0.0.0/30,Bern 2,IT\n10.0.0.4/30,Basel,IT\n";
    let files = EnrichmentFiles {
        hosts: vec![write("the hosts", b"10.0.0.1 desk\n")],
        services: vec![write("services", b"web 443/tcp\ndns 53/udp\n")],
        networks: vec![write("it's.csv", networks.as_bytes())],
        asn: Some(write("asn.mmdb", &systems)),
        country: Some(write("country.mmdb", &countries)),
    };
    let fields = [
        "src_name",
        "dst_name",
        "src_service",
        "dst_service",
        "src_site",
        "dst_site",
        "src_owner",
        "dst_owner",
        "src_as",
        "dst_as",
        "src_as_name",
        "dst_as_name",
        "src_country",
        "dst_country",
    ];
    (files, fields)
}
