// SPDX-License-Identifier: Apache-2.0
//! Which flows share a partition. There are 48 lanes, which the usual numbers of partitions divide
//! evenly.

use std::net::IpAddr;

use turboflow_record::{Column, FlowBatch, ValueData};

/// Number of lanes of a topic. With more partitions than lanes, some partitions stay empty.
pub const LANES: usize = 48;

/// Key columns that describe the two ends of a flow, and its protocol.
const OF_ENDS: [&str; 7] = [
    "src_addr",
    "dst_addr",
    "src_port",
    "dst_port",
    "protocol",
    "outer_src_addr",
    "outer_dst_addr",
];

/// Computes hashes of flows, from which their lanes follow.
pub(crate) struct FlowHash {
    /// Index of each column, and a seed that the columns of both ends share, such as `src_port` and
    /// `dst_port`.
    columns: Vec<(usize, u64)>,
}

impl FlowHash {
    /// Hashes the key columns of the two ends, or all key columns if none of these is present.
    pub(crate) fn new(schema: &[Column], key_columns: usize) -> Self {
        let key = &schema[..key_columns.min(schema.len())];
        let is_of_ends = |name: &str| OF_ENDS.contains(&name);
        let has_ends = key.iter().any(|column| is_of_ends(&column.name));
        let columns = key.iter().enumerate();
        let columns = columns.filter(|(_, column)| !has_ends || is_of_ends(&column.name));
        let numbered = |(index, column): (usize, &Column)| {
            let name = column.name.replace("src_", "").replace("dst_", "");
            (
                index,
                name.bytes()
                    .fold(7, |hash, byte| mixed(hash ^ u64::from(byte))),
            )
        };
        Self {
            columns: columns.map(numbered).collect(),
        }
    }

    /// Replaces `hashes` by the hash of each record's flow. The hashes of a record's columns are
    /// summed, so both directions of a flow have the same hash.
    pub(crate) fn of_rows(&self, batch: &FlowBatch, hashes: &mut Vec<u64>) {
        hashes.clear();
        hashes.resize(batch.rows(), 0);
        for &(column, number) in &self.columns {
            let add = |sum: &mut u64, value: u64| *sum = sum.wrapping_add(mixed(value ^ number));
            match &batch.column(column).data {
                ValueData::Unsigned(values) => {
                    debug_assert_eq!(values.len(), hashes.len(), "the column was read");
                    for (sum, value) in hashes.iter_mut().zip(values) {
                        add(sum, *value);
                    }
                }
                ValueData::Address(values) => {
                    debug_assert_eq!(values.len(), hashes.len(), "the column was read");
                    for (sum, address) in hashes.iter_mut().zip(values) {
                        add(sum, folded(*address));
                    }
                }
                ValueData::Float(_) | ValueData::List { .. } | ValueData::Text { .. } => {
                    hashes.iter_mut().for_each(|sum| add(sum, 0));
                }
            }
        }
        hashes.iter_mut().for_each(|sum| *sum = mixed(*sum));
    }
}

#[inline(always)]
fn folded(address: IpAddr) -> u64 {
    match address {
        IpAddr::V4(its) => u64::from(its.to_bits()),
        IpAddr::V6(its) => {
            let bits = its.to_bits();
            bits as u64 ^ mixed((bits >> 64) as u64)
        }
    }
}

/// The finaliser of SplitMix64.
#[inline(always)]
fn mixed(mut value: u64) -> u64 {
    value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

/// The lane of a hash.
pub(crate) const fn lane_of(hash: u64) -> usize {
    (hash % LANES as u64) as usize
}

/// The partition of a message, from its key: one byte with the number of a lane, or eight bytes
/// with the hash of a flow. 0 for any other key.
#[must_use]
pub fn partition_of(key: &[u8], partitions: i32) -> i32 {
    let lane = match key {
        [lane] => usize::from(*lane),
        _ => key
            .try_into()
            .map_or(0, |bytes| lane_of(u64::from_be_bytes(bytes))),
    };
    (lane % partitions.max(1).unsigned_abs() as usize) as i32
}

#[cfg(test)]
mod tests {
    use turboflow_record::{ColumnKind, Value};

    use super::*;

    fn column(name: &str, kind: ColumnKind) -> Column {
        Column {
            name: name.to_owned(),
            kind,
            nullable: false,
        }
    }

    #[test]
    fn both_directions_are_in_one_lane_and_lanes_in_all_partitions() {
        let number = ColumnKind::Unsigned { bits: 16 };
        let schema = [
            column("src_addr", ColumnKind::Address),
            column("dst_addr", ColumnKind::Address),
            column("src_port", number),
            column("dst_port", number),
            column("ingress_interface", number),
            column("packets", number),
        ];
        let hash = FlowHash::new(&schema, 5);
        let mut batch = FlowBatch::new(&schema);
        let mut seen = [0; 7];
        for n in 0..700_u64 {
            let [one, other] =
                ["10.0.0.1", "2001:db8::9"].map(|text| Value::Address(text.parse().unwrap()));
            let [port, well_known] = [n, 443].map(Value::Unsigned);
            let [interface, packets] = [n % 2, n].map(Value::Unsigned);
            batch.push_row(&[one, other, port, well_known, interface, packets]);
            batch.push_row(&[other, one, well_known, port, packets, interface]);
        }
        let mut hashes = Vec::new();
        hash.of_rows(&batch, &mut hashes);
        assert_eq!(hashes.len(), batch.rows());
        for directions in hashes.chunks(2) {
            assert_eq!(directions[0], directions[1]);
            let partition = partition_of(&directions[0].to_be_bytes(), 7);
            let lane = lane_of(directions[0]) as u8;
            assert_eq!(partition, partition_of(&[lane], 7));
            seen[partition as usize] += 1;
        }
        assert!(
            seen.iter().all(|flows| (50..150).contains(flows)),
            "{seen:?}"
        );
        assert_eq!(partition_of(b"", 3), 0);
    }
}
