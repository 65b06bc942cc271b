// SPDX-License-Identifier: Apache-2.0
//! Watches the segments of a flow for a client hello, which may be spread over several segments.

use super::hello::{ClientHello, MAX_HELLO_BYTES, Seen, begins_hello};
use super::segment::Segment;

/// The search for the first client hello of a flow.
#[derive(Debug, Default)]
pub struct HelloWatch {
    state: State,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Waiting,
    /// The start of a client hello was seen in this direction.
    Collecting {
        is_reversed: bool,
        next_sequence: u32,
        bytes: Vec<u8>,
    },
    Done,
}

impl HelloWatch {
    /// The client hello that this packet completes, if any. Segments must arrive in order, as
    /// tshark requires; retransmitted segments are skipped.
    ///
    /// `may_collect` says whether there is room to store the start of a client hello.
    pub fn see(
        &mut self,
        datagram: &[u8],
        is_reversed: bool,
        may_collect: bool,
    ) -> Option<Box<ClientHello>> {
        if matches!(self.state, State::Done) {
            return None;
        }
        let mut segment = Segment::of(datagram)?;
        if segment.payload.is_empty() {
            return None;
        }
        // "Change cipher spec" has no meaning in TLS 1.3 (RFC 8446, appendix D.4). A client sends
        // it before its second hello if it was asked to try again.
        if let [20, 3, _, 0, 1, 1, rest @ ..] = segment.payload {
            let skipped = (segment.payload.len() - rest.len()) as u32;
            segment.sequence = segment.sequence.wrapping_add(skipped);
            segment.payload = rest;
        }
        let next_sequence = segment.sequence.wrapping_add(segment.payload.len() as u32);
        match &mut self.state {
            State::Collecting {
                is_reversed: its,
                next_sequence: next,
                bytes,
            } => {
                if *its != is_reversed || *next != segment.sequence {
                    return None;
                }
                let room = MAX_HELLO_BYTES.saturating_sub(bytes.len());
                bytes.extend_from_slice(&segment.payload[..segment.payload.len().min(room)]);
                *next = next_sequence;
            }
            State::Waiting if begins_hello(segment.payload) => {
                self.state = State::Collecting {
                    is_reversed,
                    next_sequence,
                    bytes: segment.payload.to_vec(),
                };
            }
            State::Waiting | State::Done => return None,
        }
        self.finish(may_collect)
    }

    /// Whether it stores the start of a client hello.
    #[must_use]
    pub const fn is_collecting(&self) -> bool {
        matches!(self.state, State::Collecting { .. })
    }

    fn finish(&mut self, may_collect: bool) -> Option<Box<ClientHello>> {
        let State::Collecting { bytes, .. } = &self.state else {
            return None;
        };
        let is_full = bytes.len() >= MAX_HELLO_BYTES;
        match ClientHello::seen(bytes) {
            Seen::Incomplete if may_collect && !is_full => None,
            Seen::Incomplete | Seen::Other => {
                // This was not a client hello; one may still follow, as after STARTTLS.
                self.state = State::Waiting;
                None
            }
            Seen::Hello(hello) => {
                self.state = State::Done;
                Some(hello)
            }
        }
    }
}
