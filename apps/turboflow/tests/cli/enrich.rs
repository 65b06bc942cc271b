// SPDX-License-Identifier: Apache-2.0
//! `turboflow show` with enrichment files about addresses and ports.

use std::collections::BTreeMap;
use std::fs;

use crate::support::{Folder, office, turboflow};

#[path = "../../../../crates/enrich/tests/maxmind.rs"]
mod maxmind;

use maxmind::{Item, database};

const NETWORKS: &str = "network,site,owner\n192.0.2.0/25,Bern,IT\n192.0.2.128/25,Basel,IT\n";

/// The records of the sample in every format, and files about its addresses.
fn files() -> (Folder, [String; 4], Vec<String>) {
    let folder = Folder::new();
    let files = ["a.csv", "a.jsonl", "a.parquet", "a.ipfix"].map(|name| folder.file(name));
    let outputs = files
        .iter()
        .flat_map(|file| ["-w".to_owned(), file.clone()]);
    let args = ["record", "-q", "-r", &office()].map(str::to_owned);
    turboflow(args.into_iter().chain(outputs)).exits(0);
    let system = Item::Map(vec![
        ("autonomous_system_number", Item::Number(64_500)),
        ("autonomous_system_organization", Item::Text("Example")),
    ]);
    let code = Item::Map(vec![("iso_code", Item::Text("CH"))]);
    let country = Item::Map(vec![("country", code)]);
    let systems = database("GeoLite2-ASN", &[([198, 51, 100, 0], 24, system)]);
    let countries = database("GeoLite2-Country", &[([192, 0, 2, 0], 24, country)]);
    let options = [
        ("--networks", folder.write("sites.csv", NETWORKS)),
        ("--hosts", folder.write("hosts", "192.0.2.10 desk\n")),
        ("--services", folder.write("services", "web 443/tcp\n")),
        ("--asn", folder.write("asn.mmdb", systems)),
        ("--country", folder.write("country.mmdb", countries)),
    ];
    let options = options.into_iter();
    let options = options.flat_map(|(option, file)| [option.to_owned(), file]);
    (folder, files, options.collect())
}

/// What `turboflow show` answers about a file, as CSV.
fn show(file: &str, options: &[String], question: &[&str]) -> String {
    let plain = ["show", file, "--format", "csv"].map(str::to_owned);
    let question = question.iter().map(|word| (*word).to_owned());
    let args = plain.into_iter().chain(options.iter().cloned());
    turboflow(args.chain(question)).exits(0).stdout
}

#[test]
fn groups_by_a_site_add_up_what_its_addresses_have() {
    let (_folder, [csv, jsonl, parquet, ipfix], options) = files();
    let text = fs::read_to_string(&csv).unwrap();
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let header = lines.next().unwrap();
    let place = |name: &str| header.iter().position(|its| *its == name).unwrap();
    let (address, bytes) = (place("src_addr"), place("bytes"));
    let mut expected = BTreeMap::new();
    for line in lines {
        let site = match line[address].strip_prefix("192.0.2.") {
            Some(host) if host.parse::<u8>().unwrap() < 128 => "Bern",
            Some(_) => "Basel",
            None => "",
        };
        *expected.entry(site).or_insert(0) += line[bytes].parse::<u64>().unwrap();
    }
    assert!(expected.len() == 3, "{expected:?}");
    for file in [&csv, &jsonl, &parquet, &ipfix] {
        let question = ["--group-by", "src_site", "--select", "bytes"];
        let shown = show(file, &options, &question);
        let rows = shown
            .lines()
            .skip(1)
            .map(|line| line.split_once(',').unwrap());
        let rows = rows.map(|(site, bytes)| (site, bytes.parse().unwrap()));
        assert_eq!(rows.collect::<BTreeMap<&str, u64>>(), expected, "{file}");
    }
}

#[test]
fn further_columns_are_filtered_sorted_and_shown_as_others() {
    let (_folder, [csv, _, parquet, _], options) = files();
    for file in [&csv, &parquet] {
        let all = show(
            file,
            &options,
            &["--where", "src_addr == 192.0.2.10 and dst_port == 443"],
        );
        let header = all.lines().next().unwrap();
        assert!(
            header.ends_with(
                "src_name,src_as,src_as_name,src_country,src_site,src_owner,src_service,\
                 dst_name,dst_as,dst_as_name,dst_country,dst_site,dst_owner,dst_service"
            ),
            "{header}"
        );
        let by_name = ["--where", "src_name == desk and dst_service == web"];
        assert_eq!(show(file, &options, &by_name), all, "{file}");
        let count = all.lines().count() - 1;
        assert!(count > 5, "{count}");
        // Columns that are only shown, only filtered by, or only sorted by.
        let some = [
            "--select",
            "dst_as,src_country",
            "--by",
            "dst_as",
            "--top",
            "3",
        ];
        let shown = show(file, &options, &some);
        assert_eq!(
            shown.lines().collect::<Vec<_>>()[..2],
            ["dst_as,src_country", "64500,CH"],
            "{file}"
        );
        let of_system = show(
            file,
            &options,
            &["--where", "dst_as == 64500", "--group-by", "protocol"],
        );
        let of_network = [
            "--where",
            "dst_addr in 198.51.100.0/24",
            "--group-by",
            "protocol",
        ];
        assert_eq!(of_system, show(file, &[], &of_network), "{file}");
    }
}

#[test]
fn files_that_say_nothing_are_refused_with_their_line() {
    let (folder, [csv, ..], options) = files();
    let refused = |args: &[&str], words: &[&str]| {
        let all = ["show", &csv].into_iter().chain(args.iter().copied());
        turboflow(all).exits(2).says(words);
    };
    let hosts = folder.write("bad-hosts", "192.0.2.1 a\nname 192.0.2.2\n");
    refused(
        &["--hosts", &hosts],
        &["bad-hosts, line 2: \"name\" is not an address"],
    );
    let sites = folder.write("bad.csv", "network,site\n");
    refused(
        &["--networks", &sites],
        &["bad.csv, line 1", "write network,site,owner"],
    );
    refused(
        &["--asn", &csv],
        &["a.csv: it is not a database in MaxMind's format"],
    );
    let country = &options[options.len() - 1];
    refused(&["--asn", country], &["GeoLite2-Country", "\"ASN\""]);
    refused(&["--services", "nowhere"], &["cannot read nowhere"]);
    refused(
        &["--hosts", &options[3], "--anonymize", &csv],
        &["leave out one of the two"],
    );
    refused(&["--where", "src_site == Bern"], &["src_site"]);
}
