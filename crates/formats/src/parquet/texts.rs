// SPDX-License-Identifier: Apache-2.0
//! Texts in a dictionary, and in pages without a dictionary.

use parquet::data_type::ByteArray;

use crate::parquet::encode::delta;
use crate::text::Text;

/// The smallest and the largest text so far, in byte order.
#[derive(Default)]
pub(crate) struct Bounds(Option<(Vec<u8>, Vec<u8>)>);

impl Bounds {
    #[inline]
    fn include(&mut self, text: &[u8]) {
        let Some((least, greatest)) = &mut self.0 else {
            self.0 = Some((text.to_vec(), text.to_vec()));
            return;
        };
        if *text < least[..] {
            least.clear();
            least.extend_from_slice(text);
        } else if *text > greatest[..] {
            greatest.clear();
            greatest.extend_from_slice(text);
        }
    }

    /// The bounds for the statistics; `None` if there was no text.
    pub(crate) fn values(&self) -> (Option<ByteArray>, Option<ByteArray>) {
        let bound = |text: &Vec<u8>| ByteArray::from(text.clone());
        let both = self.0.as_ref();
        let least = both.map(|(least, _)| bound(least));
        (least, both.map(|(_, greatest)| bound(greatest)))
    }
}

/// `PLAIN` encoding of texts of at most `text_bytes` each: a length in four bytes, then the text.
pub(crate) fn plain<T>(
    values: &[T],
    text_bytes: usize,
    bounds: &mut Bounds,
    write: impl Fn(&mut Text, &T),
) -> Vec<u8> {
    let mut text = Text::default();
    let mut bytes = Vec::with_capacity(values.len() * 16);
    for value in values {
        text.clear();
        text.reserve(text_bytes);
        write(&mut text, value);
        let value = text.as_bytes();
        bytes.extend_from_slice(&(value.len() as u32).to_le_bytes());
        bytes.extend_from_slice(value);
        bounds.include(value);
    }
    bytes
}

/// The texts of a page with few repeated values, for `DELTA_LENGTH_BYTE_ARRAY`.
#[derive(Default)]
pub(crate) struct PageTexts {
    text: Text,
    lengths: Vec<i64>,
}

impl PageTexts {
    /// Appends a text of at most `text_bytes`.
    #[inline(always)]
    pub(crate) fn push(
        &mut self,
        text_bytes: usize,
        bounds: &mut Bounds,
        write: impl FnOnce(&mut Text),
    ) {
        let start = self.text.len();
        self.text.reserve(text_bytes);
        write(&mut self.text);
        let text = &self.text.as_bytes()[start..];
        self.lengths.push(text.len() as i64);
        bounds.include(text);
    }

    /// Appends the bytes of the page, all lengths before all texts, and clears the texts for the
    /// next page.
    pub(crate) fn end_page(&mut self, page: &mut Vec<u8>) {
        delta(page, &self.lengths, true);
        page.extend_from_slice(self.text.as_bytes());
        self.lengths.clear();
        self.text.clear();
    }
}
