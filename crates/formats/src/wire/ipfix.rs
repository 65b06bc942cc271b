// SPDX-License-Identifier: Apache-2.0
//! The header of an IPFIX message.

use super::uptime::LAST_SECOND;

/// Version number (RFC 7011, section 3.1).
const VERSION: u16 = 10;
/// Set ids of templates and of options templates (RFC 7011, section 3.3.2).
pub(super) const TEMPLATE_SET: u16 = 2;
pub(super) const OPTIONS_TEMPLATE_SET: u16 = 3;

/// The header for `body_bytes` octets of sets. Its sequence number is the number of data records
/// sent before this message, and is filled in when the message is sent. The export time ends in
/// 2106; the times in the records, which have 64 bits, do not.
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |       Version Number          |            Length             |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                           Export Time                         |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                       Sequence Number                         |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                    Observation Domain ID                      |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// ```
pub(super) fn header(body_bytes: usize, now_ms: u64, domain: u32) -> [u8; 16] {
    let mut header = [0; 16];
    // The length of a message including its header fits in 16 bits, which bounds every body.
    let length = (header.len() + body_bytes) as u16;
    header[..2].copy_from_slice(&VERSION.to_be_bytes());
    header[2..4].copy_from_slice(&length.to_be_bytes());
    let seconds = (now_ms / 1_000).min(LAST_SECOND) as u32;
    header[4..8].copy_from_slice(&seconds.to_be_bytes());
    header[12..].copy_from_slice(&domain.to_be_bytes());
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_export_time_after_2106_is_the_last_one() {
        let seconds = |now_ms| header(0, now_ms, 0)[4..8].to_vec();
        assert_eq!(seconds(LAST_SECOND * 1_000 + 999), [255; 4]);
        assert_eq!(seconds(LAST_SECOND * 1_000 - 1), [255, 255, 255, 254]);
        for later_ms in [(LAST_SECOND + 1) * 1_000, u64::MAX] {
            assert_eq!(seconds(later_ms), [255; 4]);
        }
    }
}
