// SPDX-License-Identifier: Apache-2.0
//! JA3 and JA4 fingerprints of TLS clients.
//!
//! # Source
//! JA3: `salesforce/ja3`, README. JA4: `FoxIO-LLC/ja4`, technical_details/JA4.md. JA4 of TLS clients
//! is under BSD 3-Clause there; the other fingerprints of that suite are not, and are not here.

use std::fmt::Write;

use md5::{Digest, Md5};
use sha2::Sha256;

use super::ClientHello;

/// Hexadecimal digits of a hash in JA4, and what stands for a list without values.
const HASH_DIGITS: usize = 12;
const NO_VALUES: &str = "000000000000";
/// The counts in JA4 have two digits.
const MAX_COUNT: usize = 99;

const SERVER_NAME: u16 = 0;
const ALPN: u16 = 16;

/// Whether a value is one of RFC 8701, which mean nothing: 0x0a0a, 0x1a1a, ...
const fn is_grease(value: u16) -> bool {
    value & 0x0f0f == 0x0a0a && value >> 8 == value & 0xff
}

fn plain(values: &[u16]) -> impl Iterator<Item = u16> + use<'_> {
    values.iter().copied().filter(|value| !is_grease(*value))
}

/// The text that JA3 hashes: version, ciphers, extensions, groups and point formats, in decimal.
#[must_use]
pub fn ja3_text(hello: &ClientHello) -> String {
    let formats = hello.point_formats.iter().copied().map(u16::from);
    [
        hello.legacy_version.to_string(),
        decimals(plain(&hello.ciphers)),
        decimals(plain(&hello.extensions)),
        decimals(plain(&hello.groups)),
        decimals(formats),
    ]
    .join(",")
}

fn decimals(values: impl Iterator<Item = u16>) -> String {
    let values: Vec<String> = values.map(|value| value.to_string()).collect();
    values.join("-")
}

/// The JA3 fingerprint: 32 hexadecimal digits.
#[must_use]
pub fn ja3(hello: &ClientHello) -> String {
    hexadecimal(&Md5::digest(ja3_text(hello)))
}

/// The JA4 fingerprint of a client over TCP.
#[must_use]
pub fn ja4(hello: &ClientHello) -> String {
    let mut ciphers: Vec<u16> = plain(&hello.ciphers).collect();
    let mut extensions: Vec<u16> = plain(&hello.extensions).collect();
    let name = if extensions.contains(&SERVER_NAME) {
        'd'
    } else {
        'i'
    };
    let mut text = format!(
        "t{}{name}{:02}{:02}",
        version(hello),
        ciphers.len().min(MAX_COUNT),
        extensions.len().min(MAX_COUNT)
    );
    text.extend(alpn_ends(hello.alpn.as_deref().unwrap_or_default()));
    ciphers.sort_unstable();
    extensions.retain(|kind| *kind != SERVER_NAME && *kind != ALPN);
    extensions.sort_unstable();
    let mut second = codes(&extensions);
    if !second.is_empty() && !hello.signature_algorithms.is_empty() {
        second.push('_');
        let algorithms: Vec<u16> = plain(&hello.signature_algorithms).collect();
        second.push_str(&codes(&algorithms));
    }
    for list in [codes(&ciphers), second] {
        text.push('_');
        match list.is_empty() {
            true => text.push_str(NO_VALUES),
            false => text.push_str(&hexadecimal(&Sha256::digest(&list))[..HASH_DIGITS]),
        }
    }
    text
}

/// The highest version that the client supports.
fn version(hello: &ClientHello) -> &'static str {
    let highest = plain(&hello.versions).max();
    match highest.unwrap_or(hello.legacy_version) {
        0x0304 => "13",
        0x0303 => "12",
        0x0302 => "11",
        0x0301 => "10",
        0x0300 => "s3",
        0x0002 => "s2",
        _ => "00",
    }
}

/// First and last character of the first protocol of ALPN, or of its hexadecimal digits if one of
/// both is neither letter nor digit.
fn alpn_ends(protocol: &[u8]) -> [char; 2] {
    let (Some(first), Some(last)) = (protocol.first(), protocol.last()) else {
        return ['0', '0'];
    };
    if first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric() {
        return [char::from(*first), char::from(*last)];
    }
    let digit = |nibble: u8| char::from_digit(nibble.into(), 16).unwrap_or('0');
    [digit(first >> 4), digit(last & 0xf)]
}

fn codes(values: &[u16]) -> String {
    let codes: Vec<String> = values.iter().map(|value| format!("{value:04x}")).collect();
    codes.join(",")
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
