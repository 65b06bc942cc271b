// SPDX-License-Identifier: Apache-2.0
//! The encoding of a record. The documentation of the parent module has a drawing of it.

use turboflow_record::{Family, WORDS_V4, WORDS_V6, transport_word};

use super::{u16_at, u32_at, u64_at};
use crate::{BASE_WORDS, RecordShape};

const BASE_BYTES: usize = 8 * BASE_WORDS;
const KEY_V4_BYTES: usize = 16;
const KEY_V6_BYTES: usize = 40;

/// The form of a record's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyForm {
    V4,
    V6,
    Wide,
}

impl KeyForm {
    /// Size of a record on the wire, in bytes.
    pub(crate) fn bytes(self, shape: RecordShape) -> usize {
        let key = match self {
            Self::V4 => KEY_V4_BYTES,
            Self::V6 => KEY_V6_BYTES,
            Self::Wide => 8 * shape.wide_key_words.unwrap_or_default(),
        };
        BASE_BYTES + 8 * shape.state_words + key
    }
}

/// Appends a record, given as a row of words.
pub(crate) fn put(row: &[u64], form: KeyForm, shape: RecordShape, to: &mut Vec<u8>) {
    let (base, rest) = row.split_at(BASE_WORDS);
    for word in &base[..4] {
        to.extend(word.to_be_bytes());
    }
    let (lengths, small) = (base[4], base[5]);
    // In memory, minima are stored as complements.
    to.extend((!(lengths as u32)).to_be_bytes());
    to.extend(((lengths >> 32) as u32).to_be_bytes());
    to.extend(((small >> 32) as u16).to_be_bytes());
    let [min_ttl, max_ttl, ..] = small.to_le_bytes();
    let [.., tos, marks] = small.to_le_bytes();
    to.extend([!min_ttl, max_ttl, tos, marks, 0, 0]);
    let (state, key) = rest.split_at(shape.state_words);
    for word in state {
        to.extend(word.to_be_bytes());
    }
    match form {
        KeyForm::Wide => key.iter().for_each(|word| to.extend(word.to_be_bytes())),
        // In memory, the words are little-endian loads of the wire bytes.
        KeyForm::V4 | KeyForm::V6 => {
            let (transport, addresses) = key.split_last().expect("a key has words");
            for word in addresses {
                to.extend(word.to_le_bytes());
            }
            let [a, b, c, d, protocol, ..] = transport.to_le_bytes();
            to.extend([a, b, c, d, protocol, 0, 0, 0]);
        }
    }
}

/// A record as a row of words. `bytes` has [`KeyForm::bytes`] bytes.
pub(crate) fn row<'a>(
    bytes: &'a [u8],
    form: KeyForm,
    shape: RecordShape,
) -> impl ExactSizeIterator<Item = u64> + 'a {
    let key_at = BASE_BYTES + 8 * shape.state_words;
    let words = match form {
        KeyForm::V4 => shape.words_v4(),
        KeyForm::V6 | KeyForm::Wide => shape.words_v6(),
    };
    (0..words).map(move |at| match at {
        0..4 => u64_at(bytes, 8 * at),
        4 => u64::from(!u32_at(bytes, 32)) | u64::from(u32_at(bytes, 36)) << 32,
        5 => {
            let [min_ttl, max_ttl, tos, marks] = [42, 43, 44, 45].map(|at| bytes[at]);
            let flags = u16_at(bytes, 40).to_le_bytes();
            u64::from_le_bytes([!min_ttl, max_ttl, 0, 0, flags[0], flags[1], tos, marks])
        }
        at if at < BASE_WORDS + shape.state_words => u64_at(bytes, 8 * at),
        at => key_word(&bytes[key_at..], at - BASE_WORDS - shape.state_words, form),
    })
}

/// One word of a key.
fn key_word(key: &[u8], at: usize, form: KeyForm) -> u64 {
    let (last, family) = match form {
        KeyForm::Wide => return u64_at(key, 8 * at),
        KeyForm::V4 => (WORDS_V4 - 1, Family::V4),
        KeyForm::V6 => (WORDS_V6 - 1, Family::V6),
    };
    let bytes = &key[8 * at..8 * at + 8];
    if at == last {
        let ports = [bytes[0], bytes[1], bytes[2], bytes[3]];
        return transport_word(ports, bytes[4], family);
    }
    u64_at(bytes, 0).swap_bytes()
}
