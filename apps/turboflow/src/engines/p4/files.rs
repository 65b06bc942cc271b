// SPDX-License-Identifier: Apache-2.0
//! Feeds the packets of captures to a pipeline.

use std::collections::VecDeque;
use std::io;

use turboflow_capture::{CaptureFile, ReadError};
use turboflow_engine_p4::{Came, Frames};
use turboflow_packet::Frame;

use crate::record::CapturesRead;

/// Frames read at a time.
const BATCH_FRAMES: u64 = 256;

/// Captures, read one after another.
pub(super) struct Captures {
    files: VecDeque<CaptureFile>,
    packets_left: u64,
    /// Counters and damages of the files so far. Damage ends only its own file.
    read: CapturesRead,
}

impl Captures {
    pub(super) fn new(files: Vec<CaptureFile>, packets: Option<u64>, read: CapturesRead) -> Self {
        Self {
            files: files.into(),
            packets_left: packets.unwrap_or(u64::MAX),
            read,
        }
    }

    /// Leaves the first file.
    fn leave(&mut self, damage: Option<ReadError>) {
        if let Some(file) = self.files.pop_front() {
            self.read.count(&file);
            damage.into_iter().for_each(|damage| self.read.note(damage));
        }
    }
}

impl Frames for Captures {
    fn next(&mut self, take: &mut dyn FnMut(&Frame<'_>)) -> io::Result<Came> {
        let most = self.packets_left.min(BATCH_FRAMES);
        let Some(file) = self.files.front_mut().filter(|_| most > 0) else {
            self.leave(None);
            self.files.clear();
            return Ok(Came::End);
        };
        let damage = match file.next_batch(most as usize) {
            Ok(Some(batch)) if batch.frames().is_empty() => return Ok(Came::Nothing),
            Ok(Some(batch)) => {
                self.packets_left -= batch.frames().len() as u64;
                batch.frames().iter().for_each(take);
                return Ok(Came::Frames);
            }
            Ok(None) => None,
            Err(error) => Some(error),
        };
        self.leave(damage);
        Ok(Came::Frames)
    }
}
