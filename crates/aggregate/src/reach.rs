// SPDX-License-Identifier: Apache-2.0
//! How the merge asks for memory ahead, by how large the table is.
//!
//! A line that is asked for into the first-level cache keeps one of that cache's few places for lines under way; into the second
//! level there are more. Both wait for the translation of the line's address, and the processor with them as soon as no room is left
//! for what comes after: six records further on, where lines are asked for one by one, a hundred where addresses that are known
//! already are asked for together. Where few records need a translation that is far, as with skewed traffic in a table of
//! gigabytes, it takes the latter for two of them to be under way at a time.
//!
//! | table | | lines |
//! |---|---|---|
//! | as large as caches close to a core | [`Near`] | one by one, into the first level |
//! | larger | [`Far`] | one by one, into the second level |
//! | larger than what translations close to a core reach by far | [`Farthest`] | together, into the second level |
//! | growing | [`Growing`] | as `Far` |

use turboflow_record::{prefetch, prefetch_far};

/// From which sizes of a table on which lines are asked for how, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reaches {
    /// [`Far`]: flow records lie in no cache close to a core as a rule.
    pub(crate) far_from_bytes: usize,
    /// [`Farthest`]: nor do the translations of their addresses.
    pub(crate) farthest_from_bytes: usize,
}

impl Default for Reaches {
    fn default() -> Self {
        Self {
            far_from_bytes: 4 << 20,
            farthest_from_bytes: 512 << 20,
        }
    }
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
