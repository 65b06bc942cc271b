// SPDX-License-Identifier: Apache-2.0
//! Prefetching, which keeps record tables fast when they are larger than the caches.

/// The most cache lines of one record to prefetch. The hardware prefetcher fetches further ones.
#[cfg(target_arch = "x86_64")]
const MAX_LINES: usize = 8;

/// Cache levels, as numbered by the hints of x86-64.
const FIRST_LEVEL: i32 = 3;
const SECOND_LEVEL: i32 = 2;
#[cfg(target_arch = "x86_64")]
const _: () = assert!(
    FIRST_LEVEL == std::arch::x86_64::_MM_HINT_T0 && SECOND_LEVEL == std::arch::x86_64::_MM_HINT_T1
);

/// Prefetches the cache lines of the `T` at `pointer` into the L1 cache, for use soon. Any address
/// is allowed; nothing is read.
#[inline(always)]
pub fn prefetch<T>(pointer: *const T) {
    prefetch_lines::<T, FIRST_LEVEL>(pointer);
}

/// Prefetches into the L2 cache, for later use of memory that is usually in no cache. A load from
/// L2 takes a few nanoseconds.
///
/// An L1 prefetch occupies one of the few line-fill buffers. When all of them are taken, the
/// processor stalls, and with it all other work.
#[inline(always)]
pub fn prefetch_far<T>(pointer: *const T) {
    prefetch_lines::<T, SECOND_LEVEL>(pointer);
}

#[inline(always)]
fn prefetch_lines<T, const HINT: i32>(pointer: *const T) {
    #[cfg(target_arch = "x86_64")]
    for line in 0..size_of::<T>().div_ceil(64).min(MAX_LINES) {
        // SAFETY: a prefetch never faults.
        unsafe {
            std::arch::x86_64::_mm_prefetch::<HINT>(pointer.cast::<i8>().wrapping_add(64 * line));
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = pointer;
}
