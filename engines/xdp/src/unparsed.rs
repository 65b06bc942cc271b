// SPDX-License-Identifier: Apache-2.0
//! Frames that are not packets, handed up whole on request.

use libbpf_rs::{MapCore, MapFlags, MapHandle, Object, OpenMapMut};
use turboflow_engine::UnparsedFrame;

use crate::engine::map;
use crate::layout::words;
use crate::ring::Ring;
use crate::{KernelEngine, KernelError};

/// Size of `struct unparsed_frame` in `bpf/unparsed.h` without the frame.
const HEADER_BYTES: usize = 16;
/// Maps that exist only if frames are handed up.
const MAPS: [&str; 3] = ["unparsed", "unparsed_copy", "unparsed_lost"];

/// How frames that are not packets are handed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandUp {
    /// Bytes kept of a frame.
    pub snap_bytes: u32,
    /// Bytes of the ring buffer for these frames: a power of two, and a multiple of the page size.
    /// It bounds their rate: frames that arrive while it is full are only counted.
    pub ring_bytes: u32,
}

impl HandUp {
    /// Maximum bytes kept of a frame.
    pub const MAX_SNAP_BYTES: u32 = 16_384;

    /// The bytes of `struct unparsed_config` in `bpf/unparsed.h`.
    fn config_bytes(this: Option<Self>) -> [u8; 8] {
        let snap_bytes = this.map_or(0, |this| this.snap_bytes.min(Self::MAX_SNAP_BYTES));
        u64::from(snap_bytes).to_le_bytes()
    }

    /// Configures a map before anything is loaded into the kernel. Returns whether it is one of
    /// [`MAPS`].
    pub(crate) fn configure(
        this: Option<Self>,
        map: &mut OpenMapMut<'_>,
    ) -> libbpf_rs::Result<bool> {
        let name = map.name().to_owned();
        if name == ".rodata.unparsed" {
            map.set_initial_value(&Self::config_bytes(this))?;
            return Ok(true);
        }
        if !MAPS.iter().any(|own| name == *own) {
            return Ok(false);
        }
        match this {
            // The instructions that use it are dead code.
            None => map.set_autocreate(false)?,
            Some(this) if name == "unparsed" => map.set_max_entries(this.ring_bytes)?,
            Some(_) => {}
        }
        Ok(true)
    }
}

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
