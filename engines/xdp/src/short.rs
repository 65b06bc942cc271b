// SPDX-License-Identifier: Apache-2.0
//! Flows with dropped records, because the ring was full.

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use turboflow_engine::ShortFlow;
use turboflow_record::WORDS_V4;

use crate::layout::words;
use crate::{KernelEngine, KernelError};

/// Words of [`ShortFlow`] after its key.
const MISSING_WORDS: usize = 3;
/// Approximate overhead of a map element in the kernel, beside key and value.
const ELEMENT_BYTES: u64 = 48;

impl KernelEngine {
    /// Every flow with dropped records that the kernel could note (`bpf/dropped.h` has the limit).
    /// [`KernelCounters::microflows_unnamed`](crate::KernelCounters::microflows_unnamed) counts the
    /// records of other flows.
    ///
    /// # Errors
    /// Where the kernel does not return them. If it ends the iteration early, only the sums show
    /// that.
    pub fn short_flows(&self) -> Result<Vec<ShortFlow>, KernelError> {
        let by_family = self
            .shape
            .is_none_or(|shape| shape.wide_key_words.is_none());
        let mut flows = Vec::new();
        for key in self.short_flows.keys() {
            let missing = read(&self.short_flows, &key)?;
            let mut key: Vec<u64> = words(&key).collect();
            // The last word of an IPv6 key is never 0.
            if by_family && key.last() == Some(&0) {
                key.truncate(WORDS_V4);
            }
            let [microflows, packets, bytes] = missing;
            flows.push(ShortFlow {
                key,
                microflows,
                packets,
                bytes,
            });
        }
        Ok(flows)
    }
}

/// Upper bound on the memory of the map.
pub(crate) fn memory_bytes(map: &MapHandle) -> u64 {
    let element = ELEMENT_BYTES + u64::from(map.key_size()) + u64::from(map.value_size());
    u64::from(map.max_entries()) * element
}

fn read(map: &MapHandle, key: &[u8]) -> Result<[u64; MISSING_WORDS], KernelError> {
    let value = map.lookup(key, MapFlags::ANY);
    let value = value.map_err(KernelError::refused("read which flows lost records"))?;
    let missing: Option<Vec<u64>> = value.map(|value| words(&value).collect());
    missing
        .and_then(|words| words.try_into().ok())
        .ok_or(KernelError::Incomplete {
            name: "short_flows",
        })
}
