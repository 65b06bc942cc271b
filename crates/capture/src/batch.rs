// SPDX-License-Identifier: Apache-2.0
//! Frames handed out together.

use turboflow_packet::Frame;

use crate::filter::FileFilter;

/// Some frames of a capture, in its order, borrowed from the mapping, the read buffer or the ring.
///
/// The slice lies in one piece of memory that every batch of the source uses again, so a caller can
/// look ahead in it and prefetch the bytes of later frames while it works on earlier ones.
#[derive(Debug)]
pub struct Batch<'a> {
    frames: Vec<Frame<'a>>,
    /// Where the allocation goes back to when the batch ends.
    home: &'a mut Vec<Frame<'static>>,
}

impl<'a> Batch<'a> {
    /// Takes the allocation out of `home`, to be filled with up to `limit` frames.
    pub(crate) fn take(home: &'a mut Vec<Frame<'static>>, limit: usize) -> Self {
        let mut frames = recycle(std::mem::take(home));
        frames.reserve(limit);
        Self { frames, home }
    }

    pub(crate) fn frames_mut(&mut self) -> &mut Vec<Frame<'a>> {
        &mut self.frames
    }

    /// The frames: at least one unless some were left out, at most as many as were asked for.
    #[must_use]
    pub fn frames(&self) -> &[Frame<'a>] {
        &self.frames
    }

    /// Leaves out the frames that a filter does not take. Says how many, and their bytes on the
    /// wire.
    pub fn filter(&mut self, filter: &FileFilter) -> (u64, u64) {
        let (mut packets, mut bytes) = (0, 0);
        self.frames.retain(|frame| {
            let takes = filter.takes(frame);
            if !takes {
                packets += 1;
                bytes += u64::from(frame.wire_length_bytes);
            }
            takes
        });
        (packets, bytes)
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        *self.home = recycle(std::mem::take(&mut self.frames));
    }
}

/// Gives an emptied vector's allocation to frames of another lifetime. Collecting in place keeps
/// the allocation (tested), so this costs a few instructions a batch and needs no `unsafe`.
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
