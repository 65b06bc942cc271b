// SPDX-License-Identifier: Apache-2.0
//! Feeds the packets of captures to a pipeline.

use std::collections::VecDeque;
use std::io;

use turboflow_capture::{CaptureFile, ReadError};
use turboflow_engine_p4::{Came, Frames};
use turboflow_packet::Frame;

/// Frames read at a time.
const BATCH_FRAMES: u64 = 256;

/// Captures, read one after another.
pub(super) struct Captures {
    files: VecDeque<CaptureFile>,
    packets_left: u64,
    /// The first read error. The other files are still read.
    damaged: Option<ReadError>,
}

impl Captures {
    pub(super) fn new(files: Vec<CaptureFile>, packets: Option<u64>) -> Self {
        Self {
            files: files.into(),
            packets_left: packets.unwrap_or(u64::MAX),
            damaged: None,
        }
    }
}

impl Frames for Captures {
    fn next(&mut self, take: &mut dyn FnMut(&Frame<'_>)) -> io::Result<Came> {
        let most = self.packets_left.min(BATCH_FRAMES);
        let Some(file) = self.files.front_mut().filter(|_| most > 0) else {
            return self
                .damaged
                .take()
                .map_or(Ok(Came::End), |error| Err(io::Error::other(error)));
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
        self.files.pop_front();
        self.damaged = self.damaged.take().or(damage);
        Ok(Came::Frames)
    }
}
