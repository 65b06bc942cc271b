// SPDX-License-Identifier: Apache-2.0
//! The columns that records get.

use turboflow_enrich::{Enricher, Enrichment};
use turboflow_record::{Column, ColumnKind, FlowBatch, Schema, Value};

use crate::maxmind::{Item, database};

const HOSTS: &str = "\
# of this house
192.0.2.1   router gateway
192.0.2.1   second
2001:db8::1 six # the first name counts
";

const SERVICES: &str = "https 443/tcp\ndomain 53/udp # DNS\nname 53/udp\nrtmp 1/ddp\n";

const NETWORKS: &str = "\
network,site,owner
192.0.2.0/24,Bern,\"Networks, Ltd\"
192.0.2.0/30,Core,
2001:db8::/32,,Six
";

pub(crate) fn schema() -> Schema {
    let number = |bits| ColumnKind::Unsigned { bits };
    [
        ("src_addr", ColumnKind::Address),
        ("dst_addr", ColumnKind::Address),
        ("src_port", number(16)),
        ("dst_port", number(16)),
        ("protocol", number(8)),
    ]
    .map(|(name, kind)| Column {
        name: name.to_owned(),
        kind,
        nullable: true,
    })
    .to_vec()
}

pub(crate) fn records() -> FlowBatch {
    let mut batch = FlowBatch::new(&schema());
    for (from, to, port, protocol) in [
        ("192.0.2.1", "198.51.100.7", 443, 6),
        ("192.0.2.9", "2001:db8::1", 53, 17),
        ("203.0.113.5", "192.0.2.1", 443, 17),
    ] {
        let address = |text: &str| Value::Address(text.parse().unwrap());
        let number = Value::Unsigned;
        batch.push_row(&[
            address(from),
            address(to),
            number(9),
            number(port),
            number(protocol),
        ]);
    }
    batch.push_row(&[Value::Absent; 5]);
    batch
}

/// All values of a column, as texts.
fn column(enricher: &mut Enricher, name: &str) -> Vec<String> {
    let index = enricher.columns().position(|column| column.name == name);
    let values = enricher.values(index.expect(name), &records());
    let value = |row| match values.get(row) {
        Value::Absent => "-".to_owned(),
        Value::Text(text) => text.to_owned(),
        Value::Unsigned(number) => number.to_string(),
        other => panic!("{other:?}"),
    };
    (0..records().rows()).map(value).collect()
}

#[test]
fn texts_say_names_services_sites_and_owners() {
    let mut enrichment = Enrichment::default();
    assert!(enrichment.is_empty());
    enrichment.add_hosts(HOSTS).unwrap();
    enrichment.add_services(SERVICES).unwrap();
    enrichment.add_networks(NETWORKS).unwrap();
    let mut enricher = Enricher::new(enrichment, &schema());
    let mut of = |name: &str| column(&mut enricher, name).join(" | ");
    assert_eq!(of("src_name"), "router | - | - | -");
    assert_eq!(of("dst_name"), "- | six | router | -");
    assert_eq!(of("dst_service"), "https | domain | - | -");
    assert_eq!(of("src_service"), "- | - | - | -");
    // The longest prefix counts, even though it does not name an owner.
    assert_eq!(of("src_site"), "Core | Bern | - | -");
    assert_eq!(of("src_owner"), "- | Networks, Ltd | - | -");
    assert_eq!(of("dst_owner"), "- | Six | - | -");
}

/// An entry in a database of autonomous systems.
pub(crate) fn system(number: u32, name: &str) -> Item<'_> {
    Item::Map(vec![
        ("autonomous_system_number", Item::Number(number)),
        ("autonomous_system_organization", Item::Text(name)),
    ])
}

#[test]
fn databases_say_systems_and_countries() {
    let country = |code| {
        let code = Item::Map(vec![("iso_code", Item::Text(code))]);
        Item::Map(vec![("country", code)])
    };
    let mut enrichment = Enrichment::default();
    let systems = [
        ([192, 0, 2, 0], 25, system(64_500, "Example\x1b One")),
        ([198, 51, 100, 0], 24, system(4_200_000_001, "Example Two")),
    ];
    enrichment
        .add_systems(database("GeoLite2-ASN", &systems))
        .unwrap();
    let countries = [
        ([192, 0, 2, 0], 24, country("CH")),
        ([203, 0, 113, 4], 30, country("SE")),
    ];
    enrichment
        .add_countries(database("GeoLite2-City", &countries))
        .unwrap();
    let mut enricher = Enricher::new(enrichment, &schema());
    let names: Vec<_> = enricher
        .columns()
        .map(|column| column.name.clone())
        .collect();
    assert_eq!(
        names,
        [
            "src_as",
            "src_as_name",
            "src_country",
            "dst_as",
            "dst_as_name",
            "dst_country"
        ]
    );
    let mut of = |name: &str| column(&mut enricher, name).join(" | ");
    assert_eq!(of("src_as"), "64500 | 64500 | - | -");
    assert_eq!(of("dst_as"), "4200000001 | - | 64500 | -");
    // Control characters that a terminal would interpret are escaped.
    assert_eq!(
        of("src_as_name"),
        "Example\\x1b One | Example\\x1b One | - | -"
    );
    assert_eq!(of("src_country"), "CH | CH | SE | -");
    assert_eq!(of("dst_country"), "- | - | CH | -");
}

#[test]
fn columns_of_records_stay_theirs() {
    let mut enrichment = Enrichment::default();
    enrichment.add_hosts(HOSTS).unwrap();
    enrichment.add_services(SERVICES).unwrap();
    let mut columns = schema();
    columns[1].name = "src_name".to_owned();
    columns[3].name = "next_port".to_owned();
    let enricher = Enricher::new(enrichment, &columns);
    assert_eq!(enricher.taken(), ["src_name"]);
    let made: Vec<_> = enricher
        .columns()
        .map(|column| column.name.clone())
        .collect();
    assert_eq!(made, ["src_service"]);
    assert_eq!(enricher.sources(0), [2, 4]);
}
