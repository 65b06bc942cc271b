// SPDX-License-Identifier: Apache-2.0
//! Large zeroed arrays that cost nothing until touched, on huge pages where the system has them.

use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use memmap2::{MmapMut, MmapOptions};

/// Types for which every bit pattern, all zero among them, is a value.
///
/// # Safety
/// The implementer has no niche, no reference and no `Drop`, and is valid when all its bytes are 0.
pub(crate) unsafe trait PlainBytes: Copy {}

// SAFETY: integers in a repr(C) struct; padding bytes are never read.
unsafe impl<const K: usize, const N: usize> PlainBytes for turboflow_record::MicroflowRecord<K, N> {}

// SAFETY: an integer.
unsafe impl PlainBytes for u64 {}

/// A fixed array of zeroed `T`, mapped from the system and given back to it when dropped.
///
/// Huge pages are asked for because a random access to a table of gigabytes otherwise misses the
/// translation buffers as well as the caches.
pub(crate) struct ZeroedArray<T: PlainBytes> {
    /// Keeps the memory; all access goes through `base`.
    map: Option<MmapMut>,
    base: NonNull<T>,
    len: usize,
}

// SAFETY: the array owns its mapping, and T is plain bytes.
unsafe impl<T: PlainBytes + Send> Send for ZeroedArray<T> {}

/// Below this size huge pages waste more memory than they save time.
const HUGE_PAGE_WORTH_BYTES: usize = 4 << 20;

impl<T: PlainBytes> ZeroedArray<T> {
    /// Maps `len` elements.
    ///
    /// # Panics
    /// When the system has no address space left for them: sizes are fixed by configuration, and
    /// the pipeline tests that they can be had before it starts.
    pub(crate) fn new(len: usize) -> Self {
        let size_bytes = len
            .checked_mul(size_of::<T>())
            .expect("array size fits usize");
        if size_bytes == 0 {
            return Self {
                map: None,
                base: NonNull::dangling(),
                len: 0,
            };
        }
        let mut map = MmapOptions::new()
            .len(size_bytes)
            .map_anon()
            .unwrap_or_else(|error| panic!("mapping {size_bytes} bytes for a flow cache: {error}"));
        assert_eq!(
            map.as_ptr().align_offset(align_of::<T>()),
            0,
            "pages are aligned"
        );
        #[cfg(target_os = "linux")]
        if size_bytes >= HUGE_PAGE_WORTH_BYTES {
            // A refusal (no huge pages on this kernel) costs speed only.
            let _ = map.advise(memmap2::Advice::HugePage);
        }
        let base = NonNull::new(map.as_mut_ptr().cast()).expect("a mapping is not at address 0");
        Self {
            map: Some(map),
            base,
            len,
        }
    }

    /// The first element. Pointers derived from it stay valid until the array is dropped.
    #[inline(always)]
    pub(crate) const fn as_pointer(&self) -> *mut T {
        self.base.as_ptr()
    }

    /// Gives the memory of the elements before `end` back to the system as far as whole steps of
    /// `RELEASE_STEP_BYTES` go. They read as zero afterwards.
    pub(crate) fn release_before(&mut self, released: &mut usize, end: usize) {
        const RELEASE_STEP_BYTES: usize = 8 << 20;
        let end_bytes = end * size_of::<T>() / RELEASE_STEP_BYTES * RELEASE_STEP_BYTES;
        if end_bytes <= *released {
            return;
        }
        #[cfg(target_os = "linux")]
        if let Some(map) = &self.map {
            let advice = memmap2::UncheckedAdvice::DontNeed;
            // SAFETY: the range lies in this private anonymous mapping; its elements become zero,
            // which is a value of T, and no reference into it is alive as we hold `&mut self`.
            let outcome =
                unsafe { map.unchecked_advise_range(advice, *released, end_bytes - *released) };
            // A refusal only means that the memory stays with us until the array is dropped.
            let _ = outcome;
        }
        *released = end_bytes;
    }
}

impl<T: PlainBytes> Deref for ZeroedArray<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: the mapping holds `len` aligned elements (checked in `new`) of bytes that are
        // values of T by `PlainBytes`, and lives as long as self.
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
    use turboflow_record::MicroflowRecord;

    #[test]
    fn is_zero_and_keeps_what_is_written() {
        let mut array = ZeroedArray::<MicroflowRecord<2, 0>>::new(1 << 18);
        assert!(
            array
                .iter()
                .all(|record| *record == MicroflowRecord::default())
        );
        array[77].key = [1, 2];
        array[(1 << 18) - 1].key = [3, 4];
        let mut released = 0;
        array.release_before(&mut released, 1 << 17);
        assert_eq!(released, 8 << 20);
        #[cfg(target_os = "linux")]
        assert_eq!(array[77].key, [0, 0]);
        assert_eq!(array[(1 << 18) - 1].key, [3, 4]);
        assert!(ZeroedArray::<MicroflowRecord<2, 0>>::new(0).is_empty());
    }
}
