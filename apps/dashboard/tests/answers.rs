// SPDX-License-Identifier: Apache-2.0
//! Every number equals the one that the query engine of `turboflow show` computes on its own.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use turboflow_dashboard::Reported;
use turboflow_query::{Answer, Cell, EnrichmentFiles, Input, Query, Question, answer, fields};

use crate::client::{Running, options, records, started};
use crate::enriched::enrichment;

/// The answer of `turboflow show` to a command.
pub(crate) fn shown(command: &str) -> Answer {
    let words = words(command);
    assert_eq!(words[..2], ["turboflow", "show"], "{command}");
    let mut question = Question {
        all_columns: true,
        ..Question::default()
    };
    let mut files = Vec::new();
    let mut enrichment = EnrichmentFiles::default();
    let mut words = words[2..].iter();
    while let Some(word) = words.next() {
        let mut value = || Some(words.next().unwrap().clone());
        match word.as_str() {
            "--where" => question.filter = value(),
            "--within" => question.within = value(),
            "--group-by" => question.group_by = value(),
            "--by" => question.by = value(),
            "--select" => question.select = value(),
            "--top" => question.top = value().map(|rows| rows.parse().unwrap()),
            "--ascending" => question.ascending = true,
            "--clip" => question.clip = true,
            "--now" => assert_eq!(value().unwrap(), "last"),
            "--hosts" => enrichment.hosts.extend(value().map(PathBuf::from)),
            "--services" => enrichment.services.extend(value().map(PathBuf::from)),
            "--networks" => enrichment.networks.extend(value().map(PathBuf::from)),
            "--asn" => enrichment.asn = value().map(PathBuf::from),
            "--country" => enrichment.country = value().map(PathBuf::from),
            file => files.push(PathBuf::from(file)),
        }
    }
    let files = turboflow_query::flow_files(&files).unwrap().files;
    let last = turboflow_query::last_packet_ns(&mut Input::open(&files).unwrap()).unwrap();
    question.now_ns = last;
    let mut input = Input::open(&files).unwrap();
    if let Some(known) = enrichment.read().unwrap() {
        input.enrich(known);
    }
    let query = Query::parse(&question, input.shape()).unwrap();
    answer(&query, &mut input, None).unwrap()
}

/// The words of a command, as a shell splits them.
fn words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut is_quoted, mut is_word) =
        (Vec::new(), String::new(), false, false);
    let mut letters = command.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\'' => (is_quoted, is_word) = (!is_quoted, true),
            '\\' if !is_quoted => word.extend(letters.next()),
            ' ' if !is_quoted => {
                if is_word {
                    words.push(std::mem::take(&mut word));
                }
                is_word = false;
            }
            letter => {
                word.push(letter);
                is_word = true;
            }
        }
    }
    if is_word {
        words.push(word);
    }
    words
}

/// Compares the rows of an answer with those of the command in it.
pub(crate) fn compare(json: &Value) {
    let command = json["command"].as_str().unwrap();
    let expected = shown(command);
    let names: Vec<&str> = expected.columns.iter().map(|it| it.name.as_str()).collect();
    let columns = json["columns"].as_array().unwrap();
    let found: Vec<&str> = columns
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    assert_eq!(found, names, "{command}");
    let rows = json["rows"].as_array().unwrap();
    assert_eq!(rows.len(), expected.rows.len(), "{command}");
    for (row, expected) in rows.iter().zip(&expected.rows) {
        for (value, cell) in row.as_array().unwrap().iter().zip(expected) {
            assert!(is_equal(value, cell), "{command}: {value} is not {cell:?}");
        }
    }
    let totals = &json["totals"]["matched"];
    let matched = expected.totals.matched;
    assert_eq!(totals["records"], json!(matched.records), "{command}");
    assert_eq!(totals["packets"], json!(matched.packets), "{command}");
    assert_eq!(totals["bytes"], json!(matched.bytes), "{command}");
    assert_eq!(
        json["totals"]["rows"],
        json!(expected.totals.rows),
        "{command}"
    );
}

fn is_equal(value: &Value, cell: &Cell) -> bool {
    match (value, cell) {
        (Value::Null, Cell::Absent) => true,
        (Value::Number(number), Cell::Unsigned(expected)) => number.as_u64() == Some(*expected),
        // Parsing a number from JSON may lose its last bit here; in a browser it does not.
        (Value::Number(number), Cell::Float(expected)) => {
            let number = number.as_f64().unwrap();
            (number - expected).abs() <= expected.abs() * f64::EPSILON
        }
        (Value::String(text), Cell::Unsigned(expected)) if !text.contains(':') => {
            text.parse() == Ok(*expected)
        }
        (Value::String(text), Cell::Address(address)) => *text == address.to_string(),
        (Value::String(text), Cell::Network(address, length)) => {
            *text == format!("{address}/{length}")
        }
        (Value::String(text), Cell::Text(expected)) => **text == **expected,
        (Value::String(text), mac) => *text == mac.to_text(turboflow_query::Show::Mac, false),
        (Value::Array(list), Cell::List(expected)) => *list == *expected,
        _ => false,
    }
}

/// Compares a series with its commands: each point of each line, and the rest.
pub(crate) fn compare_series(json: &Value) {
    let number = |value: &Value| value.as_str().unwrap().parse::<u64>().unwrap();
    let (start, width) = (number(&json["start_ns"]), number(&json["width_ns"]));
    let commands: Vec<&str> = json["commands"]
        .as_array()
        .unwrap()
        .iter()
        .map(text)
        .collect();
    let total = json["total"].as_array().unwrap();
    let at = |row: &[Cell]| match (row.first(), row.last()) {
        (Some(Cell::Unsigned(at)), Some(Cell::Unsigned(value))) => {
            let place = at.checked_sub(start)? / width;
            Some((place as usize, *value)).filter(|(place, _)| *place < total.len())
        }
        _ => None,
    };
    let mut expected = vec![0; total.len()];
    for (place, value) in shown(commands[0]).rows.iter().filter_map(|row| at(row)) {
        expected[place] = value;
    }
    assert_eq!(*total, expected, "{}", commands[0]);
    let Some(other) = json["other"].as_array() else {
        return;
    };
    let mut left = expected;
    let largest = shown(commands[1]);
    let keys = largest.rows.iter().map(|row| &row[..row.len() - 1]);
    let found = match commands.get(2) {
        Some(command) => shown(command).rows,
        None => Vec::new(),
    };
    let lines = json["series"].as_array().unwrap();
    assert_eq!(lines.len(), largest.rows.len());
    let sums = largest.rows.iter().filter_map(|row| row.last());
    for (line, sum) in lines.iter().zip(sums) {
        assert!(is_equal(&line["sum"], sum), "{}", commands[1]);
    }
    for (line, key) in lines.iter().zip(keys) {
        let mut expected = vec![0; total.len()];
        let its = found.iter().filter(|row| row[1..row.len() - 1] == *key);
        for (place, value) in its.filter_map(|row| at(row)) {
            expected[place] = value;
            left[place] -= value;
        }
        assert_eq!(
            *line["values"].as_array().unwrap(),
            expected,
            "{commands:?}"
        );
    }
    assert_eq!(*other, left, "{commands:?}");
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// Asks every question of the pages, and more, about one file.
pub(crate) fn hold(dashboard: &Running, file: &Path) {
    let input = Input::open(&[file]).unwrap();
    let fields = fields(input.shape());
    let has = |name: &str| fields.iter().any(|field| field.name == name);
    let known = dashboard.get("/api/fields").json();
    let mut panels = vec![
        json!({ "kind": "records", "top": 50 }),
        json!({ "kind": "records", "top": 20, "by": "packets", "ascending": true }),
        json!({ "group_by": "host", "top": 10 }),
        json!({ "group_by": "src_addr/24,dst_addr/24", "top": 12 }),
        json!({ "group_by": "protocol,dst_port", "by": "packets", "top": 10 }),
        json!({ "group_by": "end_reason" }),
        json!({ "group_by": "host", "top": 10, "clip": true }),
        json!({ "group_by": "first_ns:36500d", "by": "records", "select": "packets,bytes", "clip": true }),
        json!({ "group_by": "bytes:1k", "by": "records", "top": 30 }),
        json!({ "group_by": "src_addr", "where": "tcp or udp", "select": "max(bytes),bps" }),
    ];
    let keys = fields.iter().filter(|field| field.is_key).take(12);
    panels.extend(keys.map(|key| json!({ "group_by": key.name, "top": 5 })));
    let is_further = |name: &&str| !has(name);
    let further = known.as_array().unwrap().iter();
    let further = further.map(|field| text(&field["name"])).filter(is_further);
    panels.extend(further.map(|name| json!({ "group_by": format!("{name},protocol") })));
    let files = dashboard.get("/api/files").json();
    let number = |name: &str| text(&files[name]).parse::<u64>().unwrap();
    let (first, last) = (number("first_ns"), number("last_ns"));
    let middle = first + (last - first) / 2;
    let ranges = [
        json!({}),
        json!({ "where": "udp" }),
        json!({ "from": middle.to_string() }),
        json!({ "from": first.to_string(), "to": (middle + 1).to_string(), "where": "port 53 or tcp" }),
        json!({ "where": "last > -1s" }),
    ];
    for range in ranges {
        for panels in panels.chunks(8) {
            let mut request = range.clone();
            request["panels"] = panels.into();
            for (answer, panel) in dashboard.panels(&request).iter().zip(panels) {
                assert!(answer.get("error").is_none(), "{panel}: {answer}");
                compare(answer);
            }
        }
        let mut request = range.clone();
        let flags = if has("tcp_flags") {
            "tcp_flags"
        } else {
            "dst_port"
        };
        request["panels"] = json!([
            { "kind": "series", "group_by": "protocol", "points": 50 },
            { "kind": "series", "group_by": "src_addr,dst_port", "top": 4, "by": "packets" },
            { "kind": "series", "group_by": "host", "top": 3 },
            { "kind": "series", "group_by": flags, "by": "records", "points": 7 },
            { "kind": "series" },
        ]);
        for answer in dashboard.panels(&request) {
            compare_series(&answer);
        }
    }
}

#[test]
fn answers_are_those_of_show() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("made.csv");
    records(&file, 3000);
    hold(&started(options(std::slice::from_ref(&file))), &file);
}

/// Records of samples and real captures, made by the program.
#[test]
fn answers_of_captures_are_those_of_show() {
    let folder = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (number, (capture, options_of_record)) in crate::watching::captures().iter().enumerate() {
        let file = folder.path().join(format!("{number}.parquet"));
        if !crate::watching::recorded(&root.join(capture), &file, options_of_record) {
            return;
        }
        hold(&started(options(std::slice::from_ref(&file))), &file);
    }
}

/// Records of millions of flows, which take minutes to query.
#[test]
#[ignore = "wants a file of flow records in TURBOFLOW_RECORDS: docs/dashboard.md"]
fn answers_of_a_large_file_are_those_of_show() {
    let file = std::env::var_os("TURBOFLOW_RECORDS").expect("TURBOFLOW_RECORDS names a file");
    let file = PathBuf::from(file);
    hold(&started(options(std::slice::from_ref(&file))), &file);
}

/// The questions of the Performance page, about packets with in-band telemetry.
#[test]
fn answers_of_telemetry_are_those_of_show() {
    let folder = tempfile::tempdir().unwrap();
    let (capture, file) = (
        folder.path().join("network.pcap"),
        folder.path().join("flows.parquet"),
    );
    let definition = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../samples/definitions/paper-table-2-network.toml");
    let options_of_record = [
        "--int-port",
        "5000",
        "--int-report-port",
        "5001",
        "--definition",
        definition.to_str().unwrap(),
    ];
    let generated = crate::watching::generated(&capture, &["--workload", "telemetry"]);
    if !generated || !crate::watching::recorded(&capture, &file, &options_of_record) {
        return;
    }
    let dashboard = started(options(std::slice::from_ref(&file)));
    let mut asked = 0;
    for field in dashboard.get("/api/fields").json().as_array().unwrap() {
        let name = text(&field["name"]);
        if !["queue", "latency", "hop", "gap"]
            .iter()
            .any(|word| name.contains(word))
        {
            continue;
        }
        let mut panels = vec![json!({ "kind": "records", "by": name, "top": 50 })];
        // As on the page: ratios have no maximum per group.
        if field["is_amount"] == true {
            let by = format!("max({name})");
            panels.push(json!({ "group_by": "src_addr,dst_addr", "by": by, "top": 8 }));
        }
        for answer in dashboard.panels(&json!({ "panels": panels })) {
            assert!(answer.get("error").is_none(), "{name}: {answer}");
            assert!(!answer["rows"].as_array().unwrap().is_empty(), "{name}");
            compare(&answer);
            asked += 1;
        }
    }
    assert!(asked >= 6, "{asked}");
}

#[test]
fn a_period_is_compared_with_the_one_before() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("made.csv");
    records(&file, 2000);
    let dashboard = started(options(&[file]));
    let (first, half) = (1_700_000_000_000_000_000u64, 20_000_000_000);
    let (from, to) = (first + half, first + 2 * half);
    let panel = json!({ "group_by": "src_addr", "compare": true });
    let series = json!({ "kind": "series", "compare": true });
    let request = |from: u64, to: u64, panels: Value| json!({ "from": from.to_string(), "to": to.to_string(), "panels": panels });
    let now = dashboard.panels(&request(from, to, json!([panel, series])));
    let then = dashboard.panels(&request(first, from, json!([panel, series])));
    let column = |answer: &Value, name: &str| {
        let mut columns = answer["columns"].as_array().unwrap().iter();
        columns.position(|column| column["name"] == name).unwrap()
    };
    let bytes = column(&now[0], "bytes");
    let old = then[0]["rows"].as_array().unwrap();
    for (row, before) in now[0]["rows"]
        .as_array()
        .unwrap()
        .iter()
        .zip(now[0]["before"].as_array().unwrap())
    {
        let same = old.iter().find(|old| old[0] == row[0]).unwrap();
        assert_eq!(same[bytes], *before);
    }
    assert_eq!(now[1]["before"], then[1]["total"]);
}

#[test]
fn errors_are_those_of_the_executor_with_their_place() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("made.csv");
    records(&file, 10);
    let dashboard = started(options(&[file]));
    let ask = |body: &str| dashboard.ask("POST", "/api/query", body);
    let said = ask(r#"{"where":"tcp and bites > 5","panels":[]}"#);
    let error = &said.json()["error"];
    assert_eq!((said.status, &error["part"]), (400, &json!("where")));
    assert_eq!((&error["start"], &error["end"]), (&json!(8), &json!(13)));
    assert!(text(&error["reason"]).contains("did you mean bytes?"));
    let said = ask(r#"{"panels":[{"group_by":"src_adr"},{"group_by":"src_addr"}]}"#);
    let panels = &said.json()["panels"];
    assert_eq!(panels[0]["error"]["part"], "group_by");
    assert!(panels[1]["rows"].is_array());
    // A filter that closes a parenthesis it did not open is invalid.
    let said = ask(r#"{"where":"tcp) or (udp","from":"1700000001000000000","panels":[]}"#);
    assert_eq!(said.status, 400);
}

#[test]
fn a_report_has_the_answers_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("made.csv");
    records(&file, 500);
    let (enrichment, _) = enrichment(folder.path());
    let of = Reported {
        given: vec![file],
        enrichment,
        ..Reported::default()
    };
    let html = turboflow_dashboard::report(of.clone(), Some("tcp".to_owned())).unwrap();
    let html = String::from_utf8(html).unwrap();
    let start = html.find("type=\"application/json\"").unwrap();
    let json = &html[start..];
    let json = &json[json.find('>').unwrap() + 1..json.find("</script>").unwrap()];
    let report: Value = serde_json::from_str(json).unwrap();
    assert_eq!(report["where"], "tcp");
    let answers = report["answers"].as_object().unwrap();
    assert!(answers.len() >= 8, "{:?}", answers.keys());
    for id in ["sites", "countries", "systems"] {
        assert!(answers.contains_key(id), "{:?}", answers.keys());
    }
    for answer in answers.values() {
        match answer["columns"].is_array() {
            true => compare(answer),
            false => compare_series(answer),
        }
    }
    let wrong = turboflow_dashboard::report(of, Some("bites > 1".to_owned()));
    assert!(
        wrong
            .unwrap_err()
            .to_string()
            .contains("did you mean bytes?")
    );
}

/// A file with one biflow: the request is at 10 s, the response at 30 s.
fn biflow(path: &Path) {
    let text = "src_addr,dst_addr,src_port,dst_port,protocol,packets,bytes,reverse_packets,\
                reverse_bytes,first_ns,last_ns,reverse_first_ns,reverse_last_ns\n\
                10.0.0.1,192.0.2.1,4000,53,17,1,100,2,900,10000000000,11000000000,30000000000,\
                31000000000\n\
                10.0.0.2,192.0.2.1,4000,53,17,1,7,,,1000000000,90000000000,,\n";
    std::fs::write(path, text).unwrap();
}

#[test]
fn a_chosen_time_has_what_either_direction_has_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("biflow.csv");
    biflow(&file);
    let dashboard = started(options(&[file]));
    for (from, to, bytes) in [(9, 12, 1007), (28, 40, 1007), (15, 20, 7)] {
        let ask = json!({
            "from": format!("{from}000000000"),
            "to": format!("{to}000000000"),
            "panels": [{ "group_by": "protocol" }, { "kind": "series" }],
        });
        let panels = dashboard.panels(&ask);
        assert_eq!(
            panels[0]["totals"]["matched"]["bytes"], bytes,
            "{from} to {to}"
        );
        compare(&panels[0]);
        compare_series(&panels[1]);
    }
}

#[test]
fn a_moment_of_long_records_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("long.csv");
    let day = 86_400_000_000_000u64;
    let text = format!(
        "src_addr,packets,bytes,first_ns,last_ns\n10.0.0.1,9,{day},0,{}\n",
        day - 1
    );
    std::fs::write(&file, text).unwrap();
    let dashboard = started(options(&[file]));
    let ask = json!({
        "from": "50000000000",
        "to": "50100000000",
        "panels": [{ "kind": "series", "by": "bytes" }],
    });
    let series = &dashboard.panels(&ask)[0];
    assert_eq!(series["width"], "1ms");
    let total = series["total"].as_array().unwrap();
    assert_eq!((total.len(), &total[0]), (100, &json!(1_000_000)));
    compare_series(series);
}

#[test]
fn an_answer_has_so_many_bytes_at_most() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("made.csv");
    records(&file, 2000);
    let mut options = options(&[file]);
    options.limits.answer_bytes = 10_000;
    let dashboard = started(options);
    let ask = |body: &str| dashboard.ask("POST", "/api/query", body);
    let said = ask(r#"{"panels":[{"kind":"records","top":2000}]}"#);
    assert_eq!(said.status, 400);
    let reason = said.json()["error"]["reason"].to_string();
    assert!(reason.contains("more than 10000 bytes"), "{reason}");
    assert_eq!(
        ask(r#"{"panels":[{"kind":"records","top":2}]}"#).status,
        200
    );
}

/// Three exporters on a path, and a flow that one of them did not see.
#[test]
fn links_are_of_all_flows_in_the_order_of_their_ttl() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("seen.csv");
    let mut text =
        "exporter,src_addr,dst_addr,src_port,dst_port,protocol,packets,max_ttl\n".to_owned();
    for port in 1..=5000 {
        for (exporter, packets, ttl) in [("core", 10, 63), ("branch", 9, 62), ("edge", 10, 64)] {
            if exporter != "core" || port > 1 {
                text += &format!("{exporter},10.0.0.1,192.0.2.1,{port},80,6,{packets},{ttl}\n");
            }
        }
    }
    text += "edge,10.0.0.9,192.0.2.1,9,80,6,7,64\n";
    std::fs::write(&file, text).unwrap();
    let dashboard = started(options(&[file]));
    let answer = &dashboard.panels(&json!({ "panels": [{ "kind": "links" }] }))[0];
    assert_eq!(
        (&answer["flows"], &answer["flows_seen_twice"]),
        (&json!(5001), &json!(5000))
    );
    let link = |from: &str, to: &str, flows: u64, before: u64, behind: u64| json!({ "from": from, "to": to, "flows": flows, "before": before, "behind": behind, "before_at": [], "behind_at": [] });
    let expected = json!([
        link("core", "branch", 4999, 49_990, 44_991),
        link("edge", "branch", 1, 10, 9),
        link("edge", "core", 4999, 49_990, 49_990),
    ]);
    assert_eq!(answer["links"], expected);
    let alone = json!([{ "exporter": "edge", "flows": 1, "packets": 7 }]);
    assert_eq!(answer["alone"], alone);
    let filtered = json!({ "where": "src_port == 1", "panels": [{ "kind": "links" }] });
    let answer = &dashboard.panels(&filtered)[0];
    assert_eq!(answer["links"], json!([link("edge", "branch", 1, 10, 9)]));
}

/// A line loses packets of both directions, and its two ends may disagree about the initiator.
#[test]
fn each_direction_of_a_biflow_has_its_own_links() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("seen.csv");
    let text = "exporter,src_addr,dst_addr,src_port,dst_port,protocol,packets,max_ttl,\
                reverse_packets,reverse_max_ttl\n\
                branch,10.0.0.1,192.0.2.1,9,80,6,100,64,48,61\n\
                headquarters,10.0.0.1,192.0.2.1,9,80,6,96,63,50,62\n\
                branch,10.0.0.1,192.0.2.1,7,80,6,10,64,10,61\n\
                headquarters,192.0.2.1,10.0.0.1,80,7,6,10,62,9,63\n\
                branch,10.0.0.1,192.0.2.1,5,80,6,1,64,,\n";
    std::fs::write(&file, text).unwrap();
    let dashboard = started(options(&[file]));
    let answer = &dashboard.panels(&json!({ "panels": [{ "kind": "links" }] }))[0];
    let link = |from: &str, to: &str, before: u64, behind: u64| json!({ "from": from, "to": to, "flows": 2, "before": before, "behind": behind, "before_at": [], "behind_at": [] });
    let expected = json!([
        link("branch", "headquarters", 110, 105),
        link("headquarters", "branch", 60, 58),
    ]);
    assert_eq!(answer["links"], expected);
    assert_eq!(
        (&answer["flows"], &answer["flows_seen_twice"]),
        (&json!(5), &json!(4))
    );
    let alone = json!([{ "exporter": "branch", "flows": 1, "packets": 1 }]);
    assert_eq!(answer["alone"], alone);
}
