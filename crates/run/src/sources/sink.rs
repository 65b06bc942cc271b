// SPDX-License-Identifier: Apache-2.0
//! Sinks for the frames of a source: a meter, or a closure that inspects them.

use turboflow_packet::Frame;

use crate::Meter;
use crate::meter::Counts;

/// Takes frames in order of arrival.
pub(super) trait FrameSink {
    fn frames(&mut self, frames: &[Frame<'_>]);
    /// Advances the clock: every packet up to this time, in nanoseconds since 1970, has arrived.
    fn advance(&mut self, delivered_ns: u64);
    /// Counters up to now.
    fn counts(&mut self) -> Counts;
    /// Ends the input and returns the final counters.
    fn finish(self) -> Counts;
}

impl FrameSink for Meter {
    fn frames(&mut self, frames: &[Frame<'_>]) {
        Self::frames(self, frames);
    }

    fn advance(&mut self, delivered_ns: u64) {
        Self::advance(self, delivered_ns);
    }

    fn counts(&mut self) -> Counts {
        Self::counts(self)
    }

    fn finish(self) -> Counts {
        self.finish_counting()
    }
}

/// Hands frames to a closure and counts them.
pub(super) struct Inspector<F> {
    take: F,
    frames: u64,
    bytes: u64,
}

impl<F: FnMut(&[Frame<'_>])> Inspector<F> {
    pub(super) const fn new(take: F) -> Self {
        Self {
            take,
            frames: 0,
            bytes: 0,
        }
    }
}

impl<F: FnMut(&[Frame<'_>])> FrameSink for Inspector<F> {
    fn frames(&mut self, frames: &[Frame<'_>]) {
        self.frames += frames.len() as u64;
        let lengths = frames.iter();
        self.bytes += lengths
            .map(|frame| u64::from(frame.wire_length_bytes))
            .sum::<u64>();
        (self.take)(frames);
    }

    fn advance(&mut self, _delivered_ns: u64) {}

    fn counts(&mut self) -> Counts {
        Counts::of_frames(self.frames, self.bytes)
    }

    fn finish(mut self) -> Counts {
        self.counts()
    }
}
