// SPDX-License-Identifier: Apache-2.0
//! `turboflow classify`: records with the application that a model predicts.

use std::fs;

use crate::support::{Folder, office, turboflow};

/// A model that looks only at the port, so that a record shows what to expect.
const BY_PORT: &str = "\
turboflow-model 1
feature dst_port
feature last_ns - first_ns
class dns
class other
class web
tree
node 0 53.5 1 2
node 0 52.5 3 4
node 0 443.5 5 6
leaf 0 1 0
leaf 1 0 0
node 0 442.5 7 8
leaf 0 1 0
leaf 0 1 0
leaf 0 0.25 0.75
";

/// The records of the sample in four formats, and a model.
fn files() -> (Folder, [String; 4], String) {
    let folder = Folder::new();
    let files = ["a.csv", "a.jsonl", "a.parquet", "a.ipfix"].map(|name| folder.file(name));
    let outputs = files
        .iter()
        .flat_map(|file| ["-w".to_owned(), file.clone()]);
    let args = ["record", "-q", "-r", &office()].map(str::to_owned);
    turboflow(args.into_iter().chain(outputs)).exits(0);
    let model = folder.write("ports.model", BY_PORT);
    (folder, files, model)
}

/// What the model predicts for a port.
fn by_hand(port: &str) -> &'static str {
    match port {
        "53" => "dns,1.0",
        "443" => "web,0.75",
        _ => "other,1.0",
    }
}

#[test]
fn records_stay_as_they_are_and_get_two_columns() {
    let (folder, [csv, jsonl, parquet, ipfix], model) = files();
    let before = fs::read_to_string(&csv).unwrap();
    let mut before = before.lines();
    let header = before.next().unwrap();
    let port = header
        .split(',')
        .position(|name| name == "dst_port")
        .unwrap();
    let expected: Vec<String> = before
        .map(|line| format!("{line},{}", by_hand(line.split(',').nth(port).unwrap())))
        .collect();
    assert!(expected.iter().any(|line| line.ends_with("dns,1.0")));
    assert!(expected.iter().any(|line| line.ends_with("web,0.75")));
    for from in [&csv, &jsonl, &parquet] {
        let ran = turboflow(["classify", from, "--model", &model]).exits(0);
        let mut lines = ran.stdout.lines();
        let head = lines.next().unwrap();
        assert_eq!(head, format!("{header},application,confidence"), "{from}");
        assert!(lines.eq(expected.iter()), "{from}");
    }
    // IPFIX templates omit absent values, so that IPFIX has another order of records and columns.
    let ran = turboflow(["classify", &ipfix, "--model", &model]).exits(0);
    assert_eq!(ran.stdout.lines().count(), 1 + expected.len());
    let dns = expected.iter().filter(|line| line.ends_with("dns,1.0"));
    let of_ipfix = ran.stdout.lines().filter(|line| line.ends_with("dns,1.0"));
    assert_eq!(of_ipfix.count(), dns.count());
    for to in ["b.csv", "b.jsonl", "b.parquet"] {
        let to = folder.file(to);
        turboflow(["classify", &parquet, "--model", &model, "-w", &to])
            .exits(0)
            .says(&["742 flow records"]);
        let shown = turboflow(["show", &to, "--format", "csv"]).exits(0);
        assert!(shown.stdout.lines().skip(1).eq(expected.iter()), "{to}");
        let question = ["--where", "confidence < 1", "--group-by", "application"];
        let ran = turboflow(["show", &to, "--format", "csv"].into_iter().chain(question));
        let ran = ran.exits(0);
        assert!(
            ran.stdout.lines().nth(1).unwrap().starts_with("web,"),
            "{}",
            ran.stdout
        );
    }
}

#[test]
fn a_file_keeps_its_definition() {
    let (folder, [_, _, parquet, _], model) = files();
    let (named, twice) = (folder.file("b.parquet"), folder.file("c.parquet"));
    turboflow(["classify", &parquet, "--model", &model, "-w", &named]).exits(0);
    let args = [
        "classify", &named, "--model", &model, "--as", "guess", "-w", &twice,
    ];
    turboflow(args).exits(0);
    let args = [
        "show",
        &twice,
        "--top",
        "1",
        "--by",
        "guess_confidence",
        "--format",
        "csv",
    ];
    let shown = turboflow(args).exits(0);
    let header = shown.stdout.lines().next().unwrap();
    assert!(
        header.ends_with("application,confidence,guess,guess_confidence"),
        "{header}"
    );
    let bytes = fs::read(&twice).unwrap();
    let has = |words: &str| bytes.windows(words.len()).any(|it| it == words.as_bytes());
    assert!(has("turboflow.definition"));
}

/// Both commands have the same options, except that `classify` cannot write IPFIX.
#[test]
fn files_are_written_by_the_options_of_replay() {
    let explained = |command: &str| {
        let help = turboflow([command, "--help"]).exits(0).stdout;
        ["format", "time", "names", "parquet-types", "sync"].map(|option| {
            let lines = help.lines().map(str::trim_start);
            let of_it = lines.skip_while(|line| !line.starts_with(&format!("--{option}")));
            of_it.skip(1).take(1).collect::<String>()
        })
    };
    let (classify, replay) = (explained("classify"), explained("replay"));
    assert!(classify[0].contains("csv, jsonl, parquet or arrow"));
    assert!(replay[0].contains("csv, jsonl, parquet, arrow or ipfix"));
    assert_eq!(classify[1..], replay[1..]);
    assert!(classify.iter().all(|line| !line.is_empty()));
}

#[test]
fn what_cannot_be_is_refused() {
    let (folder, [csv, _, parquet, _], model) = files();
    let broken = folder.write(
        "broken.model",
        BY_PORT.replace("node 0 52.5 3 4", "node 0 52.5 3"),
    );
    let negative = folder.write(
        "negative.model",
        BY_PORT.replace("node 0 52.5", "node -1 52.5"),
    );
    let large = folder.write("large.model", BY_PORT.replace("442.5", "1e999"));
    let foreign = folder.write("foreign.model", BY_PORT.replace("dst_port", "ja4_port"));
    let named = folder.file("named.csv");
    turboflow(["classify", &csv, "--model", &model, "-w", &named]).exits(0);
    let refused = |args: &[&str], words: &[&str]| {
        turboflow(["classify"].iter().chain(args))
            .exits(2)
            .says(words);
    };
    refused(
        &[&csv, "--model", &broken],
        &["broken.model, line 9: 3 numbers follow"],
    );
    refused(
        &[&csv, "--model", &negative],
        &["negative.model, line 9: a node has a feature from 0 to 1"],
    );
    refused(
        &[&csv, "--model", &large],
        &["large.model, line 13: 1e999 is too large"],
    );
    refused(
        &[&csv, "--model", &foreign],
        &["foreign.model", "no column \"ja4_port\""],
    );
    refused(&[&csv, "--model", &parquet], &["cannot read the model"]);
    refused(
        &[&csv, "--model", &csv],
        &["line 1: it is not \"turboflow-model 1\""],
    );
    refused(
        &[&csv, "--model", "nowhere"],
        &["cannot read the model nowhere"],
    );
    refused(
        &[&named, "--model", &model],
        &["already have a column `application`", "--as guess"],
    );
    refused(
        &[&csv, "--model", &model, "--as", "A b"],
        &["write the name of a column"],
    );
    let ipfix = folder.file("b.ipfix");
    refused(
        &[&csv, "--model", &model, "-w", &ipfix],
        &["IPFIX has no information element"],
    );
    refused(&[&csv, "--model", &model, "-w", &csv], &[]);
    refused(&["--model", &model], &["FILE"]);
}

#[test]
fn a_cut_file_is_classified_to_where_it_was_cut() {
    let (folder, [csv, ..], model) = files();
    let text = fs::read_to_string(csv).unwrap();
    let cut = folder.write("cut.csv", &text[..text.len() - 7]);
    let ran = turboflow(["classify", &cut, "--model", &model]);
    let whole = text.lines().count();
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert_eq!(ran.stdout.lines().count(), whole - 1);
}
