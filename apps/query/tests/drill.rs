// SPDX-License-Identifier: Apache-2.0
//! From a group back to its records.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use turboflow_query::{Answer, Cell, Input, Query, QueryError, Question, answer, fields, run};

use crate::show::{batch, schema};

fn ask(group_by: Option<&str>, filter: Option<String>) -> (Answer, Query) {
    let question = Question {
        group_by: group_by.map(str::to_owned),
        filter,
        ..Question::default()
    };
    let query = Query::parse(&question, &schema()).unwrap();
    (run(&query, [Ok::<_, QueryError>(batch())]).unwrap(), query)
}

#[test]
fn the_conditions_of_a_group_lead_to_its_records() {
    let keys = [
        "src_addr",
        "dst_addr/24",
        "protocol,dst_port",
        "tcp_flags",
        "end_reason",
        "vlan",
        "source_mac",
        "bytes:1k",
        "duration:2s",
        "duration",
        "first_ns:1m",
        "src_addr/16/32,dst_port:100",
    ];
    for keys in keys {
        let (groups, query) = ask(Some(keys), None);
        assert!(!groups.rows.is_empty());
        for row in &groups.rows {
            let conditions: Option<Vec<String>> = query.conditions(row).into_iter().collect();
            let filter = conditions.unwrap().join(" and ");
            let (records, _) = ask(None, Some(filter.clone()));
            let at = |name: &str| {
                groups
                    .columns
                    .iter()
                    .position(|it| it.name == name)
                    .unwrap()
            };
            let matched = records.totals.matched;
            let expected = Cell::Unsigned(matched.records);
            assert_eq!(row[at("records")], expected, "{keys}: {filter}");
            let expected = Cell::Unsigned(matched.packets.unwrap());
            assert_eq!(row[at("packets")], expected, "{keys}: {filter}");
        }
    }
}

#[test]
fn hosts_are_on_either_side_and_buckets_of_spread_records_have_no_condition() {
    let (groups, query) = ask(Some("host"), None);
    for row in &groups.rows {
        let filter = query.conditions(row)[0].clone().unwrap();
        let (records, _) = ask(None, Some(filter));
        assert_eq!(row[1], Cell::Unsigned(records.totals.matched.records));
    }
    let (groups, query) = ask(Some("time:1m,protocol"), None);
    let conditions = query.conditions(&groups.rows[0]);
    assert!(conditions[0].is_none() && conditions[1].is_some());
    let (records, query) = ask(None, None);
    assert!(query.conditions(&records.rows[0]).is_empty());
}

#[test]
fn fields_are_all_that_questions_can_name() {
    let fields = fields(&schema());
    let of = |name: &str| fields.iter().find(|field| field.name == name).unwrap();
    assert!(of("src_addr").is_column && of("src_addr").is_key);
    assert!(!of("duration").is_column && of("duration").is_key);
    assert!(of("bytes").is_amount && !of("src_addr").is_amount);
    assert!(!of("bps").is_key && !of("sizes").is_key && !of("first_ns").is_key);
    for field in fields.iter().filter(|field| field.is_key) {
        ask(Some(&field.name), None);
    }
}

#[test]
fn a_question_is_bounded_and_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.csv");
    std::fs::write(&file, "src_addr,bytes\n10.0.0.1,5\n10.0.0.2,6\n").unwrap();
    let mut input = Input::open(&[&file]).unwrap();
    let question = Question {
        group_by: Some("src_addr".to_owned()),
        ..Question::default()
    };
    let query = Query::parse(&question, input.shape()).unwrap();
    let one = query.clone().with_most_groups(1);
    let refused = answer(&one, &mut input, None);
    assert!(matches!(refused, Err(QueryError::Groups { limit: 1 })));
    let mut input = input.again(&[&file]);
    input.stop_where(Arc::new(AtomicBool::new(true)));
    let stopped = answer(&query, &mut input, None);
    assert!(matches!(stopped, Err(QueryError::Stopped)));
    let mut input = input.again(&[&file]);
    let two = answer(&query.with_most_groups(2), &mut input, None).unwrap();
    assert_eq!(two.rows.len(), 2);
}
