// SPDX-License-Identifier: Apache-2.0
//! Netlink messages (`man 7 netlink`): a common header, a header of the family, and attributes.

/// Bytes of `nlmsghdr`.
pub(crate) const HEADER_BYTES: usize = 16;
/// Bytes of an attribute's header; attributes are aligned to multiples of this.
const ATTRIBUTE_BYTES: usize = 4;
/// Marks an attribute that contains other attributes.
const NESTED: u16 = 1 << 15;
/// The bits of an attribute's type that are not flags.
const KIND_MASK: u16 = 0x3fff;
/// `NLM_F_REQUEST`.
const REQUEST: u16 = 1;

/// A request under construction.
#[derive(Clone, Debug)]
pub struct Request {
    bytes: Vec<u8>,
}

impl Request {
    /// A request of a type (`RTM_...`, or a family of generic netlink), with flags in addition to
    /// `NLM_F_REQUEST`, and the family's own header.
    #[must_use]
    pub fn new(kind: u16, flags: u16, header: &[u8]) -> Self {
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&(flags | REQUEST).to_ne_bytes());
        bytes.extend(header);
        Self { bytes }
    }

    /// Adds an attribute.
    ///
    /// # Panics
    /// If the value exceeds the maximum length of an attribute, 64 KiB.
    #[must_use]
    pub fn put(mut self, kind: u16, value: &[u8]) -> Self {
        let length = u16::try_from(ATTRIBUTE_BYTES + value.len()).expect("it is a small value");
        self.bytes.extend(length.to_ne_bytes());
        self.bytes.extend(kind.to_ne_bytes());
        self.bytes.extend(value);
        let end = self.bytes.len().next_multiple_of(ATTRIBUTE_BYTES);
        self.bytes.resize(end, 0);
        self
    }

    /// Adds a null-terminated text.
    #[must_use]
    pub fn put_text(self, kind: u16, text: &str) -> Self {
        self.put(kind, format!("{text}\0").as_bytes())
    }

    /// Adds an attribute that contains those that `inside` adds.
    ///
    /// # Panics
    /// If they exceed the maximum length of an attribute, 64 KiB.
    #[must_use]
    pub fn nest(mut self, kind: u16, inside: impl FnOnce(Self) -> Self) -> Self {
        let start = self.bytes.len();
        self.bytes.extend([0; 2]);
        self.bytes.extend((kind | NESTED).to_ne_bytes());
        self = inside(self);
        let length = u16::try_from(self.bytes.len() - start).expect("they are small values");
        self.bytes[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        self
    }

    pub(crate) fn add_flags(&mut self, flags: u16) {
        let before = u16::from_ne_bytes([self.bytes[6], self.bytes[7]]);
        self.bytes[6..8].copy_from_slice(&(before | flags).to_ne_bytes());
    }

    /// The message, with its length and its sequence number.
    pub(crate) fn finish(mut self, sequence: u32) -> Vec<u8> {
        let length = self.bytes.len() as u32;
        self.bytes[..4].copy_from_slice(&length.to_ne_bytes());
        self.bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
        self.bytes
    }
}

/// The attributes of an answer, by type and value. An invalid attribute ends the iteration.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a> {
    rest: &'a [u8],
}

impl<'a> Attributes<'a> {
    /// The attributes in `bytes`.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The value of the first attribute of that type.
    #[must_use]
    pub fn get(mut self, wanted: u16) -> Option<&'a [u8]> {
        self.find_map(|(kind, value)| (kind == wanted).then_some(value))
    }

    /// The attributes within one attribute; none if it is absent.
    #[must_use]
    pub fn nested(self, wanted: u16) -> Self {
        Self::new(self.get(wanted).unwrap_or_default())
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let header = self.rest.first_chunk::<ATTRIBUTE_BYTES>()?;
        let length = usize::from(u16::from_ne_bytes([header[0], header[1]]));
        let kind = u16::from_ne_bytes([header[2], header[3]]) & KIND_MASK;
        let value = self.rest.get(ATTRIBUTE_BYTES..length)?;
        let behind = length.next_multiple_of(ATTRIBUTE_BYTES);
        self.rest = self.rest.get(behind..).unwrap_or_default();
        Some((kind, value))
    }
}

/// A value as a 32-bit number.
#[must_use]
pub fn u32_of(value: &[u8]) -> Option<u32> {
    value.first_chunk().copied().map(u32::from_ne_bytes)
}

/// A value as a text, up to the first null byte or the end of the value.
#[must_use]
pub fn text_of(value: &[u8]) -> String {
    let text = value.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let request = Request::new(18, 4, &[7; 16])
            .put(3, &[1, 2, 3, 4, 5])
            .put_text(4, "eth0")
            .nest(18, |inside| {
                inside.put_text(1, "bridge").nest(2, |empty| empty)
            });
        let bytes = request.finish(9);
        assert_eq!(u32_of(&bytes), Some(bytes.len() as u32));
        assert_eq!(bytes[4..12], [18, 0, 5, 0, 9, 0, 0, 0]);
        let attributes = Attributes::new(&bytes[HEADER_BYTES + 16..]);
        assert_eq!(attributes.get(3), Some(&[1, 2, 3, 4, 5][..]));
        assert_eq!(text_of(attributes.get(4).unwrap()), "eth0");
        let inside = attributes.nested(18);
        assert_eq!(inside.get(1).map(text_of).as_deref(), Some("bridge"));
        assert_eq!(inside.get(2), Some(&[][..]));
        assert_eq!(attributes.nested(5).count(), 0);
        assert_eq!(attributes.count(), 3);
    }

    #[test]
    fn broken_attributes_end() {
        let mut message = vec![6, 0, 7, 0, 1, 2, 0, 0];
        message.extend([12, 0, 5, 0, 4, 0, 0, 0, 0, 0, 0, 0]);
        let found = |message: &[u8]| Attributes::new(message).get(5).map(<[u8]>::len);
        assert_eq!(found(&message), Some(8));
        for end in 0..message.len() {
            assert_eq!(found(&message[..end]), None);
        }
        // An attribute is never shorter than its header.
        for length in 0..4 {
            message[0] = length;
            assert_eq!(found(&message), None);
        }
        // The last attribute may lack its padding.
        assert_eq!(Attributes::new(&[5, 0, 1, 0, 9]).get(1), Some(&[9][..]));
    }
}
