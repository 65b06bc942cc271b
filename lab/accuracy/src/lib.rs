// SPDX-License-Identifier: Apache-2.0
//! Alternatives to unsampled flow records, to measure how inaccurate they are: packet sampling and
//! four sketches. Each is built from its paper's description, and tested against the guarantee that
//! the paper gives.
//!
//! TurboFlow keeps a record of every flow. The alternatives keep less, and their answers have
//! errors. [`Score`] measures these errors on given traffic. The meter uses none of this.
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

/// Counts packets per flow, if possible in memory that is fixed at the start.
pub trait FlowCounter<const K: usize> {
    /// Counts a packet of that flow. The all-zero key is reserved.
    fn observe(&mut self, key: &[u64; K]);

    /// Memory in use now, in bytes, in the layout of this build.
    fn size_bytes(&self) -> usize;

    /// Ends the measurement and gives its result.
    fn answer(self: Box<Self>) -> Answer<K>;
}

/// Estimates the packets of a flow from its key.
pub type Estimate<const K: usize> = Box<dyn Fn(&[u64; K]) -> u64>;

/// The result of a [`FlowCounter`].
pub struct Answer<const K: usize> {
    /// The flows that it lists, with their packets.
    pub listed: HashMap<[u64; K], u64>,
    /// Its estimate for all other flows; `None` stands for 0.
    pub others: Option<Estimate<K>>,
}

impl<const K: usize> Answer<K> {
    /// The estimated packets of a flow.
    #[must_use]
    pub fn packets(&self, key: &[u64; K]) -> u64 {
        match self.listed.get(key) {
            Some(packets) => *packets,
            None => self.others.as_ref().map_or(0, |estimate| estimate(key)),
        }
    }
}
