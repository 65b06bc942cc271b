// SPDX-License-Identifier: Apache-2.0
//! Answers in which addresses are replaced.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::net::IpAddr;

use turboflow_query::{PlainStyle, Query, QueryError, Question, run_with};

use crate::show::{batch, schema};

#[test]
fn replaced_addresses_are_sorted_and_grouped_but_filtered_as_they_were() {
    let reversed = |address: IpAddr| match address {
        IpAddr::V4(address) => IpAddr::V4((!address.to_bits()).into()),
        address => address,
    };
    let asked = |question: &Question| {
        let query = Query::parse(question, &schema()).unwrap();
        let batches = [Ok::<_, QueryError>(batch())];
        let answer = run_with(&query, batches, Some(&reversed)).unwrap();
        let mut text = Vec::new();
        answer.write_csv(&mut text, PlainStyle::default()).unwrap();
        String::from_utf8(text).unwrap()
    };
    let sorted = Question {
        select: Some("src_addr".to_owned()),
        by: Some("src_addr".to_owned()),
        filter: Some("net 10.0.0.0/8".to_owned()),
        ascending: true,
        ..Question::default()
    };
    assert_eq!(
        asked(&sorted),
        "src_addr\n63.255.253.202\n245.255.254.254\n245.255.255.253\n245.255.255.254\n\
         245.255.255.254\n"
    );
    let grouped = Question {
        group_by: Some("src_addr/24".to_owned()),
        select: Some("records".to_owned()),
        by: Some("records".to_owned()),
        filter: Some("src net 10.0.0.0/8".to_owned()),
        ..Question::default()
    };
    assert_eq!(
        asked(&grouped),
        "src_addr/24,records\n245.255.255.0/24,3\n245.255.254.0/24,1\n"
    );
}
