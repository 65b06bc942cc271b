// SPDX-License-Identifier: Apache-2.0
//! How far ahead the merge asks for memory, by the size of the table.
//!
//! | way | what is asked for | into | blocks from one stage to the next |
//! |---|---|---|---|
//! | [`Near`] | records | the L1 cache | 4 |
//! | [`Deep`] | tag lines, records | the L2 cache | 16 |
//!
//! An L1 prefetch holds a line-fill buffer, of which there are 10 to 16; an L2 prefetch does not.
//! A long way pushes lines out of L1 that are still in use, so it pays only where the table lies
//! outside the processor's own caches.
//!
//! `docs/decisions/0005-ways-of-prefetching.md` has what was measured, and which ways were dropped.

use turboflow_merge::{prefetch, prefetch_far};

/// From this size of a table on, in bytes, [`Deep`] is taken.
const DEEP_FROM_BYTES: usize = 4 << 20;

/// How a chunk's lines are asked for: see the module.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Deep,
    Near,
}

impl Way {
    /// The way for a table of that size.
    pub(crate) const fn of_size(size_bytes: usize) -> Self {
        if size_bytes < DEEP_FROM_BYTES {
            Self::Near
        } else {
            Self::Deep
        }
    }
}

/// How lines are asked for.
pub(crate) trait Reach {
    /// Whether tag lines are asked for, too.
    const LINES: bool;

    /// Asks for the lines of a `T`.
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
    /// A thirtieth of the table: waiting for them costs less than asking.
    const LINES: bool = false;

    #[inline(always)]
    fn fetch<T>(pointer: *const T) {
        prefetch(pointer);
    }
}
