// SPDX-License-Identifier: Apache-2.0
//! Computes features by plain arithmetic over the list of a flow's packets.

use std::net::IpAddr;

use turboflow_record::{Feature, Input, InputValues, Op, Packet, TCP_ACK, TCP_SYN, Value};

/// A packet with its inputs, and whether its source is the higher end of the flow.
#[derive(Clone, Debug)]
pub(super) struct SeenPacket {
    pub(super) packet: Packet,
    pub(super) inputs: InputValues,
    pub(super) reversed: bool,
}

/// One expected value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expected {
    Absent,
    Address(IpAddr),
    Unsigned(u64),
    Float(f64),
    List(Vec<u64>),
}

impl Expected {
    fn number(value: Option<u64>) -> Self {
        value.map_or(Self::Absent, Self::Unsigned)
    }

    /// Whether a value is as expected. Floats may differ in their last bits.
    pub(super) fn matches(&self, value: Value<'_>) -> bool {
        match (self, value) {
            (Self::Absent, Value::Absent) => true,
            (Self::Address(a), Value::Address(b)) => *a == b,
            (Self::Unsigned(a), Value::Unsigned(b)) => *a == b,
            (Self::Float(a), Value::Float(b)) => (a - b).abs() <= 1e-12 * a.abs(),
            (Self::List(a), Value::List(b)) => a == b,
            _ => false,
        }
    }
}

/// Whether the initiator is the higher end of the flow. The initiator is the only side that sent a
/// SYN. Otherwise it is the sender of the first packet or, if that is an answer, its receiver, if
/// that has sent packets too.
pub(super) fn is_flipped(flow: &[SeenPacket]) -> bool {
    let syn_from = |reversed| {
        let sent = flow.iter().filter(move |seen| seen.reversed == reversed);
        sent.filter(|seen| seen.packet.tcp_flags & (TCP_SYN | TCP_ACK) == TCP_SYN)
            .count()
            > 0
    };
    match (syn_from(false), syn_from(true)) {
        (true, false) => false,
        (false, true) => true,
        _ => {
            let answers = flow[0].packet.is_answer();
            let other = flow.iter().any(|seen| seen.reversed != flow[0].reversed);
            flow[0].reversed != (answers && other)
        }
    }
}

/// The values of `of` in the packets that carry it, in order.
fn values(packets: &[&SeenPacket], of: Option<Input>, flipped: bool) -> Vec<u64> {
    if of == Some(Input::Gap) {
        let time = |seen: &SeenPacket| seen.packet.timestamp_ns;
        let pairs = packets.windows(2);
        return pairs
            .map(|pair| time(pair[1]).saturating_sub(time(pair[0])))
            .collect();
    }
    let value = |seen: &&SeenPacket| match of {
        None => Some(1),
        Some(Input::IpLength) => Some(seen.packet.ip_length_bytes.into()),
        Some(Input::FrameLength) => Some(seen.packet.frame_length_bytes.into()),
        Some(Input::Timestamp) => Some(seen.packet.timestamp_ns),
        Some(Input::Ttl) => Some(seen.packet.ttl.into()),
        Some(Input::Tos) => Some(seen.packet.tos.into()),
        Some(Input::Direction) => Some(u64::from(seen.reversed != flipped)),
        Some(input) => seen.inputs.get(input),
    };
    packets.iter().filter_map(value).collect()
}

/// The value of the feature over `packets`.
pub(super) fn value(feature: &Feature, packets: &[&SeenPacket], flipped: bool) -> Expected {
    let (op, of) = match feature.op {
        Op::GapMin => (Op::Min, Some(Input::Gap)),
        Op::GapMax => (Op::Max, Some(Input::Gap)),
        Op::GapMean => (Op::Mean, Some(Input::Gap)),
        Op::GapVariance => (Op::Variance, Some(Input::Gap)),
        _ => (feature.op.clone(), feature.of),
    };
    let values = values(packets, of, flipped);
    let times = || packets.iter().map(|seen| seen.packet.timestamp_ns);
    let duration = || {
        times()
            .max()
            .zip(times().min())
            .map(|(last, first)| last - first)
    };
    match op {
        Op::Count => Expected::Unsigned(values.len() as u64),
        Op::Sum => Expected::Unsigned(values.iter().sum()),
        Op::Min => Expected::number(values.iter().min().copied()),
        Op::Max => Expected::number(values.iter().max().copied()),
        Op::First => Expected::number(values.first().copied()),
        Op::Last => Expected::number(values.last().copied()),
        Op::Nth { k } => Expected::number(values.get(k - 1).copied()),
        Op::BitOr => Expected::Unsigned(values.iter().fold(0, |or, value| or | value)),
        Op::Mean if values.is_empty() => Expected::Absent,
        Op::Mean => Expected::Float(wide_sum(&values) as f64 / values.len() as f64),
        Op::Variance => variance(&values),
        Op::Histogram { edges } => Expected::List(histogram(&edges, &values)),
        Op::List { k } => Expected::List(values.into_iter().take(k).collect()),
        Op::Duration => Expected::number(duration()),
        Op::Rate => match duration() {
            None | Some(0) => Expected::Absent,
            Some(duration) => {
                let per_ns = wide_sum(&values) as f64 / duration as f64;
                Expected::Float(per_ns * 1e9)
            }
        },
        Op::CommunityId => unreachable!("texts are in `texts.rs`"),
        Op::GapMin | Op::GapMax | Op::GapMean | Op::GapVariance => unreachable!(),
    }
}

fn wide_sum(values: &[u64]) -> u128 {
    values.iter().map(|value| u128::from(*value)).sum()
}

/// Exact for values below about 2^50.
fn variance(values: &[u64]) -> Expected {
    if values.is_empty() {
        return Expected::Absent;
    }
    let count = values.len() as u128;
    let squares: u128 = values.iter().map(|value| u128::from(*value).pow(2)).sum();
    let scaled = count * squares - wide_sum(values).pow(2);
    Expected::Float(scaled as f64 / (count * count) as f64)
}

fn histogram(edges: &[u64], values: &[u64]) -> Vec<u64> {
    let mut bins = vec![0; edges.len() + 1];
    for value in values {
        bins[edges.iter().filter(|edge| *edge <= value).count()] += 1;
    }
    bins
}
