// SPDX-License-Identifier: Apache-2.0
//! Client hellos that are complete, segmented, retransmitted or damaged, and other data.

use proptest::prelude::*;

use super::*;

/// The body of an extension of that type.
fn extension(kind: u16, content: &[u8]) -> Vec<u8> {
    let mut bytes = kind.to_be_bytes().to_vec();
    bytes.extend((content.len() as u16).to_be_bytes());
    bytes.extend(content);
    bytes
}

/// A client hello with these extensions, in a single record.
fn hello(extensions: &[u8]) -> Vec<u8> {
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    // No session id, two cipher suites, no compression.
    body.extend([0, 0, 4, 0x13, 0x01, 0xc0, 0x2b, 1, 0]);
    body.extend((extensions.len() as u16).to_be_bytes());
    body.extend(extensions);
    let length = (body.len() as u32).to_be_bytes();
    let mut message = vec![1, length[1], length[2], length[3]];
    message.extend(body);
    record(&message)
}

fn record(content: &[u8]) -> Vec<u8> {
    let mut record = vec![22, 3, 1];
    record.extend((content.len() as u16).to_be_bytes());
    record.extend(content);
    record
}

fn named(name: &str) -> Vec<u8> {
    let length = name.len() as u16;
    let mut content = (length + 3).to_be_bytes().to_vec();
    content.push(0);
    content.extend(length.to_be_bytes());
    content.extend(name.bytes());
    hello(&extension(0, &content))
}

/// An IPv4 packet that contains a TCP segment.
fn packet(sequence: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x45, 0];
    bytes.extend((40 + payload.len() as u16).to_be_bytes());
    bytes.extend([0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    bytes.extend([0, 80, 1, 187]);
    bytes.extend(sequence.to_be_bytes());
    bytes.extend([0, 0, 0, 0, 0x50, 0x18, 0, 0, 0, 0, 0, 0]);
    bytes.extend(payload);
    bytes
}

fn name_of(hello: &ClientHello) -> String {
    String::from_utf8(hello.server_name.clone().unwrap()).unwrap()
}

#[test]
fn a_hello_that_is_cut_is_put_together_in_order() {
    let stream = named("example.org");
    let (first, rest) = stream.split_at(20);
    let (second, third) = rest.split_at(7);
    let mut watch = HelloWatch::default();
    let mut see = |sequence, payload: &[u8], is_reversed| {
        watch.see(&packet(sequence, payload), is_reversed, true)
    };
    assert_eq!(see(100, b"", false), None);
    assert_eq!(see(100, first, false), None);
    // A retransmission; a gap; the other direction.
    assert_eq!(see(100, first, false), None);
    assert_eq!(see(127, third, false), None);
    assert_eq!(see(120, second, true), None);
    assert_eq!(see(120, second, false), None);
    let found = see(127, third, false).unwrap();
    assert_eq!(name_of(&found), "example.org");
    assert_eq!(
        watch.see(&packet(200, &stream), false, true),
        None,
        "the first counts"
    );
}

#[test]
fn a_hello_may_span_records() {
    let whole = named("example.org");
    let message = &whole[5..];
    let mut stream = record(&message[..30]);
    stream.extend(record(&message[30..]));
    assert_eq!(
        name_of(&ClientHello::of_stream(&stream).unwrap()),
        "example.org"
    );
    // A record of another type in between.
    let mut stream = record(&message[..30]);
    stream.extend([23, 3, 3, 0, 1, 0]);
    stream.extend(record(&message[30..]));
    assert_eq!(ClientHello::of_stream(&stream), None);
}

#[test]
fn a_hello_behind_plain_text_is_found() {
    let mut watch = HelloWatch::default();
    assert_eq!(watch.see(&packet(1, b"STARTTLS\r\n"), false, true), None);
    assert_eq!(watch.see(&packet(1, b"220 go ahead\r\n"), true, true), None);
    let mut behind = vec![20, 3, 3, 0, 1, 1];
    behind.extend(named("mail.example"));
    assert!(watch.see(&packet(11, &behind), false, true).is_some());
}

#[test]
fn without_room_the_start_of_a_hello_is_not_kept() {
    let stream = named("example.org");
    let mut watch = HelloWatch::default();
    assert_eq!(watch.see(&packet(0, &stream[..30]), false, false), None);
    assert!(!watch.is_collecting());
}

#[test]
fn a_hello_that_says_it_is_too_long_is_none() {
    let mut stream = named("example.org");
    stream[6] = 1;
    let mut watch = HelloWatch::default();
    assert_eq!(watch.see(&packet(0, &stream), false, true), None);
    assert!(!watch.is_collecting());
    assert_eq!(ClientHello::of_stream(&stream), None);
}

#[test]
fn damaged_extensions_have_their_type_and_nothing_else() {
    let stream = hello(&extension(10, &[0, 99, 0, 29]));
    let hello = ClientHello::of_stream(&stream).unwrap();
    assert_eq!((hello.extensions, hello.groups), (vec![10], vec![]));
}

proptest! {
    #[test]
    fn nothing_panics_and_nothing_grows_beyond_its_bound(
        packets: Vec<(bool, Vec<u8>)>, cut in 0usize..100, noise: Vec<u8>,
    ) {
        let mut watch = HelloWatch::default();
        for (is_reversed, bytes) in &packets {
            let _ = watch.see(bytes, *is_reversed, true);
        }
        let mut stream = named("example.org");
        stream.truncate(cut);
        stream.extend(&noise);
        if let Some(hello) = ClientHello::of_stream(&stream) {
            prop_assert_eq!(ja4(&hello).len(), 36);
        }
        let _ = watch.see(&packet(0, &stream), false, true);
    }
}
