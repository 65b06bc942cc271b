// SPDX-License-Identifier: Apache-2.0
//! A router of many links from the capture of one: copies with addresses, times and a link number
//! of their own, merged by time, as the paper models a router (TurboFlow, section 6.2).
//!
//! The number of a link is the 802.1Q tag that its frames get, outermost, from 1 on: every tool
//! shows it, and it survives classic pcap and interfaces. Addresses are exchanged by adding, bit by
//! bit without carry, a number of the link's to each, so networks stay networks and copies do not
//! meet; checksums follow. A copy begins up to a second after the capture does.

mod readdress;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use turboflow_packet::LinkType;

use crate::random::Random;
use crate::traffic::FrameBuffer;

/// The most links: VLAN numbers end there.
pub const LINKS_MAX: u16 = 4_094;
/// Copies begin within this time.
const PHASES_NS: u64 = 1_000_000_000;
/// Frames of a link read at a time.
const FRAMES_AT_ONCE: usize = 64;

/// Where the frames of a copy come from, in order of time.
pub trait FrameSource {
    /// Why frames cannot be had.
    type Error;

    /// Appends at most so many frames to `buffer`; none at the end.
    ///
    /// # Errors
    /// When the frames cannot be read.
    fn read(&mut self, buffer: &mut FrameBuffer, frames: usize) -> Result<(), Self::Error>;
}

/// Why there are no copies.
#[derive(Debug, thiserror::Error)]
pub enum LinksError<E> {
    /// No number of links.
    #[error("{links} links asked for; ask for 1 to {LINKS_MAX}")]
    Count {
        /// What was asked for.
        links: usize,
    },
    /// A frame that can have no tag.
    #[error(
        "a frame of link type {link_type:?}: a link's number is a tag of Ethernet, so copies can \
         be made of captures of Ethernet only"
    )]
    NotEthernet {
        /// The type.
        link_type: LinkType,
    },
    /// The capture cannot be read.
    #[error(transparent)]
    Source(E),
}

/// A copy.
struct Link<S> {
    source: S,
    buffer: FrameBuffer,
    next: usize,
    shift_ns: u64,
    address_mask: u32,
}

/// What the copies sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinksStatistics {
    /// Frames.
    pub packets: u64,
    /// Their bytes on the wire, tags included.
    pub wire_bytes: u64,
    /// Times of the first and the last, in ns since 1970.
    pub first_ns: u64,
    /// See `first_ns`.
    pub last_ns: u64,
}

/// Copies of a capture, merged.
pub struct Links<S> {
    links: Vec<Link<S>>,
    /// When the next frame of each link comes, earliest first.
    next: BinaryHeap<Reverse<(u64, usize)>>,
    statistics: LinksStatistics,
}

impl<S: FrameSource> Links<S> {
    /// A link for each source; all sources give the same capture.
    ///
    /// # Errors
    /// When there are no links or too many, or the capture cannot be read.
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

    /// Replaces the content of `buffer` by the next `frames` frames, fewer at the end. Returns how
    /// many there are now: 0 after the last.
    ///
    /// # Errors
    /// When the capture cannot be read, or is not Ethernet's.
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
            // A capture need not be in order of time; what comes out is.
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

    /// What was sent so far.
    #[must_use]
    pub const fn statistics(&self) -> LinksStatistics {
        self.statistics
    }

    /// How many links there are.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.links.len()
    }

    /// Puts a link's next frame in line, if there is one.
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
