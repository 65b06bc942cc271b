// SPDX-License-Identifier: Apache-2.0
//! Large zeroed arrays that take no memory until touched, on huge pages where the system has them.

use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;

use memmap2::{MmapOptions, MmapRaw};

/// Lets all threads share one heap, for processes whose address space is limited: for each thread,
/// glibc reserves 64 MiB of it. Must be called before there are other threads.
pub fn share_heap() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: the signature is that of `man 3 mallopt`, which has no precondition.
        unsafe extern "C" {
            safe fn mallopt(parameter: i32, value: i32) -> i32;
        }
        /// `man 3 mallopt`.
        const M_ARENA_MAX: i32 = -8;
        // If refused, the process uses more address space.
        let _ = mallopt(M_ARENA_MAX, 1);
    }
}

/// Whether the system would grant this much memory now. Memory that is not touched costs nothing.
#[must_use]
pub fn has_room(size_bytes: usize) -> bool {
    Mapping::new(size_bytes).is_some()
}

/// Types for which every bit pattern is a valid value.
///
/// # Safety
/// The implementer has no niche, no reference and no `Drop`, and is valid when all its bytes are 0.
pub(crate) unsafe trait PlainBytes: Copy {}

// SAFETY: integers in a repr(C) struct; padding bytes are never read.
unsafe impl<const K: usize, const N: usize> PlainBytes for turboflow_merge::MicroflowRecord<K, N> {}

// SAFETY: an integer.
unsafe impl PlainBytes for u64 {}

// SAFETY: integers.
unsafe impl<const N: usize> PlainBytes for [u64; N] {}

/// Size of a huge page, in bytes.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Zeroed anonymous memory, unmapped when the last array in it is dropped. No reference to the
/// bytes of the mapping itself exists, because they belong to the arrays.
///
/// Arrays that are used together share a mapping, so that small ones also get huge pages. A mapping
/// of at least one huge page starts on a huge-page boundary. The remainder at its end takes small
/// pages, so no memory is wasted. Without huge pages, random access to a table of megabytes misses
/// the TLB as well as the caches.
pub(crate) struct Mapping {
    /// Keeps the memory mapped; all access goes through arrays.
    map: Option<Arc<MmapRaw>>,
    /// The first byte not yet given to an array.
    next: NonNull<u8>,
    left_bytes: usize,
}

impl Mapping {
    /// Maps `size_bytes`. `None` if the system refuses (a limit of the process, or of the machine).
    pub(crate) fn new(size_bytes: usize) -> Option<Self> {
        if size_bytes == 0 {
            return Some(Self {
                map: None,
                next: NonNull::dangling(),
                left_bytes: 0,
            });
        }
        let is_large = size_bytes >= HUGE_PAGE_BYTES;
        let slack_bytes = if is_large { HUGE_PAGE_BYTES } else { 0 };
        let map = MmapOptions::new()
            .len(size_bytes.saturating_add(slack_bytes))
            .map_anon();
        let map = MmapRaw::from(map.ok()?);
        let mut skipped_bytes = 0;
        if is_large {
            skipped_bytes = map.as_ptr().align_offset(HUGE_PAGE_BYTES);
            // Without huge pages the table is slower, but correct.
            #[cfg(target_os = "linux")]
            let _ = map.advise_range(memmap2::Advice::HugePage, skipped_bytes, size_bytes);
        }
        let next = NonNull::new(map.as_mut_ptr().wrapping_add(skipped_bytes));
        Some(Self {
            map: Some(Arc::new(map)),
            next: next.expect("a mapping is not at address 0"),
            left_bytes: size_bytes,
        })
    }

    /// Takes the next `len` elements from the mapping.
    ///
    /// # Panics
    /// If fewer are left.
    pub(crate) fn array<T: PlainBytes>(&mut self, len: usize) -> ZeroedArray<T> {
        let size_bytes = len
            .checked_mul(size_of::<T>())
            .expect("array size fits usize");
        if size_bytes == 0 {
            return ZeroedArray {
                map: None,
                base: NonNull::dangling(),
                // Elements without size need no memory.
                len,
            };
        }
        let base = self.next.cast::<T>();
        assert!(base.is_aligned(), "larger alignments come first");
        self.left_bytes = self
            .left_bytes
            .checked_sub(size_bytes)
            .expect("the mapping is as large as its arrays");
        // SAFETY: `size_bytes` are left in the mapping, so the result is in it or at its end.
        self.next = unsafe { self.next.add(size_bytes) };
        ZeroedArray {
            map: self.map.clone(),
            base,
            len,
        }
    }
}

/// Array memory is returned to the system in steps of this many bytes.
pub(crate) const RELEASE_STEP_BYTES: usize = 8 << 20;
/// Upper bound on the size of ordinary pages, in bytes. A page that begins before an array also
/// holds another array, so it is not released.
pub(crate) const PAGE_BYTES: usize = 64 << 10;

/// A fixed array of zeroed `T` in a [`Mapping`], with exclusive use of its bytes.
pub(crate) struct ZeroedArray<T: PlainBytes> {
    /// Keeps the memory; all access goes through `base`.
    map: Option<Arc<MmapRaw>>,
    base: NonNull<T>,
    len: usize,
}

// SAFETY: only this array uses its part of the mapping, and T is plain bytes.
unsafe impl<T: PlainBytes + Send> Send for ZeroedArray<T> {}

impl<T: PlainBytes> ZeroedArray<T> {
    /// The first element. Pointers derived from it stay valid until the array is dropped.
    #[inline(always)]
    pub(crate) const fn as_pointer(&self) -> *mut T {
        self.base.as_ptr()
    }

    /// Returns the memory of the elements before `end` to the system, in whole steps of
    /// `RELEASE_STEP_BYTES`. They read as zero afterwards, except those before the array's first
    /// page.
    pub(crate) fn release_before(&mut self, released: &mut usize, end: usize) {
        let base = self.base.addr().get();
        let start = (base + *released).next_multiple_of(PAGE_BYTES);
        let end = (base + end * size_of::<T>()) / RELEASE_STEP_BYTES * RELEASE_STEP_BYTES;
        if end <= start {
            return;
        }
        #[cfg(target_os = "linux")]
        if let Some(map) = &self.map {
            let advice = memmap2::UncheckedAdvice::DontNeed;
            let offset = start - map.as_ptr().addr();
            // SAFETY: the range lies in this array, which `&mut self` borrows exclusively, in a
            // private anonymous mapping, and starts at a page. Its elements become zero, which is a
            // value of T.
            let outcome = unsafe { map.unchecked_advise_range(advice, offset, end - start) };
            // If refused, the memory stays allocated until the array is dropped.
            let _ = outcome;
        }
        *released = end - base;
    }
}

impl<T: PlainBytes> Deref for ZeroedArray<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: the mapping holds `len` aligned elements (checked in `Mapping::array`), whose
        // bytes are valid values of T by `PlainBytes`. It lives as long as self.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.len) }
    }
}

impl<T: PlainBytes> DerefMut for ZeroedArray<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`; `&mut self` makes the slice the only reference.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turboflow_merge::MicroflowRecord;

    type Record = MicroflowRecord<2, 0>;

    #[test]
    fn arrays_start_zeroed_and_keep_their_values_while_neighbours_are_released() {
        const RECORDS: usize = 1 << 19;
        // The arrays end in the middle of a page, and of a huge page.
        const BEFORE: usize = 77;
        let mut mapping = Mapping::new((BEFORE + RECORDS) * 64 + BEFORE * 8).unwrap();
        let mut before = mapping.array::<Record>(BEFORE);
        let mut array = mapping.array::<Record>(RECORDS);
        let mut behind = mapping.array::<u64>(BEFORE);
        drop(mapping);
        let is_zero = |record: &Record| *record == Record::default();
        assert!(before.iter().chain(array.iter()).all(is_zero));
        before.iter_mut().for_each(|record| record.key = [1, 2]);
        array.iter_mut().for_each(|record| record.key = [3, 4]);
        behind.fill(5);
        let mut released = 0;
        array.release_before(&mut released, 10);
        assert_eq!(released, 0);
        array.release_before(&mut released, RECORDS / 4 * 3);
        assert!((16 << 20..=24 << 20).contains(&released));
        array.release_before(&mut released, RECORDS);
        assert!((24 << 20..=32 << 20).contains(&released));
        assert!(before.iter().all(|record| record.key == [1, 2]));
        assert!(behind.iter().all(|number| *number == 5));
        let kept = released / size_of::<Record>();
        assert!(array[kept..].iter().all(|record| record.key == [3, 4]));
        let first = PAGE_BYTES / size_of::<Record>();
        #[cfg(target_os = "linux")]
        assert!(array[first..kept].iter().all(is_zero));
        assert!(Mapping::new(0).unwrap().array::<Record>(0).is_empty());
        assert_eq!(Mapping::new(0).unwrap().array::<[u64; 0]>(5).len(), 5);
        assert!(
            Mapping::new(usize::MAX / 4).is_none(),
            "more than there are addresses"
        );
    }

    #[test]
    #[should_panic(expected = "as large as its arrays")]
    fn an_array_larger_than_the_rest_of_its_mapping_panics() {
        let mut mapping = Mapping::new(128).unwrap();
        let _first = mapping.array::<Record>(1);
        let _second = mapping.array::<Record>(2);
    }
}
