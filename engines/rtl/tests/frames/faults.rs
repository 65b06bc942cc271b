// SPDX-License-Identifier: Apache-2.0
//! Tests the parser's tests: they notice the removal of each check.

use crate::parser::many;

/// The numbers of `fault` in `rtl/tf_window.sv` (24), `rtl/tf_headers.sv` (25 to 30) and
/// `rtl/tf_transport.sv` (31 to 35).
const FAULTS: std::ops::RangeInclusive<u32> = 24..=35;

#[test]
fn every_check_that_is_taken_out_is_missed() {
    let missed = |fault| many(4_000, 11, fault).is_some();
    assert!(!missed(0));
    let unseen: Vec<u32> = FAULTS.filter(|fault| !missed(*fault)).collect();
    assert_eq!(unseen, [], "faults that the tests do not see");
}
