// SPDX-License-Identifier: Apache-2.0
//! Flows that lost microflow records on their way to the aggregator.

/// A flow, and what its record is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShortFlow {
    /// The words of its key, as many as records of its layout have.
    pub key: Vec<u64>,
    /// Microflow records lost.
    pub microflows: u64,
    /// Packets in them.
    pub packets: u64,
    /// Bytes in them, as the IP headers declare them.
    pub bytes: u64,
}
