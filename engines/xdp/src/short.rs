// SPDX-License-Identifier: Apache-2.0
//! Flows that the engine lost records of, for which its ring had no room.

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use turboflow_engine::{RecordShape, ShortFlow};
use turboflow_record::{WORDS_V4, WORDS_V6};

use crate::layout::words;
use crate::{KernelEngine, KernelError};

/// Words of [`ShortFlow`] behind its key.
const MISSING_WORDS: usize = 3;
/// What the kernel keeps of an element beside key and value, about.
const ELEMENT_BYTES: u64 = 48;

/// Words of a key in the kernel's map: those of an IPv4 key are followed by zeros.
pub(crate) fn key_words(shape: Option<RecordShape>) -> usize {
    shape
        .and_then(|shape| shape.wide_key_words)
        .unwrap_or(WORDS_V6)
}

impl KernelEngine {
    /// Every flow that records were dropped of, as far as the kernel could note it (`bpf/dropped.h` says how many);
    /// [`KernelCounters::microflows_unnamed`](crate::KernelCounters::microflows_unnamed) has the records of others.
    ///
    /// # Errors
    /// Where the kernel does not give them. A walk that it ends early shows in the sums alone.
    pub fn short_flows(&self) -> Result<Vec<ShortFlow>, KernelError> {
        let by_family = self
            .shape
            .is_none_or(|shape| shape.wide_key_words.is_none());
        let mut flows = Vec::new();
        for key in self.short_flows.keys() {
            let missing = read(&self.short_flows, &key)?;
            let mut key: Vec<u64> = words(&key).collect();
            // The last word of an IPv6 key is never zero.
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

/// The most memory that the map takes.
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
