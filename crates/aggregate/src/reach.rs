// SPDX-License-Identifier: Apache-2.0
//! How the merge asks for memory ahead, by how large the table is.
//!
//! A line that is asked for into the first-level cache keeps one of that cache's few places for lines under way; into the second
//! level there are more. Either way the request waits until the line's address is translated, and only so much that comes after it
//! can be under way meanwhile: the work on some six records. In a table of gigabytes that translation takes as long as the line
//! itself. Where most records need one, six are waited for at a time. Where few do, as with skewed traffic, each is waited for
//! alone; but requests for addresses that are known, one right behind the other, wait together.
//!
//! | table | | lines |
//! |---|---|---|
//! | as large as caches close to a core | [`Near`] | one by one, into the first level |
//! | larger | [`Far`] | one by one, into the second level |
//! | larger by far than what translations close to a core reach, and flows come again soon | [`Farthest`] | together, into the second level |
//! | growing | [`Growing`] | as `Far` |
//!
//! Where each begins to pay was tried out on Zen 4, with one table and each way in turn: `Far` from 100K flows on (8 MB), whatever the
//! traffic; `Farthest` from 10M flows on (800 MB), where traffic is skewed. At random it costs more at 1M flows, somewhat more at
//! 10M, and no more at 20M; on an Intel machine (Xeon with AMX), a third more at 10M and 20M. So there it depends on the traffic, too
//! (`recurrence.rs`). `docs/evaluation.md` has what came of it.

use turboflow_record::{prefetch, prefetch_far};

/// From which sizes of a table on it is far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FarFrom {
    /// [`Far`]: flow records lie in no cache close to a core as a rule.
    pub(crate) far_bytes: usize,
    /// [`Farthest`]: nor do the translations of their addresses.
    pub(crate) farthest_bytes: usize,
}

impl Default for FarFrom {
    fn default() -> Self {
        Self {
            far_bytes: 4 << 20,
            farthest_bytes: 512 << 20,
        }
    }
}

/// The rows of the table above.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Distance {
    Near,
    Far,
    Farthest,
    Growing,
}

/// How lines are asked for.
pub(crate) trait Reach {
    /// Into the second-level cache, or the first.
    const FAR: bool;
    /// Those of as many blocks together as the stages are apart, or each as soon as it is known.
    const TOGETHER: bool = false;
    /// Whether the table is on its way to a larger region: some keys are in the old one.
    const GROWING: bool = false;

    /// Asks for the lines of a `T`.
    #[inline(always)]
    fn fetch<T>(pointer: *const T) {
        if Self::FAR {
            prefetch_far(pointer);
        } else {
            prefetch(pointer);
        }
    }
}

pub(crate) struct Near;
pub(crate) struct Far;
pub(crate) struct Farthest;
pub(crate) struct Growing;

impl Reach for Near {
    const FAR: bool = false;
}

impl Reach for Far {
    const FAR: bool = true;
}

impl Reach for Farthest {
    const FAR: bool = true;
    const TOGETHER: bool = true;
}

impl Reach for Growing {
    const FAR: bool = true;
    const GROWING: bool = true;
}
