// SPDX-License-Identifier: Apache-2.0
//! IPFIX files of other exporters, including damaged and hostile ones.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;

use turboflow_formats::read;
use turboflow_record::{ColumnKind, Value};

const OCTETS: u16 = 1;
const PROTOCOL: u16 = 4;
const BASIC_LIST: u16 = 291;

fn be(parts: &[u16]) -> Vec<u8> {
    parts.iter().flat_map(|part| part.to_be_bytes()).collect()
}

fn set(id: u16, content: &[u8]) -> Vec<u8> {
    [be(&[id, content.len() as u16 + 4]), content.to_vec()].concat()
}

/// A template of IANA elements and their lengths.
fn template(id: u16, fields: &[(u16, u16)]) -> Vec<u8> {
    let fields: Vec<u8> = fields.iter().flat_map(|&(a, b)| be(&[a, b])).collect();
    set(2, &[be(&[id, fields.len() as u16 / 4]), fields].concat())
}

fn message(sets: &[Vec<u8>]) -> Vec<u8> {
    let content = sets.concat();
    let head = be(&[10, content.len() as u16 + 16, 0, 0, 0, 0, 0, 1]);
    [head, content].concat()
}

/// A list of octets with a semantic, encoded with a variable length.
fn list(element: u16, semantic: u8, octets: &[u8]) -> Vec<u8> {
    let content = [&[semantic][..], &be(&[element, 1]), octets].concat();
    [&[content.len() as u8][..], &content].concat()
}

/// Columns, rows, and what is left out.
type Found = (Vec<String>, Vec<String>, Vec<String>);

/// The columns of a file, its rows as text, and what is left out; or the error.
fn rows(messages: &[Vec<u8>]) -> Result<Found, String> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.ipfix");
    fs::write(&path, messages.concat()).unwrap();
    let mut reader = read(&path).map_err(|error| error.to_string())?;
    let columns = reader.schema().clone();
    let mut rows = Vec::new();
    while let Some(batch) = reader.next_batch().map_err(|error| error.to_string())? {
        for row in 0..batch.rows() {
            let values = (0..columns.len()).map(|column| match batch.value(row, column) {
                Value::Absent => "-".to_owned(),
                Value::Unsigned(number) => number.to_string(),
                other => format!("{other:?}"),
            });
            rows.push(values.collect::<Vec<_>>().join(" "));
        }
    }
    let names = columns.iter().map(|column| column.name.clone()).collect();
    Ok((names, rows, reader.left_out().to_vec()))
}

#[test]
fn an_element_that_is_a_number_and_a_list_is_refused() {
    let scalar = message(&[template(256, &[(OCTETS, 1)]), set(256, &[7])]);
    let lists = |semantic: u8| {
        let list = list(OCTETS, semantic, &[1]);
        message(&[template(257, &[(BASIC_LIST, 0xffff)]), set(257, &list)])
    };
    for messages in [
        vec![scalar.clone(), lists(4)],
        vec![lists(4), scalar.clone()],
        vec![lists(4), lists(3)],
        vec![lists(3), lists(4)],
    ] {
        let error = rows(&messages).unwrap_err();
        assert!(error.contains("column bytes: it is"), "{error}");
    }
    let (columns, found, _) = rows(&[lists(3), scalar]).unwrap();
    assert_eq!(
        (columns.join(" "), found.join(" ")),
        ("bytes".into(), "1 7".into())
    );
}

/// An options record that names element 1 of enterprise 9 (RFC 5610).
fn naming(name: &str, data_type: u8) -> Vec<Vec<u8>> {
    let fields = be(&[258, 4, 2, 346, 4, 303, 2, 339, 1, 341, 0xffff]);
    let name = [&[name.len() as u8][..], name.as_bytes()].concat();
    let record = [&be(&[0, 9, 0x8001])[..], &[data_type], &name].concat();
    vec![set(3, &fields), set(258, &record)]
}

/// A record with element 1 of enterprise 9 and octetDeltaCount.
fn both(own: &[u8], octets: u8) -> Vec<Vec<u8>> {
    let length = own.len() as u16;
    let fields = be(&[259, 2, 0x8001, length, 0, 9, OCTETS, 1]);
    vec![set(2, &fields), set(259, &[own, &[octets]].concat())]
}

#[test]
fn a_name_that_is_taken_is_no_second_column() {
    for (data_type, own) in [(10, 1.5f64.to_be_bytes().to_vec()), (4, vec![0; 8])] {
        for naming_first in [true, false] {
            let mut sets = [naming("bytes", data_type), both(&own, 3)];
            if !naming_first {
                sets.reverse();
            }
            let (columns, found, left_out) = rows(&[message(&sets.concat())]).unwrap();
            assert_eq!(columns, ["bytes"]);
            assert_eq!(found, ["3"]);
            assert!(
                left_out[0].contains("9/1 (bytes, a second column"),
                "{left_out:?}"
            );
        }
    }
}

#[test]
fn numbers_below_zero_and_plain_octets_are_left_out_by_name() {
    let of = |data_type, own: &[u8]| {
        rows(&[message(
            &[naming("delay", data_type), both(own, 3)].concat(),
        )])
        .unwrap()
    };
    let (columns, found, _) = of(7, &[0, 5]);
    assert_eq!(
        (columns.join(" "), found.join(" ")),
        ("bytes delay".into(), "3 5".into())
    );
    let (columns, found, _) = of(13, b"eth0\x1b");
    assert_eq!(
        (columns.join(" "), found.join(" ")),
        ("bytes delay".into(), "3 Text(\"eth0\\\\x1b\")".into())
    );
    for (data_type, own) in [(7, &[0xff, 0xfe][..]), (0, &[0, 5])] {
        let (columns, found, left_out) = of(data_type, own);
        assert_eq!(
            (columns.join(" "), found.join(" ")),
            ("bytes".into(), "3".into())
        );
        assert!(left_out[0].contains("9/1 (delay"), "{left_out:?}");
    }
}

#[test]
fn no_octets_are_no_value() {
    let fields = template(256, &[(OCTETS, 0xffff), (PROTOCOL, 1)]);
    let (columns, found, _) = rows(&[message(&[fields, set(256, &[0, 6, 1, 9, 17])])]).unwrap();
    assert_eq!(columns.len(), 2);
    let protocol = columns.iter().position(|name| name == "protocol").unwrap();
    let expected = match protocol {
        0 => ["6 -", "17 9"],
        _ => ["- 6", "9 17"],
    };
    assert_eq!(found, expected);
}

#[test]
fn records_of_no_template_are_an_error() {
    let data = || set(256, &[1]);
    let known = || template(256, &[(OCTETS, 1)]);
    for sets in [
        vec![data()],
        vec![known(), template(256, &[]), data()],
        vec![known(), set(2, &be(&[2, 0])), data()],
    ] {
        let error = rows(&[message(&sets)]).unwrap_err();
        assert!(error.contains("before their template"), "{error}");
    }
    let empty = template(256, &[(OCTETS, 1), (PROTOCOL, 0)]);
    let error = rows(&[message(&[empty, data()])]).unwrap_err();
    assert!(error.contains("a field of no octets"), "{error}");
}

#[test]
fn columns_and_batches_are_bounded() {
    // 1,100 elements, all of which the file could name.
    let many: Vec<(u16, u16)> = (0..1_100).map(|id| (10_000 + id, 1)).collect();
    let record = vec![0; many.len()];
    let error = rows(&[message(&[template(256, &many), set(256, &record)])]).unwrap_err();
    assert!(
        error.contains("more than 1024 information elements"),
        "{error}"
    );
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.ipfix");
    let data = message(&[set(256, &[1; 60_000])]);
    let messages = [
        message(&[template(256, &[(OCTETS, 1)])]),
        data.clone(),
        data,
    ];
    fs::write(&path, messages.concat()).unwrap();
    let mut reader = read(&path).unwrap();
    assert!(matches!(
        reader.schema()[0].kind,
        ColumnKind::Unsigned { .. }
    ));
    let (mut records, mut largest) = (0, 0);
    while let Some(batch) = reader.next_batch().unwrap() {
        records += batch.rows();
        largest = largest.max(batch.rows());
    }
    assert_eq!(records, 120_000);
    assert!(largest <= 8_192, "a message is not a batch: {largest}");
}
