// SPDX-License-Identifier: Apache-2.0
//! Messages in the form that most collectors support, octet by octet.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::support::{default_batch, default_schema};
use turboflow_formats::wire::{Protocol, Refresh, Session, WireOptions, encoder};
use turboflow_record::{Definition, ElementOptions};

const TCP_CONTROL_BITS: u16 = 6;
const TEMPLATE_SET: u16 = 2;
const OPTIONS_TEMPLATE_SET: u16 = 3;

fn two(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// The sets of all messages of these records: id and content.
fn sets(lines: &[&str]) -> Vec<(u16, Vec<u8>)> {
    let options = WireOptions {
        elements: Definition::default().elements(false, &ElementOptions::default()),
        ..WireOptions::default()
    };
    let mut encoder = encoder(Protocol::Ipfix, &default_schema(), &options, "test").unwrap();
    let mut units = Vec::new();
    encoder.encode(&default_batch(lines), &mut |unit| units.push(unit));
    encoder.flush(&mut |unit| units.push(unit));
    let mut session = Session::new(Protocol::Ipfix, &options, Refresh::DATAGRAMS);
    let mut sets = Vec::new();
    for unit in &units {
        session.unit(unit, 1, &mut |message| {
            let mut at = 16;
            while at < message.bytes.len() {
                let end = at + usize::from(two(&message.bytes, at + 2));
                let content = message.bytes[at + 4..end].to_vec();
                sets.push((two(&message.bytes, at), content));
                at = end;
            }
        });
    }
    sets
}

/// The field lengths that an element has in the templates of a set.
fn lengths(set: &[u8], element: u16) -> Vec<u16> {
    let (mut at, mut lengths) = (0, Vec::new());
    while at < set.len() {
        let fields = usize::from(two(set, at + 2));
        at += 4;
        for _ in 0..fields {
            let id = two(set, at);
            if id == element {
                lengths.push(two(set, at + 2));
            }
            at += if id >> 15 == 1 { 8 } else { 4 };
        }
    }
    lengths
}

#[test]
fn tcp_flags_have_as_many_octets_as_they_need() {
    let flow = "10.0.0.1 192.0.2.1 1 2 6 1 40 1700000000000000000 1700000000000000000";
    let rest = "40 40 64 64 0 3";
    let [narrow, wide] = [255, 256].map(|flags| format!("{flow} {flags} {rest}"));
    let of = |lines: &[&str]| -> Vec<u16> {
        let sets = sets(lines);
        let templates = sets.iter().filter(|(id, _)| *id == TEMPLATE_SET);
        templates
            .flat_map(|(_, set)| lengths(set, TCP_CONTROL_BITS))
            .collect()
    };
    assert_eq!(of(&[&narrow, &narrow]), [1]);
    assert_eq!(of(&[&wide]), [2]);
    assert_eq!(of(&[&narrow, &wide, &narrow]), [1, 2]);
}

#[test]
fn every_options_template_has_its_own_set() {
    let line = "::1 ::2 1 2 6 1 40 1700000000000000000 1700000000000000000 0 40 40 64 64 0 3";
    let sets = sets(&[line]);
    let templates = sets.iter().filter(|(id, _)| *id == OPTIONS_TEMPLATE_SET);
    let mut count = 0;
    for (_, set) in templates {
        // Id, field count, scope count; none of these fields has an enterprise number.
        assert_eq!(set.len(), 6 + 4 * usize::from(two(set, 2)), "{set:?}");
        count += 1;
    }
    assert_eq!(count, 3);
}
