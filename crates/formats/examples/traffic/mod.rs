// SPDX-License-Identifier: Apache-2.0
//! Flow records for measurements.

use std::net::{IpAddr, Ipv4Addr};

use turboflow_merge::Layout;
use turboflow_record::{Definition, FlowBatch, Schema, Value};

/// A small generator (splitmix64) without dependencies; it gives identical records on every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn one_of(&mut self, values: &[u64]) -> Value<'static> {
        Value::Unsigned(values[self.below(values.len() as u64) as usize])
    }
}

/// The columns of the default definition.
pub(crate) fn schema() -> Schema {
    Layout::compile(&Definition::default(), false)
        .expect("the default definition compiles")
        .schema()
        .clone()
}

/// Records that resemble real traffic: many clients on ephemeral ports, few services, flow sizes
/// with a long tail, ordered by end time.
pub(crate) fn batches(records: usize, addresses: u64) -> Vec<FlowBatch> {
    let mut numbers = Numbers(1);
    let schema = schema();
    let pool: Vec<IpAddr> = (0..addresses)
        .map(|_| Ipv4Addr::from(numbers.next() as u32).into())
        .collect();
    let mut batches = Vec::new();
    for start in (0..records).step_by(4096) {
        let mut batch = FlowBatch::new(&schema);
        for index in start..records.min(start + 4096) {
            let packets = 1 + (1000 / (1 + numbers.below(1000))) * numbers.below(3);
            let size = 40 + numbers.below(1460);
            let last =
                1_700_000_000_000_000_000 + index as u64 * 50_000 + numbers.below(10_000_000);
            let address = |n: u64| Value::Address(pool[(n % addresses) as usize]);
            batch.push_row(&[
                address(numbers.next()),
                address(numbers.next()),
                Value::Unsigned(32_768 + numbers.below(28_000)),
                numbers.one_of(&[443, 443, 443, 80, 53, 22, 8080, 123]),
                numbers.one_of(&[6, 6, 6, 17, 1]),
                Value::Unsigned(packets),
                Value::Unsigned(packets * size),
                Value::Unsigned(last - packets * numbers.below(1_000_000)),
                Value::Unsigned(last),
                numbers.one_of(&[0, 2, 18, 24, 27, 31]),
                Value::Unsigned(40 + numbers.below(30)),
                Value::Unsigned(size),
                numbers.one_of(&[64, 128, 57, 255, 60]),
                numbers.one_of(&[64, 128, 57, 255, 60]),
                numbers.one_of(&[0, 0, 0, 0, 8, 46]),
                numbers.one_of(&[1, 2, 3, 3, 3, 4]),
            ]);
        }
        batches.push(batch);
    }
    batches
}
