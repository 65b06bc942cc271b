// SPDX-License-Identifier: Apache-2.0
//! Frames that are no packet, handed up whole where they are asked for.

use libbpf_rs::{MapCore, MapFlags, MapHandle, Object, OpenMapMut};
use turboflow_engine::UnparsedFrame;

use crate::engine::map;
use crate::layout::words;
use crate::ring::Ring;
use crate::{KernelEngine, KernelError};

/// Bytes of `struct unparsed_frame` in `bpf/unparsed.h` before the frame's own.
const HEADER_BYTES: usize = 16;
/// Maps that are there where frames are handed up.
const MAPS: [&str; 3] = ["unparsed", "unparsed_copy", "unparsed_lost"];

/// How frames that are no packet are handed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandUp {
    /// Bytes kept of a frame.
    pub snap_bytes: u32,
    /// Bytes of the ring buffer that they come by: a power of two, and whole pages. It bounds their rate: what comes while it is full is
    /// counted, and that is all.
    pub ring_bytes: u32,
}

impl HandUp {
    /// The most that is kept of a frame.
    pub const MAX_SNAP_BYTES: u32 = 16_384;

    /// As `struct unparsed_config` of `bpf/unparsed.h` lies.
    fn config_bytes(this: Option<Self>) -> [u8; 8] {
        let snap_bytes = this.map_or(0, |this| this.snap_bytes.min(Self::MAX_SNAP_BYTES));
        u64::from(snap_bytes).to_le_bytes()
    }

    /// Sets a map up before anything is in the kernel; whether it is one of these.
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
            // The instructions that name it are dead.
            None => map.set_autocreate(false)?,
            Some(this) if name == "unparsed" => map.set_max_entries(this.ring_bytes)?,
            Some(_) => {}
        }
        Ok(true)
    }
}

/// The frame that an item of the ring holds.
fn frame_of(item: &[u8]) -> Option<UnparsedFrame<'_>> {
    let (header, bytes) = item.split_at_checked(HEADER_BYTES)?;
    let mut words = words(header);
    Some(UnparsedFrame {
        bytes,
        timestamp_ns: words.next()?,
        wire_length_bytes: u32::try_from(words.next()?).unwrap_or(u32::MAX),
    })
}

/// The way that frames come up.
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
    /// Gives the frames that were handed up since to `take`: a ring's worth at most, and none where the configuration asks for
    /// none. Whoever calls this so often lets so many rings' worth through.
    pub fn take_unparsed(&mut self, mut take: impl FnMut(UnparsedFrame<'_>)) {
        let Some(unparsed) = &mut self.unparsed else {
            return;
        };
        // Not those that come meanwhile.
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

    /// Frames so far that could not be handed up, for their ring was full.
    ///
    /// # Errors
    /// Where the kernel does not say.
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
