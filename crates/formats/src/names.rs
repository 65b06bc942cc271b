// SPDX-License-Identifier: Apache-2.0
//! Names that text formats may write instead of numbers: here those of end reasons. The names of
//! protocols are in `turboflow_record`.

use turboflow_record::EndReason;

/// The number of an end reason.
#[must_use]
pub fn end_reason_number(name: &str) -> Option<u64> {
    EndReason::ALL
        .into_iter()
        .find(|reason| reason.name() == name)
        .map(|reason| reason as u64)
}

/// The name of an end reason.
#[must_use]
pub fn end_reason_name(number: u64) -> Option<&'static str> {
    EndReason::ALL
        .into_iter()
        .find(|&reason| reason as u64 == number)
        .map(EndReason::name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        assert_eq!(end_reason_number("idle_timeout"), Some(1));
        assert_eq!(end_reason_name(5), Some("lack_of_resources"));
    }
}
