// SPDX-License-Identifier: Apache-2.0
//! Headers of messages: NetFlow v5, NetFlow v9 (RFC 3954, section 5.1), IPFIX (RFC 7011,
//! section 3.1).

use crate::bytes::{four, two};

/// Octets of a record of NetFlow v5.
pub(crate) const V5_RECORD_BYTES: usize = 48;
const V5_HEADER_BYTES: usize = 24;
const V9_HEADER_BYTES: usize = 20;
/// Octets of an IPFIX header.
pub(crate) const IPFIX_HEADER_BYTES: usize = 16;

const NS_PER_S: u64 = 1_000_000_000;

/// The format of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Version {
    Netflow5,
    Netflow9,
    Ipfix,
    Sflow,
    /// The wire form of microflow records.
    Microflows,
}

/// The header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) version: Version,
    /// Observation domain, source id, or engine type and id.
    pub(crate) domain: u32,
    pub(crate) sequence: u32,
    /// Export time, in nanoseconds since 1970. Only v5 gives more than whole seconds.
    pub(crate) export_ns: u64,
    /// Milliseconds since the exporter's start, modulo 2^32; 0 in IPFIX.
    pub(crate) uptime_ms: u32,
    /// One packet out of this many was sampled, according to a v5 header; 0 if it does not say.
    pub(crate) sampling: u32,
    /// The range of the sets or records in the message.
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Header {
    /// The header of a message; `None` if it is invalid, or declares more bytes than there are.
    pub(crate) fn of(message: &[u8]) -> Option<Self> {
        match two(message, 0)? {
            5 => Self::netflow5(message),
            9 => Self::netflow9(message),
            10 => Self::ipfix(message),
            _ => None,
        }
    }

    fn netflow5(message: &[u8]) -> Option<Self> {
        let count = usize::from(two(message, 2)?);
        let nanoseconds = u64::from(four(message, 12)?).min(NS_PER_S - 1);
        let sampling = two(message, 22)?;
        let end = V5_HEADER_BYTES + count * V5_RECORD_BYTES;
        (end <= message.len()).then_some(Self {
            version: Version::Netflow5,
            domain: u32::from(two(message, 20)?),
            sequence: four(message, 16)?,
            export_ns: u64::from(four(message, 8)?) * NS_PER_S + nanoseconds,
            uptime_ms: four(message, 4)?,
            // The two highest bits are the sampling mode.
            sampling: u32::from(sampling & 0x3fff),
            start: V5_HEADER_BYTES,
            end,
        })
    }

    fn netflow9(message: &[u8]) -> Option<Self> {
        Some(Self {
            version: Version::Netflow9,
            domain: four(message, 16)?,
            sequence: four(message, 12)?,
            export_ns: u64::from(four(message, 8)?) * NS_PER_S,
            uptime_ms: four(message, 4)?,
            sampling: 0,
            start: V9_HEADER_BYTES,
            end: message.len(),
        })
    }

    fn ipfix(message: &[u8]) -> Option<Self> {
        let end = usize::from(two(message, 2)?);
        (end >= IPFIX_HEADER_BYTES && end <= message.len()).then_some(Self {
            version: Version::Ipfix,
            domain: four(message, 12)?,
            sequence: four(message, 8)?,
            export_ns: u64::from(four(message, 4)?) * NS_PER_S,
            uptime_ms: 0,
            sampling: 0,
            start: IPFIX_HEADER_BYTES,
            end,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_that_claim_more_than_there_is_are_none() {
        let mut ipfix = [0; 20];
        ipfix[1] = 10;
        ipfix[3] = 20;
        assert_eq!(Header::of(&ipfix).map(|header| header.end), Some(20));
        ipfix[3] = 21;
        assert_eq!(Header::of(&ipfix), None);
        ipfix[3] = 15;
        assert_eq!(Header::of(&ipfix), None);
        let mut v5 = [0; 24 + 48];
        (v5[1], v5[3]) = (5, 1);
        assert!(Header::of(&v5).is_some());
        v5[3] = 2;
        assert_eq!(Header::of(&v5), None);
        for length in 0..20 {
            let mut v9 = [0; 20];
            v9[1] = 9;
            assert_eq!(Header::of(&v9[..length]), None);
        }
    }
}
