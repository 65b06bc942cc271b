// SPDX-License-Identifier: Apache-2.0
//! A router with many links, made from the capture of one link. Each link is a copy with its own
//! addresses, times and link number, and the copies are merged by time, as the paper models a
//! router (TurboFlow, section 6.2).
//!
//! The link number is the outermost 802.1Q tag, counted from 1. Every tool shows it, and it
//! survives classic pcap and network interfaces. Each address is XORed with a mask of the link, so
//! common prefixes are preserved and the copies have distinct addresses. Checksums are updated. A
//! copy starts up to one second after the capture.

mod readdress;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use turboflow_packet::LinkType;

use crate::random::Random;
use crate::traffic::FrameBuffer;

/// Maximum number of links, limited by the VLAN numbers.
pub const LINKS_MAX: u16 = 4_094;
/// Copies start within this time after the capture.
const PHASES_NS: u64 = 1_000_000_000;
/// Frames read from a link at a time.
const FRAMES_AT_ONCE: usize = 64;

/// The source of a copy's frames, in order of time.
pub trait FrameSource {
    /// Why frames cannot be read.
    type Error;

    /// Appends at most `frames` frames to `buffer`; none at the end.
    ///
    /// # Errors
    /// If the frames cannot be read.
    fn read(&mut self, buffer: &mut FrameBuffer, frames: usize) -> Result<(), Self::Error>;
}

/// Why links cannot be made or read.
#[derive(Debug, thiserror::Error)]
pub enum LinksError<E> {
    /// The number of links is out of range.
    #[error("{links} links asked for; ask for 1 to {LINKS_MAX}")]
    Count {
        /// The requested number.
        links: usize,
    },
    /// The frame cannot carry a tag.
    #[error(
        "a frame of link type {link_type:?}: the number of a link is an Ethernet tag, so copies \
         can only be made of Ethernet captures"
    )]
    NotEthernet {
        /// The frame's link type.
        link_type: LinkType,
    },
    /// The capture cannot be read.
    #[error(transparent)]
    Source(E),
}

/// One copy of the capture.
struct Link<S> {
    source: S,
    buffer: FrameBuffer,
    next: usize,
    shift_ns: u64,
    address_mask: u32,
}

/// Totals of the frames sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinksStatistics {
    /// Frames.
    pub packets: u64,
    /// Bytes on the wire, tags included.
    pub wire_bytes: u64,
    /// Time of the first frame, in ns since 1970.
    pub first_ns: u64,
    /// Time of the last frame, in ns since 1970.
    pub last_ns: u64,
}

/// The copies of a capture, merged by time.
pub struct Links<S> {
    links: Vec<Link<S>>,
    /// Time of the next frame of each link, earliest first.
    next: BinaryHeap<Reverse<(u64, usize)>>,
    statistics: LinksStatistics,
}

impl<S: FrameSource> Links<S> {
    /// Makes one link per source. All sources read the same capture.
    ///
    /// # Errors
    /// If there are no links or too many, or the capture cannot be read.
    pub fn new(sources: Vec<S>, seed: u64) -> Result<Self, LinksError<S::Error>> {
        if sources.is_empty() || sources.len() > usize::from(LINKS_MAX) {
            return Err(LinksError::Count {
                links: sources.len(),
            });
        }
        let mut random = Random::new(seed);
        let mut links = Self {
            links: Vec::with_capacity(sources.len()),
            next: BinaryHeap::with_capacity(sources.len()),
            statistics: LinksStatistics::default(),
        };
        for (index, source) in sources.into_iter().enumerate() {
            links.links.push(Link {
                source,
                buffer: FrameBuffer::with_capacity(FRAMES_AT_ONCE, 64),
                next: 0,
                shift_ns: random.below(PHASES_NS),
                address_mask: random.word() as u32,
            });
            links.wait_for(index)?;
        }
        Ok(links)
    }

    /// Replaces the content of `buffer` by the next `frames` frames, or fewer at the end. Returns
    /// their number: 0 after the last frame.
    ///
    /// # Errors
    /// If the capture cannot be read, or is not Ethernet.
    pub fn fill(
        &mut self,
        buffer: &mut FrameBuffer,
        frames: usize,
    ) -> Result<usize, LinksError<S::Error>> {
        buffer.clear();
        while buffer.len() < frames {
            let Some(Reverse((timestamp_ns, index))) = self.next.pop() else {
                break;
            };
            // Timestamps in a capture may go backwards; those of the output must not.
            let timestamp_ns = timestamp_ns.max(self.statistics.last_ns);
            let link = &mut self.links[index];
            let frame = link.buffer.frame(link.next);
            link.next += 1;
            if frame.link_type != LinkType::Ethernet {
                return Err(LinksError::NotEthernet {
                    link_type: frame.link_type,
                });
            }
            let tag = index as u16 + 1;
            let wire_bytes = frame.wire_length_bytes + readdress::TAG_BYTES;
            buffer.push_with(timestamp_ns, wire_bytes, |bytes| {
                readdress::copy(frame.bytes, tag, link.address_mask, bytes);
            });
            if self.statistics.packets == 0 {
                self.statistics.first_ns = timestamp_ns;
            }
            self.statistics.packets += 1;
            self.statistics.wire_bytes += u64::from(wire_bytes);
            self.statistics.last_ns = timestamp_ns;
            self.wait_for(index)?;
        }
        Ok(buffer.len())
    }

    /// Totals of the frames sent so far.
    #[must_use]
    pub const fn statistics(&self) -> LinksStatistics {
        self.statistics
    }

    /// Number of links.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.links.len()
    }

    /// Queues a link's next frame, if there is one.
    fn wait_for(&mut self, index: usize) -> Result<(), LinksError<S::Error>> {
        let link = &mut self.links[index];
        if link.next == link.buffer.len() {
            link.buffer.clear();
            link.next = 0;
            let read = link.source.read(&mut link.buffer, FRAMES_AT_ONCE);
            read.map_err(LinksError::Source)?;
        }
        if link.next < link.buffer.len() {
            let timestamp_ns = link.buffer.frame(link.next).timestamp_ns;
            let shifted_ns = timestamp_ns.saturating_add(link.shift_ns);
            self.next.push(Reverse((shifted_ns, index)));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
