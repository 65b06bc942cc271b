// SPDX-License-Identifier: Apache-2.0
//! Any packets of a flow: the search for a client hello ends, keeps no more than its bound, and its
//! fingerprints have their form.
//!
//! Input: packets, each preceded by its length in two bytes, whose highest bit is the direction.

#![no_main]

use libfuzzer_sys::fuzz_target;
use turboflow_inspect::tls::{ClientHello, HelloWatch, ja3, ja4};

fuzz_target!(|input: &[u8]| {
    let mut watch = HelloWatch::default();
    let mut rest = input;
    while let Some((length, behind)) = rest.split_first_chunk::<2>() {
        let length = u16::from_be_bytes(*length);
        let take = usize::from(length & 0x7fff).min(behind.len());
        let (packet, behind) = behind.split_at(take);
        if let Some(hello) = watch.see(packet, length >> 15 == 1, true) {
            check(&hello);
            assert!(!watch.is_collecting());
        }
        rest = behind;
    }
    if let Some(hello) = ClientHello::of_stream(input) {
        check(&hello);
    }
});

fn check(hello: &ClientHello) {
    assert_eq!(ja3(hello).len(), 32);
    let ja4 = ja4(hello);
    assert_eq!(ja4.len(), 36, "{ja4}");
    assert!(
        ja4.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    );
}
