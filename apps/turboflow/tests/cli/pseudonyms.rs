// SPDX-License-Identifier: Apache-2.0
//! `--anonymize`: pseudonyms instead of addresses.

use crate::support::{Folder, office, turboflow};

/// Pseudonyms for a collector or a colleague, and true addresses for the operator.
#[test]
fn addresses_are_replaced_by_pseudonyms_of_equal_prefixes() {
    let folder = Folder::new();
    let key = folder.write("key", [7; 32]);
    let (plain, hidden) = (folder.file("plain.csv"), folder.file("hidden.csv"));
    let office = office();
    // An equal seed gives the same order of records.
    let meter = ["record", "-q", "-r", &office, "--seed", "1", "-w"];
    turboflow(meter.iter().chain([&&*plain])).exits(0);
    turboflow(meter.iter().chain([&&*hidden, &"--anonymize", &&*key])).exits(0);
    let column = |text: &str, index: usize| -> Vec<std::net::IpAddr> {
        let of = |line: &str| line.split(',').nth(index).unwrap().parse().unwrap();
        text.lines().skip(1).map(of).collect()
    };
    let (plain_text, hidden_text) = (folder.read("plain.csv"), folder.read("hidden.csv"));
    let bits = |address: std::net::IpAddr| match address {
        std::net::IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
        std::net::IpAddr::V6(address) => address.to_bits(),
    };
    let (true_ones, pseudonyms) = (column(&plain_text, 0), column(&hidden_text, 0));
    assert_eq!(true_ones.len(), 742);
    assert_ne!(true_ones, pseudonyms);
    for (true_pair, pair) in true_ones.windows(2).zip(pseudonyms.windows(2)) {
        assert_eq!(true_pair[0].is_ipv4(), pair[0].is_ipv4());
        if true_pair[0].is_ipv4() == true_pair[1].is_ipv4() {
            let common =
                |pair: &[std::net::IpAddr]| (bits(pair[0]) ^ bits(pair[1])).leading_zeros();
            assert_eq!(common(true_pair), common(pair));
        }
    }
    // The other columns are unchanged, and `show` gives the same pseudonyms.
    let rest = |text: &str| {
        let line = |line: &str| line.splitn(3, ',').nth(2).unwrap().to_owned();
        text.lines().map(line).collect::<Vec<_>>()
    };
    assert_eq!(rest(&plain_text), rest(&hidden_text));
    let shown = ["show", &plain, "--format", "csv", "--anonymize", &key];
    assert_eq!(turboflow(shown).exits(0).stdout, hidden_text);
}

#[test]
fn what_pseudonyms_cannot_do_is_reported_before_an_output_is_touched() {
    let (folder, office) = (Folder::new(), office());
    let (key, short) = (
        folder.write("key", [7; 32]),
        folder.write("short", "secret"),
    );
    let output = folder.write("old.csv", "the records of yesterday");
    let default = turboflow(["definition"]).exits(0).stdout;
    let feature = "\n[[feature]]\nname = \"id\"\nop = \"community_id\"\n";
    let definition = folder.write("id.toml", default + feature);
    // There is no such interface, but keys and columns are checked first.
    for source in [["-r", &office], ["-i", "missing0"]] {
        for (key, words) in [
            (&short, "a key has 32 bytes"),
            (&folder.file("none"), "cannot read the key"),
            (
                &key,
                "id holds texts that can tell addresses, which would stay",
            ),
        ] {
            let run = ["record", "-w", &output, "--anonymize", key];
            let further = ["--definition", &definition];
            turboflow(run.iter().chain(&source).chain(&further))
                .exits(2)
                .says(&[words]);
        }
    }
    let ids = folder.file("ids.parquet");
    let run = ["record", "-q", "-r", &office, "-w", &ids];
    turboflow(run.iter().chain(&["--definition", &definition])).exits(0);
    turboflow(["replay", &ids, "-w", &output, "--anonymize", &key])
        .exits(2)
        .says(&["id holds texts"]);
    let service = |key: &str| {
        format!(
            "[source]\ninterfaces = [\"lo\"]\n[flow]\ndefinition = {definition:?}\n\
         [[output]]\nto = {output:?}\nanonymize = {key:?}\n"
        )
    };
    for (key, words) in [
        (&short, "a key has 32 bytes"),
        (&key, "id holds texts that can tell addresses"),
    ] {
        let service = folder.write("service.toml", service(key));
        turboflow(["run", "--check", "--config", &service])
            .exits(2)
            .says(&[words]);
    }
    assert_eq!(folder.read("old.csv"), "the records of yesterday");
    turboflow(["record", "-r", &office, "--anonymize", &key])
        .exits(2)
        .says(&["no output"]);
}
