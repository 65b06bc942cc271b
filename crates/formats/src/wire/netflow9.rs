// SPDX-License-Identifier: Apache-2.0
//! The header of a NetFlow v9 message.

use super::uptime::{LAST_SECOND, sent_ms};

/// Version number (RFC 3954, section 5.1).
const VERSION: u16 = 9;
/// FlowSet ids of templates and of options templates (RFC 3954, sections 5.2 and 6.1).
pub(super) const TEMPLATE_SET: u16 = 0;
pub(super) const OPTIONS_TEMPLATE_SET: u16 = 1;
/// The scope "System" of options (RFC 3954, section 6.1).
pub(super) const SCOPE_SYSTEM: u16 = 1;

/// The time origin of a message, and the latest time in its records.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Times {
    pub(super) boot_ms: u64,
    pub(super) latest_ms: u64,
    pub(super) now_ms: u64,
}

/// The header; `count` is the number of all records, including templates. Its sequence number is
/// the number of messages sent before this one, and is filled in when the message is sent.
///
/// The export time is rounded up to a whole second, and the uptime is computed for that second. So
/// the start of the exporter, and every time in the message, is exact to the millisecond although
/// the header has whole seconds only. The last second that 32 bits can hold is not rounded up.
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |       Version Number          |            Count              |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                           sysUpTime                           |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                           UNIX Secs                           |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                       Sequence Number                         |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                        Source ID                              |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// ```
pub(super) fn header(count: u16, times: Times, domain: u32) -> [u8; 20] {
    let sent_ms = sent_ms(times.now_ms, times.latest_ms);
    let seconds = sent_ms.div_ceil(1_000).min(LAST_SECOND);
    let uptime_ms = (seconds * 1_000).saturating_sub(times.boot_ms) as u32;
    let mut header = [0; 20];
    header[..2].copy_from_slice(&VERSION.to_be_bytes());
    header[2..4].copy_from_slice(&count.to_be_bytes());
    let words = [uptime_ms, seconds as u32, 0, domain];
    for (place, word) in header[4..].chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_be_bytes());
    }
    header
}
