// SPDX-License-Identifier: Apache-2.0
//! An interface as the CPU port of a pipeline: reports arrive through the kernel's ring, and
//! commands leave through a packet socket.

use std::io;
use std::time::{Duration, Instant};

use turboflow_capture::live::{Interface, InterfaceConfig, RingSize, Sender, State, wait};
use turboflow_engine_p4::Port;
use turboflow_packet::{Frame, LinkType};

/// How long to wait for an answer before the request is repeated.
const PATIENCE: Duration = Duration::from_millis(250);
/// How long an interface may refuse frames before that is an error.
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// The shortest Ethernet frame, without its checksum.
const SHORTEST_FRAME_BYTES: usize = 60;

/// An interface that leads to the CPU port of a pipeline.
pub(super) struct PacketPort {
    name: String,
    longest_frame_bytes: usize,
    /// The ring, in an array because `wait` takes a slice.
    interface: [Interface; 1],
    sender: Sender,
    /// Frames still to be sent, concatenated.
    queued: Vec<u8>,
    /// The end of each frame in `queued`.
    ends: Vec<usize>,
}

impl PacketPort {
    /// Opens an interface, with a receive ring of `ring_bytes`.
    pub(super) fn open(name: &str, ring_bytes: u64) -> anyhow::Result<Self> {
        let config = InterfaceConfig {
            ring: RingSize::new(ring_bytes)?,
            // Excludes the frames that we send to the pipeline.
            only_incoming: true,
            // Each command waits for the answer to the one before.
            latency_ms: Some(1),
            ..InterfaceConfig::default()
        };
        Ok(Self {
            name: name.to_owned(),
            longest_frame_bytes: Interface::longest_frame_bytes(name)? as usize,
            interface: [Interface::open(name, &config)?],
            sender: Sender::open(name)?,
            queued: Vec::new(),
            ends: Vec::new(),
        })
    }

    fn send_queued(&mut self) -> io::Result<()> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let frames: Vec<Frame<'_>> = starts
            .zip(&self.ends)
            .map(|(start, end)| Frame {
                bytes: &self.queued[start..*end],
                wire_length_bytes: (end - start) as u32,
                timestamp_ns: 0,
                interface: 0,
                link_type: LinkType::Ethernet,
            })
            .collect();
        let (mut rest, mut since) = (&frames[..], now());
        while !rest.is_empty() {
            let sent = self.sender.send(rest).map_err(io::Error::other)?;
            rest = &rest[sent..];
            if sent > 0 {
                since = now();
            } else if since.elapsed() > LONGEST_WAIT {
                let what = "the interface takes no frames: is the other end up?";
                return Err(io::Error::new(io::ErrorKind::TimedOut, what));
            }
        }
        self.queued.clear();
        self.ends.clear();
        Ok(())
    }

    /// Hands over the frames in the ring. Returns whether there were any.
    fn take(&mut self, take: &mut dyn FnMut(&[u8])) -> bool {
        let [interface] = &mut self.interface;
        let mut came = false;
        while let Some(batch) = interface.next_batch() {
            came = true;
            batch.frames().iter().for_each(|frame| take(frame.bytes));
        }
        came
    }
}

impl Port for PacketPort {
    fn name(&self) -> &str {
        &self.name
    }

    fn longest_frame_bytes(&self) -> usize {
        self.longest_frame_bytes
    }

    fn send(&mut self, parts: &[&[u8]]) {
        let start = self.queued.len();
        parts.iter().for_each(|part| self.queued.extend(*part));
        let end = self.queued.len().max(start + SHORTEST_FRAME_BYTES);
        self.queued.resize(end, 0);
        self.ends.push(end);
    }

    fn exchange(&mut self, waits: bool, take: &mut dyn FnMut(&[u8])) -> io::Result<bool> {
        self.send_queued()?;
        if !self.take(take) && waits {
            wait(&mut self.interface, PATIENCE)?;
            self.take(take);
        }
        Ok(self.interface[0].state() != State::Gone)
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "an interface without carrier never says that it will take no frame"
)]
fn now() -> Instant {
    Instant::now()
}
