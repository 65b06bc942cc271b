// SPDX-License-Identifier: Apache-2.0
//! Asking for memory ahead of its use: what keeps tables of records fast once they outgrow caches.

/// Lines of one record that are asked for at most: further ones follow by the processor's own
/// reading ahead.
const MAX_LINES: usize = 8;

/// Asks for the cache lines of the `T` at `pointer`. Any address is allowed; nothing is read.
#[inline(always)]
pub fn prefetch<T>(pointer: *const T) {
    #[cfg(target_arch = "x86_64")]
    for line in 0..size_of::<T>().div_ceil(64).min(MAX_LINES) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(pointer.cast::<i8>().wrapping_add(64 * line)) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = pointer;
}
