// SPDX-License-Identifier: Apache-2.0
//! Formats of counts for people.

pub(crate) use turboflow_formats::table::grouped;
pub(crate) use turboflow_run::units::{
    count, count_above_zero, duration, seed, size_bytes, time_unit,
};

/// A count with its noun: `1 packet`, `2,000 packets`.
pub(crate) fn counted(number: u64, one: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {one}{plural}", grouped(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_counts() {
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(grouped(12), "12");
        assert_eq!(counted(1, "packet"), "1 packet");
    }
}
