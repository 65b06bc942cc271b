// SPDX-License-Identifier: Apache-2.0
//! The page's plan equals that of `turboflow plan` for the rates that the records show.

use std::path::Path;

use serde_json::{Value, json};
use turboflow_dashboard::Options;
use turboflow_plan::{Assumption, Assumptions, Question, Target, Traffic};

use crate::answers::{shown, text};
use crate::client::{Running, options, records, started};
use crate::watching::{captures, planned, recorded};

const S: u64 = 1_000_000_000;

/// The library's plan for a command. A test below runs the program itself.
fn of_command(command: &str) -> Value {
    let mut words = command.split(' ');
    assert_eq!(
        (words.next(), words.next()),
        (Some("turboflow"), Some("plan"))
    );
    let mut assumptions = Assumptions::default();
    let (mut rates, mut mean_packet_bytes) = ([0.0; 3], None);
    while let Some(word) = words.next() {
        let value = words.next().unwrap();
        let mut rate = |place: usize| rates[place] = value.parse().unwrap();
        match word {
            "--packets-per-second" => rate(0),
            "--flows-per-second" => rate(1),
            "--active-flows" => rate(2),
            "--mean-packet-bytes" => mean_packet_bytes = Some(value.parse().unwrap()),
            "--assume" => {
                let (name, value) = value.split_once('=').unwrap();
                let assumption = Assumption::named(name).unwrap();
                let set = assumptions.set(assumption, value.parse().unwrap(), "--assume");
                set.unwrap();
            }
            other => panic!("{other}"),
        }
    }
    let [packets_per_second, flows_per_second, active_flows] = rates;
    let traffic = Traffic {
        packets_per_second,
        flows_per_second,
        active_flows,
        mean_packet_bytes,
    };
    traffic.check_active_flows(30.0).unwrap();
    let question = Question {
        traffic,
        measured: None,
        copies: 1.0,
        links: 1,
        target: Target::Default,
        assumptions: &assumptions,
    };
    serde_json::to_value(question.answer().unwrap()).unwrap()
}

/// Whether two values are equal. Parsing a number from JSON may lose its last bits.
fn are_equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            let (one, other) = (one.as_f64().unwrap(), other.as_f64().unwrap());
            (one - other).abs() <= one.abs() * 4.0 * f64::EPSILON
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .zip(other)
                    .all(|(one, other)| are_equal(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .all(|(name, one)| other.get(name).is_some_and(|other| are_equal(one, other)))
        }
        (one, other) => one == other,
    }
}

/// The plan for a range of the records, after comparing it with that of its command.
fn plan(dashboard: &Running, request: &Value) -> Value {
    let mut request = request.clone();
    request["panels"] = json!([{ "kind": "plan", "points": 60 }]);
    let answer = dashboard.panels(&request).remove(0);
    assert!(answer.get("error").is_none(), "{request}: {answer}");
    let command = text(&answer["commands"][0]);
    let expected = of_command(command);
    assert!(
        are_equal(&answer["plan"], &expected),
        "{command}: {} is not {expected}",
        answer["plan"]
    );
    let most = answer["open"]["total"].as_array().unwrap().iter();
    let most = most.map(|value| value.as_u64().unwrap()).max().unwrap();
    assert_eq!(answer["recorded"]["peak_active_flows"], most);
    let begun = answer["begun"]["total"].as_array().unwrap().iter();
    let begun: u64 = begun.map(|value| value.as_u64().unwrap()).sum();
    assert_eq!(answer["recorded"]["flows"], begun);
    answer
}

#[test]
fn a_plan_is_that_of_its_command_and_of_the_records_that_show_counts() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("made.csv");
    records(&file, 3000);
    let dashboard = started(options(std::slice::from_ref(&file)));
    for filter in ["", "udp", "src_addr == 10.0.0.3 or dst_port == 22"] {
        let answer = plan(&dashboard, &json!({ "where": filter }));
        let recorded = &answer["recorded"];
        let filter = if filter.is_empty() {
            "packets > 0"
        } else {
            filter
        };
        let totals = shown(&format!(
            "turboflow show {} --where '{filter}' --group-by protocol",
            file.display()
        ));
        let matched = totals.totals.matched;
        assert_eq!(
            recorded["packets"].as_f64(),
            matched.packets.map(|packets| packets as f64)
        );
        assert_eq!(
            recorded["bytes"].as_f64(),
            matched.bytes.map(|bytes| bytes as f64)
        );
        // Each record has its own port, so each is a flow.
        assert_eq!(recorded["flows"], matched.records);
    }
    let (first, half) = (1_700_000_000 * S, 30 * S);
    let range =
        json!({ "from": (first + half).to_string(), "to": (first + half + 10 * S).to_string() });
    let answer = plan(&dashboard, &range);
    assert_eq!(answer["recorded"]["flows"], 500);
    // Flows of the half minute before are also active.
    let peak = answer["recorded"]["peak_active_flows"].as_u64().unwrap();
    assert!(peak > 1500, "{peak}");
    // The rates refer to the 10 s of the range, although the time before it was read, too.
    let seconds = answer["recorded"]["seconds"].as_f64().unwrap();
    assert!(seconds > 9.9 && seconds <= 10.0, "{seconds}");
}

#[test]
fn both_directions_of_a_biflow_are_flows_and_ipv6_counts() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("biflows.csv");
    let text = "src_addr,dst_addr,src_port,dst_port,protocol,packets,bytes,reverse_packets,\
                reverse_bytes,first_ns,last_ns,reverse_first_ns,reverse_last_ns\n\
                10.0.0.1,192.0.2.1,4000,53,17,6,600,2,900,10000000000,11000000000,30000000000,\
                31000000000\n\
                2001:db8::1,2001:db8::2,4000,53,17,4,500,,,1000000000,9000000000,,\n\
                192.0.2.1,10.0.0.1,53,4000,17,8,800,,,40000000000,50000000000,,\n";
    std::fs::write(&file, text).unwrap();
    let dashboard = started(options(&[file]));
    let answer = plan(&dashboard, &json!({}));
    let recorded = &answer["recorded"];
    // The last record is of the same flow as the reverse direction of the first.
    assert_eq!(
        (&recorded["flows"], &recorded["packets"]),
        (&json!(3), &json!(20.0))
    );
    assert_eq!(
        (&recorded["bytes"], &recorded["seconds"]),
        (&json!(2800.0), &json!(49.0))
    );
    assert_eq!(recorded["peak_active_flows"], 3);
    assert!(
        text_of(&answer).ends_with("--assume ipv6_share=0.334"),
        "{}",
        text_of(&answer)
    );
}

#[test]
fn a_link_that_carries_the_load_is_assumed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("fast.csv");
    let columns = "src_addr,packets,bytes,first_ns,last_ns\n";
    std::fs::write(
        &file,
        format!("{columns}10.0.0.1,5000000,6000000000,0,1000000000\n"),
    )
    .unwrap();
    let answer = plan(&started(options(&[file])), &json!({}));
    let command = text_of(&answer);
    assert!(
        command.ends_with("--assume link_bits_per_second=100000000000"),
        "{command}"
    );
}

fn text_of(answer: &Value) -> &str {
    text(&answer["commands"][0])
}

#[test]
fn what_has_no_plan_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |name: &str, content: &str, most: usize, expected: &str| {
        let file = folder.path().join(name);
        std::fs::write(&file, content).unwrap();
        let mut options: Options = options(&[file]);
        options.limits.plan_records = most;
        let answer = started(options)
            .panels(&json!({ "panels": [{ "kind": "plan" }] }))
            .remove(0);
        let reason = text(&answer["error"]["reason"]);
        assert!(reason.contains(expected), "{reason}");
    };
    let times = "src_addr,packets,first_ns,last_ns\n";
    refused(
        "a.csv",
        "src_addr,packets\n10.0.0.1,5\n",
        9,
        "have no times",
    );
    refused(
        "b.csv",
        "src_addr,bytes,first_ns,last_ns\n10.0.0.1,5,1,2\n",
        9,
        "have no packets",
    );
    refused(
        "c.csv",
        &format!("{times}10.0.0.1,5,7,7\n"),
        9,
        "two packets at different times",
    );
    let two = format!("{times}10.0.0.1,5,7,1000000000\n10.0.0.2,5,7,9\n");
    refused(
        "d.csv",
        &two,
        1,
        "more than 1 flow records: choose less time, or filter",
    );
    refused(
        "e.csv",
        &two.replace(",5,", ",5000000000000,"),
        9,
        "packets per second is",
    );
}

/// The program prints the same plan, and its plan for a capture agrees with that of the records.
#[test]
fn the_program_plans_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (number, (capture, options_of_record)) in captures().iter().enumerate() {
        let (capture, file) = (
            root.join(capture),
            folder.path().join(format!("{number}.parquet")),
        );
        if !recorded(&capture, &file, options_of_record) {
            return;
        }
        let dashboard = started(options(std::slice::from_ref(&file)));
        let answer = plan(&dashboard, &json!({}));
        let command = text_of(&answer);
        let words: Vec<&str> = command.split(' ').skip(1).collect();
        let said = planned(&words);
        let its = answer["plan"].as_object().unwrap();
        for (name, value) in its {
            assert!(
                are_equal(value, &said[name]),
                "{command}: {name}: {value} is not {}",
                said[name]
            );
        }
        let capture = capture.display().to_string();
        let mut words = vec!["plan", "-r", &capture];
        words.extend(
            options_of_record
                .iter()
                .filter(|word| word.starts_with("--decapsulate")),
        );
        let measured = &planned(&words);
        let (recorded, source) = (&answer["recorded"], &measured["source"]);
        let number = |value: &Value| value.as_f64().unwrap();
        assert_eq!(number(&recorded["packets"]), number(&source["packets"]));
        let traffic = &measured["traffic"];
        let seconds = number(&source["seconds"]);
        // With two links, the first packet read is not the earliest.
        let difference = number(&recorded["seconds"]) - seconds;
        assert!(difference.abs() < 1e-3, "{capture}: {difference}");
        let flows = (number(&traffic["flows_per_second"]) * seconds).round();
        assert_eq!(
            number(&recorded["flows"]),
            flows,
            "{capture} {options_of_record:?}"
        );
        // The simulation keeps flows active for up to a 64th of the timeout too long.
        let (peak, most) = (
            number(&recorded["peak_active_flows"]),
            number(&traffic["active_flows"]),
        );
        assert!(peak <= most && peak >= most * 0.97, "{peak} of {most}");
    }
}
