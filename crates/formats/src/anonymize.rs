// SPDX-License-Identifier: Apache-2.0
//! Replaces addresses by pseudonyms that keep networks together.
//!
//! # Source
//! J. Xu, J. Fan, M. H. Ammar, S. B. Moon: Prefix-Preserving IP Address Anonymization:
//! Measurement-Based Security Evaluation and a New Cryptography-Based Scheme, ICNP 2002
//! (Crypto-PAn), with AES-128 as in the authors' program; for IPv6, the same over 128 bits.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use aes::Aes128;
use aes::cipher::{BlockEncrypt, KeyInit};
use turboflow_record::{Column, ColumnKind, Input};

use crate::mapped::mapped;
use crate::{EXPORTER_COLUMN, FlowWriter};

/// A Crypto-PAn key, ready for use.
///
/// Two addresses that share a prefix of exactly n bits get pseudonyms that share a prefix of
/// exactly n bits. Equal keys give equal pseudonyms. IPv4 and IPv6 addresses are mapped
/// independently.
#[derive(Clone)]
pub struct CryptoPan {
    cipher: Aes128,
    pad: u128,
}

/// Bytes of a key: the first half for AES, the second for the padding.
const KEY_BYTES: usize = 32;

impl std::fmt::Debug for CryptoPan {
    /// Leaves out the key, which must not appear in a log.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("CryptoPan")
    }
}

impl CryptoPan {
    /// A key of 32 bytes.
    #[must_use]
    pub fn new(key: &[u8; KEY_BYTES]) -> Self {
        let (for_cipher, for_pad) = key.split_at(KEY_BYTES / 2);
        let cipher = Aes128::new_from_slice(for_cipher).expect("half a key has 16 bytes");
        let mut this = Self { cipher, pad: 0 };
        let pad: [u8; 16] = for_pad.try_into().expect("half a key has 16 bytes");
        this.pad = this.encrypted(u128::from_be_bytes(pad));
        this
    }

    /// Reads a key from the content of a file: 32 bytes, or 64 hexadecimal digits.
    ///
    /// # Errors
    /// A text that says what a key must be and how to make one.
    pub fn from_file(content: &[u8]) -> Result<Self, String> {
        let digits = content.trim_ascii();
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let byte = |pair: &[u8]| Some((digit(pair[0])? << 4 | digit(pair[1])?) as u8);
        let written: Option<Vec<u8>> = match digits.len() == 2 * KEY_BYTES {
            true => digits.chunks(2).map(byte).collect(),
            false => None,
        };
        let key = written.as_deref().unwrap_or(content);
        let key: &[u8; KEY_BYTES] = key.try_into().map_err(|_| {
            format!(
                "a key has 32 bytes, or 64 hexadecimal digits, but this has {} bytes: make one \
                 with `head -c 32 /dev/urandom`",
                content.len()
            )
        })?;
        Ok(Self::new(key))
    }

    /// The pseudonym of an address.
    #[must_use]
    pub fn pseudonym(&self, address: IpAddr) -> IpAddr {
        match address {
            IpAddr::V4(address) => {
                let high = u128::from(address.to_bits()) << 96;
                Ipv4Addr::from_bits((self.scrambled(high, 32) >> 96) as u32).into()
            }
            IpAddr::V6(address) => {
                Ipv6Addr::from_bits(self.scrambled(address.to_bits(), 128)).into()
            }
        }
    }

    /// The pseudonym of the first `bits` bits. The bits before each bit decide whether it is
    /// flipped.
    fn scrambled(&self, address: u128, bits: u32) -> u128 {
        let mut turned = 0;
        for bit in 0..bits {
            let behind = u128::MAX >> bit;
            let block = address & !behind | self.pad & behind;
            turned |= self.encrypted(block) >> 127 << (127 - bit);
        }
        address ^ turned
    }

    fn encrypted(&self, block: u128) -> u128 {
        let mut bytes = block.to_be_bytes().into();
        self.cipher.encrypt_block(&mut bytes);
        u128::from_be_bytes(bytes.into())
    }
}

/// A writer that passes the records on to `inner` with every address replaced by its pseudonym, in
/// all address columns.
///
/// # Errors
/// Names the column that [`refused_column`] finds.
pub fn anonymize(
    inner: Box<dyn FlowWriter>,
    schema: &[Column],
    key: CryptoPan,
) -> Result<Box<dyn FlowWriter>, String> {
    match refused_column(schema) {
        Some(more) => Err(more),
        None => Ok(mapped(inner, move |batch| {
            batch.with_addresses(|address| key.pseudonym(address))
        })),
    }
}

/// The first column that would reveal more than the pseudonyms, and what it holds: see
/// [`tells_more`].
#[must_use]
pub fn refused_column(schema: &[Column]) -> Option<String> {
    schema.iter().find_map(|column| {
        let what = tells_more(&column.name, column.kind)?;
        Some(format!("{} holds {what}", column.name))
    })
}

/// Text columns from inspection that do not identify either end of a flow.
const OF_NO_END: [Input; 8] = [
    Input::Application,
    Input::ApplicationCategory,
    Input::ApplicationConfidence,
    Input::Risk,
    Input::Ja3,
    Input::Ja4,
    Input::Verdict,
    Input::Rule,
];

/// What a column holds, if its values reveal addresses but cannot be replaced by pseudonyms: MAC
/// addresses, host names, and Community IDs, from which addresses can be found by trial.
#[must_use]
pub fn tells_more(name: &str, kind: ColumnKind) -> Option<&'static str> {
    match kind {
        ColumnKind::Mac => Some("MAC addresses"),
        // The vantage point is not an end of the flow.
        ColumnKind::Text if name == EXPORTER_COLUMN => None,
        ColumnKind::Text if OF_NO_END.iter().any(|input| input.name() == name) => None,
        ColumnKind::Text => Some("texts that can tell addresses"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The key of the authors' program.
    const KEY: [u8; 32] = [
        21, 34, 23, 141, 51, 164, 207, 128, 19, 10, 91, 22, 73, 144, 125, 16, 216, 152, 143, 131,
        121, 121, 101, 39, 98, 87, 76, 45, 42, 132, 34, 2,
    ];

    /// IPv4: from the trace that comes with the authors' program. IPv6: the vectors that later
    /// implementations agree on.
    #[test]
    fn published_vectors() {
        let key = CryptoPan::new(&KEY);
        for (address, pseudonym) in [
            ("128.11.68.132", "135.242.180.132"),
            ("129.118.74.4", "134.136.186.123"),
            ("130.132.252.244", "133.68.164.234"),
            ("141.223.7.43", "141.167.8.160"),
            ("141.233.145.108", "141.129.237.235"),
            ("152.163.225.39", "151.140.114.167"),
            ("156.29.3.236", "147.225.12.42"),
            ("165.247.96.84", "162.9.99.234"),
            ("166.107.77.190", "160.132.178.185"),
            ("192.102.249.13", "252.138.62.131"),
            ("192.215.32.125", "252.43.47.189"),
            ("192.233.80.103", "252.25.108.8"),
            ("192.41.57.43", "252.222.221.184"),
            ("193.150.244.223", "253.169.52.216"),
            ("195.205.63.100", "255.186.223.5"),
            ("198.200.171.101", "249.199.68.213"),
            ("38.15.67.68", "64.3.66.187"),
            ("4.3.88.225", "124.60.155.63"),
            ("63.14.55.111", "95.9.215.7"),
            ("63.195.241.44", "95.179.238.44"),
            ("63.97.7.140", "95.97.9.123"),
            ("64.14.118.196", "0.255.183.58"),
            ("64.34.154.117", "0.221.154.117"),
            ("64.39.15.238", "0.219.7.41"),
            ("::1", "78ff:f001:9fc0:20df:8380:b1f1:704:ed"),
            ("::2", "78ff:f001:9fc0:20df:8380:b1f1:704:ef"),
            ("::ffff", "78ff:f001:9fc0:20df:8380:b1f1:704:f838"),
            ("2001:db8::1", "4401:2bc:603f:d91d:27f:ff8e:e6f1:dc1e"),
            ("2001:db8::2", "4401:2bc:603f:d91d:27f:ff8e:e6f1:dc1c"),
        ] {
            let found = key.pseudonym(address.parse().unwrap());
            assert_eq!(found, pseudonym.parse::<IpAddr>().unwrap(), "{address}");
        }
    }

    #[test]
    fn keys_are_bytes_or_digits() {
        let digits: String = KEY.iter().map(|byte| format!("{byte:02x}")).collect();
        let address = "128.11.68.132".parse().unwrap();
        for content in [
            &KEY[..],
            digits.as_bytes(),
            format!("{digits}\n").as_bytes(),
        ] {
            let key = CryptoPan::from_file(content).unwrap();
            assert_eq!(key.pseudonym(address).to_string(), "135.242.180.132");
        }
        for content in [&b""[..], &KEY[..31], "x".repeat(64).as_bytes()] {
            let message = CryptoPan::from_file(content).unwrap_err();
            assert!(message.contains("32 bytes"), "{message}");
        }
        assert_eq!(format!("{:?}", CryptoPan::new(&KEY)), "CryptoPan");
    }

    #[test]
    fn columns_that_tell_more_are_refused() {
        let refused = |name, kind| tells_more(name, kind).is_some();
        assert!(refused("any", ColumnKind::Mac));
        assert!(refused("community_id", ColumnKind::Text) && refused("site", ColumnKind::Text));
        assert!(!refused("application", ColumnKind::Text) && !refused("ja4", ColumnKind::Text));
        assert!(!refused("src_addr", ColumnKind::Address));
    }

    proptest! {
        #[test]
        fn prefixes_stay_as_long_as_they_are(key: [u8; 32], left: u128, differs_at in 0u32..128) {
            let key = CryptoPan::new(&key);
            let right = left ^ 1 << (127 - differs_at);
            let [left, right] = [left, right].map(|bits| key.scrambled(bits, 128));
            prop_assert_eq!((left ^ right).leading_zeros(), differs_at);
        }
    }
}
