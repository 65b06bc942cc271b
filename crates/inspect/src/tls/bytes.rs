// SPDX-License-Identifier: Apache-2.0
//! Reads the vectors of TLS messages (RFC 8446, section 3.4).

/// The rest of a message.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        Some(self.take(1)?[0])
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        let bytes = self.take(2)?;
        Some(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    /// A vector whose length has one byte.
    pub(super) fn short_vector(&mut self) -> Option<Reader<'a>> {
        let length = self.u8()?;
        self.take(length.into()).map(Reader::new)
    }

    /// A vector whose length has two bytes.
    pub(super) fn vector(&mut self) -> Option<Reader<'a>> {
        let length = self.u16()?;
        self.take(length.into()).map(Reader::new)
    }

    /// The remaining bytes.
    pub(super) const fn rest(self) -> &'a [u8] {
        self.rest
    }

    /// The remaining bytes as 16-bit numbers. A trailing odd byte is ignored.
    pub(super) fn numbers(self) -> impl Iterator<Item = u16> + use<'a> {
        let pairs = self.rest.chunks_exact(2);
        pairs.map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
    }
}
