// SPDX-License-Identifier: Apache-2.0
//! Flows that lost microflow records on their way to the aggregator.

/// A flow whose record is incomplete, and how much it lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShortFlow {
    /// The words of its key, in the number that the layout uses.
    pub key: Vec<u64>,
    /// Number of microflow records lost.
    pub microflows: u64,
    /// Packets in the lost records.
    pub packets: u64,
    /// Bytes in the lost records, according to the IP headers.
    pub bytes: u64,
}
