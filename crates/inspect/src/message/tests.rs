// SPDX-License-Identifier: Apache-2.0
//! Messages in both directions.

use proptest::prelude::*;
use turboflow_record::ApplicationNames;

use super::reply::MAX_ORDER_BYTES;
use super::*;
use crate::{Confidence, MAX_TEXT_BYTES};

fn facts() -> Facts {
    let mut facts = Facts {
        application: 91 << 16 | 133,
        category: 17,
        confidence: Confidence::Payload,
        risk: 1 << 63 | 5,
        ..Facts::default()
    };
    facts.set_text(Text::ServerName, b"example.org");
    facts.set_text(Text::HttpHost, &[0xff; 300]);
    facts
}

#[test]
fn messages_are_read_as_they_were_written() {
    let id = InspectionId {
        spot: 7,
        number: 1 << 40,
    };
    let orders = [
        Order::Begin(WorkerLimits {
            max_flows: 1,
            memory_bytes: 2,
            resume_below: 3,
        }),
        Order::Tap {
            id,
            is_reversed: true,
            is_last: false,
            time_ns: 5,
            datagram: b"datagram",
        },
        Order::Close { id },
        Order::Settle { number: 3 },
    ];
    let names = ApplicationNames {
        library: "nDPI 4.2.0".to_owned(),
        applications: vec![(5, "DNS".to_owned(), 14)],
        categories: vec![(14, "Network".to_owned())],
        confidences: vec![(6, "DPI".to_owned())],
        risks: vec![(3, "Weak".to_owned())],
    };
    let answers = [
        Answer::Ready(names),
        Answer::Failed("why".to_owned()),
        Answer::Verdict {
            id,
            progress: Progress::Known,
            facts: facts(),
        },
        Answer::Progress {
            inspected: 5,
            late: 6,
        },
        Answer::Dropped { id },
        Answer::Settled { number: 9 },
    ];
    let (mut to, mut from) = (Vec::new(), Vec::new());
    orders.iter().for_each(|order| order.write(&mut to));
    answers.iter().for_each(|answer| answer.write(&mut from));
    let (mut to, mut from) = (&to[..], &from[..]);
    for order in &orders {
        let (message, rest) = split(to, MAX_ORDER_BYTES).unwrap().unwrap();
        assert_eq!(Order::read(message).as_ref(), Some(order));
        to = rest;
    }
    for answer in &answers {
        let (message, rest) = split(from, MAX_ANSWER_BYTES).unwrap().unwrap();
        assert_eq!(Answer::read(message).as_ref(), Some(answer));
        assert_eq!(split(&from[..3], 9), Ok(None));
        from = rest;
    }
    assert!(to.is_empty() && from.is_empty());
    assert_eq!(facts().text(Text::HttpHost).len(), MAX_TEXT_BYTES);
}

proptest! {
    #[test]
    fn nothing_that_comes_back_can_do_harm(bytes: Vec<u8>) {
        let _ = Answer::read(&bytes);
        let _ = Order::read(&bytes);
        if let Ok(Some((message, rest))) = split(&bytes, 64) {
            prop_assert!((1..=64).contains(&message.len()));
            prop_assert_eq!(message.len() + rest.len() + LENGTH_BYTES, bytes.len());
        }
    }
}
