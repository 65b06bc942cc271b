// SPDX-License-Identifier: Apache-2.0
//! Streams of microflow records over a set of flows.

use turboflow_record::MicroflowRecord;

/// How records spread over flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skew {
    /// Every flow equally likely.
    Uniform,
    /// Zipf with exponent 1.05, in packet trains of 5 on average.
    Zipf,
}

impl Skew {
    /// Its name in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Zipf => "zipf",
        }
    }
}

/// The microflow record of flow number `flow` at `at_ns`.
#[inline(always)]
pub(crate) fn microflow(flow: u64, at_ns: u64) -> MicroflowRecord<2, 0> {
    // A bijection spreads flow numbers over addresses and ports as real keys are spread.
    let mixed = (flow + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut record = MicroflowRecord::default();
    record.key = [mixed, 0x0406_bb01_0000 | (flow & 0xffff)];
    record.base.packets = 3;
    record.base.bytes = 1_800;
    record.base.first_ns = at_ns;
    record.base.last_ns = at_ns + 1_000;
    record.base.min_length_bytes = 52;
    record.base.max_length_bytes = 1_500;
    record.base.tcp_flags = 0x10;
    record.base.min_ttl = 60;
    record.base.max_ttl = 60;
    record
}
