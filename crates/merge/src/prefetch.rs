// SPDX-License-Identifier: Apache-2.0
//! Asking for memory ahead of its use: what keeps tables of records fast once they outgrow caches.

/// Lines of one record that are asked for at most: further ones follow by the processor's own
/// reading ahead.
#[cfg(target_arch = "x86_64")]
const MAX_LINES: usize = 8;

/// How near memory is fetched: the numbers of x86-64's hints.
const FIRST_LEVEL: i32 = 3;
const SECOND_LEVEL: i32 = 2;
#[cfg(target_arch = "x86_64")]
const _: () = assert!(
    FIRST_LEVEL == std::arch::x86_64::_MM_HINT_T0 && SECOND_LEVEL == std::arch::x86_64::_MM_HINT_T1
);

/// Asks for the cache lines of the `T` at `pointer`, for use soon: into the first-level cache. Any address is allowed; nothing is read.
#[inline(always)]
pub fn prefetch<T>(pointer: *const T) {
    ask::<T, FIRST_LEVEL>(pointer);
}

/// The same for use later, of memory that lies in no cache as a rule: into the second-level cache, from where it is fetched in a few
/// nanoseconds.
///
/// What is asked for into the first level keeps one of that cache's few places for lines that are under way. Once all are taken,
/// the processor waits, with all that it could do meanwhile.
#[inline(always)]
pub fn prefetch_far<T>(pointer: *const T) {
    ask::<T, SECOND_LEVEL>(pointer);
}

#[inline(always)]
fn ask<T, const HINT: i32>(pointer: *const T) {
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
