// SPDX-License-Identifier: Apache-2.0
//! Batches of frames.

use turboflow_packet::{Frame, LinkType};

use crate::filter::FileFilter;

/// Consecutive frames of a capture, borrowed from the mapping, the read buffer or the ring.
///
/// The slice is contiguous and its memory is reused by all batches of the source, so that a caller
/// can look ahead and prefetch the bytes of later frames.
#[derive(Debug)]
pub struct Batch<'a> {
    frames: Vec<Frame<'a>>,
    /// Where the allocation is returned to when the batch is dropped.
    home: &'a mut Vec<Frame<'static>>,
}

impl<'a> Batch<'a> {
    /// Takes the allocation out of `home` and makes room for `limit` frames.
    pub(crate) fn take(home: &'a mut Vec<Frame<'static>>, limit: usize) -> Self {
        let mut frames = recycle(std::mem::take(home));
        frames.reserve(limit);
        Self { frames, home }
    }

    pub(crate) fn frames_mut(&mut self) -> &mut Vec<Frame<'a>> {
        &mut self.frames
    }

    /// The frames. At least one, unless a filter removed frames; at most as many as requested.
    #[must_use]
    pub fn frames(&self) -> &[Frame<'a>] {
        &self.frames
    }

    /// Removes the frames that the filter rejects. Also removes all frames after the first `limit`
    /// accepted ones, without counting them.
    pub fn filter(&mut self, filter: &FileFilter, limit: u64) -> Filtered {
        let (mut filtered, mut left) = (Filtered::default(), limit);
        self.frames.retain(|frame| {
            if left == 0 {
                return false;
            }
            let takes = filter.takes(frame);
            left -= u64::from(takes);
            if !takes {
                filtered.packets += 1;
                filtered.bytes += u64::from(frame.wire_length_bytes);
                filtered.packets_tagged += u64::from(is_tagged(frame));
            }
            takes
        });
        filtered
    }
}

/// What a filter removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filtered {
    /// Frames.
    pub packets: u64,
    /// Their bytes on the wire.
    pub bytes: u64,
    /// Frames with a VLAN tag.
    pub packets_tagged: u64,
}

fn is_tagged(frame: &Frame<'_>) -> bool {
    let ether_type = frame.bytes.get(12..14);
    frame.link_type == LinkType::Ethernet
        && matches!(ether_type, Some([0x81, 0x00] | [0x88, 0xa8] | [0x91, 0x00]))
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        *self.home = recycle(std::mem::take(&mut self.frames));
    }
}

/// Reuses the allocation of an emptied vector for frames of another lifetime. Collecting in place
/// keeps the allocation (tested), so that this costs a few instructions per batch and needs no
/// `unsafe`.
fn recycle<'to>(mut frames: Vec<Frame<'_>>) -> Vec<Frame<'to>> {
    frames.clear();
    frames
        .into_iter()
        .map(|_| unreachable!("the vector was cleared"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recycling_keeps_the_allocation() {
        let frames: Vec<Frame<'static>> = Vec::with_capacity(1024);
        let address = frames.as_ptr() as usize;
        let again = recycle(frames);
        assert_eq!((again.as_ptr() as usize, again.capacity()), (address, 1024));
    }
}
