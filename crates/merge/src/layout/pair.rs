// SPDX-License-Identifier: Apache-2.0
//! A pair of states that are to be merged.

/// The most pending pairs. Few enough that records of ordinary size stay in the L1 cache.
pub(crate) const PAIRS: usize = 32;

/// The states of a flow's record and of a later record.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    pub(crate) flow: *mut u64,
    pub(crate) later: *const u64,
}
