// SPDX-License-Identifier: Apache-2.0
//! What else one could do: packet sampling and four sketches, each built from its paper's
//! description and held to the guarantee that the paper states, and how far off they are.
//!
//! TurboFlow keeps a record of every flow. These keep less, and what they say is wrong by some
//! amount; [`Score`] says by how much on given traffic. Nothing of this is part of what meters.
//!
//! ```
//! use turboflow_accuracy::{FlowCounter, HashPipe, Score, Truth};
//!
//! let mut truth = Truth::default();
//! let mut pipe = Box::new(HashPipe::new(4, 1_024, 1));
//! for packet in 0..1_000_u64 {
//!     let key = [packet % 10, 6];
//!     truth.observe(&key);
//!     pipe.observe(&key);
//! }
//! let score = Score::new(&truth, &pipe.answer());
//! assert_eq!(score.listed_share, 1.0);
//! assert_eq!(score.error_max, 0.0);
//! ```

mod count_min;
mod elastic;
mod flow_radar;
mod hash_pipe;
mod sampling;
mod score;
#[cfg(test)]
mod streams;

use std::collections::HashMap;

pub use count_min::CountMin;
pub use elastic::{ElasticConfig, ElasticSketch};
pub use flow_radar::{FlowRadar, peeling_threshold};
pub use hash_pipe::HashPipe;
pub use sampling::{Pick, Sampling};
pub use score::{ERROR_STEPS, SMALL_FLOW_PACKETS, Score, Truth};

/// Counts packets a flow, in one way or another, within memory fixed at the start where it can.
pub trait FlowCounter<const K: usize> {
    /// One packet of that flow has come. An all-zero key is no key.
    fn observe(&mut self, key: &[u64; K]);

    /// Memory taken at this moment, in bytes, as this build lays it out.
    fn size_bytes(&self) -> usize;

    /// Ends the measurement and says what it found.
    fn answer(self: Box<Self>) -> Answer<K>;
}

/// Estimates the packets of a flow whose key somebody else knows.
pub type Estimate<const K: usize> = Box<dyn Fn(&[u64; K]) -> u64>;

/// What a [`FlowCounter`] says in the end.
pub struct Answer<const K: usize> {
    /// The flows that it can name, with their packets.
    pub listed: HashMap<[u64; K], u64>,
    /// What it says of all others; `None` where it says 0.
    pub others: Option<Estimate<K>>,
}

impl<const K: usize> Answer<K> {
    /// The packets that it says a flow had.
    #[must_use]
    pub fn packets(&self, key: &[u64; K]) -> u64 {
        match self.listed.get(key) {
            Some(packets) => *packets,
            None => self.others.as_ref().map_or(0, |estimate| estimate(key)),
        }
    }
}
