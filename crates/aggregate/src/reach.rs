// SPDX-License-Identifier: Apache-2.0
//! Prefetch distance of the merge. It depends on the size of the table and of its records.
//!
//! | way | prefetches | into | blocks between two stages |
//! |---|---|---|---|
//! | [`Near`] | records | the L1 cache | 4 |
//! | [`Deep`] | tag lines, records | the L2 cache | 16 |
//!
//! An L1 prefetch occupies a line-fill buffer, of which there are 10 to 16; an L2 prefetch does
//! not. A long distance pushes lines out of L1 that are still in use, so it pays only if the table
//! does not fit into the caches of the processor core.
//!
//! `docs/decisions/0005-ways-of-prefetching.md` has the measurements and the variants that were
//! dropped.

use turboflow_merge::{prefetch, prefetch_far};

/// [`Deep`] is used for tables of at least this size, in bytes, and for large records of any table.
const DEEP_FROM_BYTES: usize = 4 << 20;

/// How the lines of a chunk are prefetched: see the module documentation.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Deep,
    Near,
}

impl Way {
    /// The way for a table of `size_bytes`.
    pub(crate) const fn of_size(size_bytes: usize) -> Self {
        if size_bytes < DEEP_FROM_BYTES {
            Self::Near
        } else {
            Self::Deep
        }
    }
}

/// How lines are prefetched.
pub(crate) trait Reach {
    /// Whether tag lines are prefetched as well as records.
    const LINES: bool;

    /// Prefetches the lines of a `T`.
    fn fetch<T>(pointer: *const T);
}

pub(crate) struct Deep;
pub(crate) struct Near;

impl Reach for Deep {
    const LINES: bool = true;

    #[inline(always)]
    fn fetch<T>(pointer: *const T) {
        prefetch_far(pointer);
    }
}

impl Reach for Near {
    /// Tag lines are a thirtieth of the table, so misses cost less than the prefetches would.
    const LINES: bool = false;

    #[inline(always)]
    fn fetch<T>(pointer: *const T) {
        prefetch(pointer);
    }
}
