// SPDX-License-Identifier: Apache-2.0
//! Frames that are not packets, handed up whole on request.

use libbpf_rs::{MapCore, MapFlags, MapHandle, Object};
use turboflow_engine::UnparsedFrame;

use crate::layout::words;
use crate::object::map;
use crate::ring::Ring;
use crate::{HandUp, KernelEngine, KernelError};

/// Size of `struct unparsed_frame` in `bpf/unparsed.h` without the frame.
const HEADER_BYTES: usize = 16;
/// The frame in an item of the ring.
fn frame_of(item: &[u8]) -> Option<UnparsedFrame<'_>> {
    let (header, bytes) = item.split_at_checked(HEADER_BYTES)?;
    let mut words = words(header);
    Some(UnparsedFrame {
        bytes,
        timestamp_ns: words.next()?,
        wire_length_bytes: u32::try_from(words.next()?).unwrap_or(u32::MAX),
    })
}

/// The ring of handed-up frames.
pub(crate) struct Unparsed {
    ring: Ring,
    lost: MapHandle,
}

impl Unparsed {
    pub(crate) fn open(
        object: &Object,
        hand_up: Option<HandUp>,
    ) -> Result<Option<Self>, KernelError> {
        if hand_up.is_none() {
            return Ok(None);
        }
        let what = "ring of frames";
        let ring = Ring::map(&map(object, "unparsed")?)
            .map_err(|source| KernelError::Map { what, source })?;
        let lost = map(object, "unparsed_lost")?;
        Ok(Some(Self { ring, lost }))
    }
}

impl KernelEngine {
    /// Passes the frames handed up since the last call to `take`: at most one ring's worth, and
    /// none if the configuration requests none. So the interval between calls bounds the rate of
    /// frames.
    pub fn take_unparsed(&mut self, mut take: impl FnMut(UnparsedFrame<'_>)) {
        let Some(unparsed) = &mut self.unparsed else {
            return;
        };
        // Frames that arrive meanwhile are left for the next call.
        let end = unparsed.ring.end();
        while !unparsed.ring.is_read_to(end) {
            let read = unparsed.ring.read(1, |item| {
                if let Some(frame) = frame_of(item) {
                    take(frame);
                }
            });
            if read == 0 {
                break;
            }
        }
    }

    /// Number of frames that could not be handed up because their ring was full.
    ///
    /// # Errors
    /// Where the kernel does not return it.
    pub fn unparsed_lost(&self) -> Result<u64, KernelError> {
        let Some(unparsed) = &self.unparsed else {
            return Ok(0);
        };
        let cpus = unparsed
            .lost
            .lookup_percpu(&0u32.to_ne_bytes(), MapFlags::ANY)
            .map_err(KernelError::refused("read how many frames it lost"))?;
        let of_cpus = cpus.iter().flatten().flat_map(|cpu| words(cpu));
        Ok(of_cpus.sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_read_as_the_program_writes_it() {
        let mut item = [0; 19];
        item[..8].copy_from_slice(&7u64.to_ne_bytes());
        item[8..16].copy_from_slice(&1_514u64.to_ne_bytes());
        item[16..].copy_from_slice(&[1, 2, 3]);
        let frame = frame_of(&item).expect("is one");
        assert_eq!((frame.timestamp_ns, frame.wire_length_bytes), (7, 1_514));
        assert_eq!(frame.bytes, [1, 2, 3]);
        assert!(frame_of(&item[..15]).is_none());
    }
}
