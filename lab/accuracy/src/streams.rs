// SPDX-License-Identifier: Apache-2.0
//! Traffic for the tests.

use turboflow_record::Family;
use turboflow_workload::traffic::{Skew, five_tuple, keys};

use crate::Truth;

/// The key of the flow with that number.
pub(crate) fn key(flow: u64) -> [u64; 2] {
    let [w0, w1, ..] = *five_tuple(flow, Family::V4, 6).raw_words();
    [w0, w1]
}

/// The keys of the packets in order, and the number of packets per flow.
pub(crate) struct Stream {
    pub(crate) packets: Vec<[u64; 2]>,
    pub(crate) truth: Truth<2>,
}

impl Stream {
    /// At most `flows` flows under Zipf's law, in trains of five packets.
    pub(crate) fn zipf(flows: u64, packets: usize, seed: u64) -> Self {
        let skew = Skew::Zipf {
            exponent: 1.05,
            mean_train_length: 5.0,
        };
        let mut numbers = keys(flows, skew, seed).expect("the number of flows is in range");
        let packets: Vec<_> = (0..packets).map(|_| key(numbers.next_number())).collect();
        let mut truth = Truth::default();
        packets.iter().for_each(|key| truth.observe(key));
        Self { packets, truth }
    }
}
