// SPDX-License-Identifier: Apache-2.0
//! A router with many links, simulated from the capture of one link.

use std::path::Path;

use anyhow::bail;
use turboflow_capture::{CaptureFile, ReadError};
use turboflow_workload::links::{FrameSource, LINKS_MAX, Links, LinksError};
use turboflow_workload::traffic::FrameBuffer;

use super::{Generator, report};

/// Reads the capture on behalf of one link.
struct LinkReader(CaptureFile);

impl FrameSource for LinkReader {
    type Error = ReadError;

    fn read(&mut self, buffer: &mut FrameBuffer, frames: usize) -> Result<(), ReadError> {
        if let Some(batch) = self.0.next_batch(frames)? {
            batch
                .frames()
                .iter()
                .for_each(|frame| buffer.push_frame(frame));
        }
        Ok(())
    }
}

/// Copies of a capture, one per link.
pub(super) struct Copies {
    links: Links<LinkReader>,
    packets_left: u64,
}

impl Copies {
    /// Opens the capture once per link.
    pub(super) fn open(
        links: u64,
        capture: &Path,
        packets: Option<u64>,
        seed: u64,
    ) -> anyhow::Result<Self> {
        if packets == Some(0) {
            bail!("0 packets asked for; ask for at least 1");
        }
        if !(1..=u64::from(LINKS_MAX)).contains(&links) {
            let links = usize::try_from(links).unwrap_or(usize::MAX);
            return Err(LinksError::<ReadError>::Count { links }.into());
        }
        if capture.as_os_str() == "-" {
            bail!(
                "standard input can be read once, but --links reads it for each link: name a file"
            );
        }
        let open = |_| Ok(LinkReader(CaptureFile::open(capture)?));
        let sources = (0..links).map(open).collect::<anyhow::Result<Vec<_>>>()?;
        Ok(Self {
            links: Links::new(sources, seed)?,
            packets_left: packets.unwrap_or(u64::MAX),
        })
    }
}

impl Generator for Copies {
    fn fill(&mut self, buffer: &mut FrameBuffer, frames: usize) -> anyhow::Result<usize> {
        let left = usize::try_from(self.packets_left).unwrap_or(usize::MAX);
        let filled = self.links.fill(buffer, frames.min(left))?;
        self.packets_left -= filled as u64;
        Ok(filled)
    }

    fn report(&self, seed: u64) -> String {
        report::of_links(self.links.count(), &self.links.statistics(), seed)
    }
}
