// SPDX-License-Identifier: Apache-2.0
//! JA3 and JA4 fingerprints of TLS clients.
//!
//! # Source
//! JA3: `salesforce/ja3`, README. JA4: `FoxIO-LLC/ja4`, technical_details/JA4.md. JA4 of TLS
//! clients has the BSD 3-Clause licence there; the other fingerprints of that suite do not, and are
//! not implemented here.

use std::fmt::Write;

use md5::{Digest, Md5};
use sha2::Sha256;

use super::ClientHello;

/// Number of hexadecimal digits of a hash in JA4; below, what replaces the hash of an empty list.
const HASH_DIGITS: usize = 12;
const NO_VALUES: &str = "000000000000";
/// Maximum of the counts in JA4, which have two digits.
const MAX_COUNT: usize = 99;

const SERVER_NAME: u16 = 0;
const ALPN: u16 = 16;

/// Whether a value is reserved and meaningless (GREASE, RFC 8701): 0x0a0a, 0x1a1a, ...
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

/// The first and the last character of the first ALPN protocol; if one of them is not alphanumeric,
/// those of the protocol in hexadecimal digits.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(list: &str, radix: u32) -> Vec<u16> {
        let list = list.split([',', '-']).filter(|number| !number.is_empty());
        list.map(|number| u16::from_str_radix(number, radix).unwrap())
            .collect()
    }

    /// The examples of JA3's README.
    #[test]
    fn published_values_of_ja3_are_met() {
        for (text, fingerprint) in [
            (
                "769,47-53-5-10-49161-49162-49171-49172-50-56-19-4,0-10-11,23-24-25,0",
                "ada70206e40642a3e4461f35503241d5",
            ),
            (
                "769,4-5-10-9-100-98-3-6-19-18-99,,,",
                "de350869b8c85de67a350c8d186f11e6",
            ),
        ] {
            let parts: Vec<&str> = text.split(',').collect();
            let hello = ClientHello {
                legacy_version: parts[0].parse().unwrap(),
                ciphers: numbers(parts[1], 10),
                extensions: numbers(parts[2], 10),
                groups: numbers(parts[3], 10),
                point_formats: numbers(parts[4], 10).iter().map(|it| *it as u8).collect(),
                ..ClientHello::default()
            };
            assert_eq!(ja3_text(&hello), text);
            assert_eq!(ja3(&hello), fingerprint);
        }
    }

    /// The example of JA4.md: Chrome, with GREASE.
    fn chrome() -> ClientHello {
        ClientHello {
            legacy_version: 0x0303,
            ciphers: numbers(
                "8a8a,1301,1302,1303,c02b,c02f,c02c,c030,cca9,cca8,c013,c014,009c,009d,002f,0035",
                16,
            ),
            extensions: numbers(
                "dada,001b,0000,0033,0010,4469,0017,002d,000d,0005,0023,0012,002b,ff01,000b,000a,\
                 0015",
                16,
            ),
            signature_algorithms: numbers("0403,0804,0401,0503,0805,0501,0806,0601", 16),
            versions: numbers("7a7a,0304,0303", 16),
            alpn: Some(b"h2".to_vec()),
            server_name: Some(b"example.org".to_vec()),
            ..ClientHello::default()
        }
    }

    #[test]
    fn published_values_of_ja4_are_met() {
        assert_eq!(ja4(&chrome()), "t13d1516h2_8daaf6152771_e5627efa2ab1");
    }

    #[test]
    fn lists_without_values_have_a_fixed_hash() {
        let hello = ClientHello {
            legacy_version: 0x0300,
            ..ClientHello::default()
        };
        assert_eq!(
            ja4(&hello),
            "tsi000000_000000000000_000000000000".replacen("tsi", "ts3i", 1)
        );
        assert_eq!(ja3_text(&hello), "768,,,,");
    }

    #[test]
    fn protocols_that_are_no_text_are_shown_by_their_digits() {
        let ends = |alpn: &[u8]| {
            let hello = ClientHello {
                alpn: Some(alpn.to_vec()),
                ..chrome()
            };
            ja4(&hello)[8..10].to_owned()
        };
        assert_eq!(ends(b"http/1.1"), "h1");
        assert_eq!(ends(b"h"), "hh");
        assert_eq!(ends(&[0xab]), "ab");
        assert_eq!(ends(&[b'0', 0xcd]), "3d");
        assert_eq!(ends(&[]), "00");
    }
}
