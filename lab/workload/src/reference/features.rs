// SPDX-License-Identifier: Apache-2.0
//! Computes every feature from the list of a flow's packets.

use turboflow_record::{
    CommunityFlow, Definition, EndReason, Feature, Input, InputValues, Op, Packet,
};

use super::MeterOptions;
use super::flow::{OpenFlow, SeenPacket};
use super::key::{FlowKey, reverse};
use super::records::{OwnedValue, Record};

/// The flow record of a closed flow.
pub(super) fn record(
    definition: &Definition,
    options: &MeterOptions,
    key: &FlowKey,
    flow: &OpenFlow,
    reason: EndReason,
) -> Record {
    let turned = options.biflow && initiator_is_reversed(&flow.packets);
    let key = if turned {
        reverse(definition, key)
    } else {
        key.clone()
    };
    let mut record = Record::default();
    for (field, value) in definition.key.iter().zip(&key) {
        record.insert(field.column_name(), value.into());
    }
    let by = |reversed: bool| -> Vec<Directed<'_>> {
        all(flow, turned)
            .into_iter()
            .filter(|packet| packet.from_responder == reversed)
            .collect()
    };
    for feature in &definition.features {
        if feature.op == Op::CommunityId {
            let id = community_id(&record, &all(flow, turned));
            record.insert(
                &feature.name,
                id.map_or(OwnedValue::Absent, OwnedValue::Text),
            );
        } else if !options.biflow || feature.is_joined() {
            let packets = all(flow, turned);
            record.insert(&feature.name, value(feature, &packets, options.biflow));
        } else {
            record.insert(&feature.name, value(feature, &by(false), true));
            let reverse_name = format!("reverse_{}", feature.name);
            record.insert(&reverse_name, value(feature, &by(true), true));
        }
    }
    record.insert("end_reason", OwnedValue::Unsigned(reason as u64));
    record
}

/// A packet with its direction in the flow.
#[derive(Clone, Copy)]
struct Directed<'a> {
    seen: &'a SeenPacket,
    from_responder: bool,
}

fn all(flow: &OpenFlow, turned: bool) -> Vec<Directed<'_>> {
    let direct = |seen| Directed {
        seen,
        from_responder: SeenPacket::is_reversed(seen) != turned,
    };
    flow.packets.iter().map(direct).collect()
}

/// The Community ID of the record's key. For ICMP, it includes type and code of the first message
/// that has them.
fn community_id(record: &Record, packets: &[Directed<'_>]) -> Option<String> {
    let address = |column| match record.get(column) {
        Some(OwnedValue::Address(address)) => *address,
        other => panic!("column {column} holds {other:?}, not an address"),
    };
    let first = |input| {
        values_of(input, packets, false)
            .first()
            .map(|value| *value as u8)
    };
    let flow = CommunityFlow {
        addresses: ["src_addr", "dst_addr"].map(address),
        protocol: record.unsigned("protocol") as u8,
        ports: ["src_port", "dst_port"].map(|column| record.unsigned(column) as u16),
        icmp: first(Input::IcmpType)
            .zip(first(Input::IcmpCode))
            .map(<[u8; 2]>::from),
    };
    flow.id()
}

/// Decides whether the initiator is the side whose packets run against the key. The initiator is
/// the only side that sent a SYN without ACK. If there is no such side, it is the sender of the
/// first packet or, if that packet is a response and its receiver sent something too, the receiver.
fn initiator_is_reversed(packets: &[SeenPacket]) -> bool {
    let sent_syn = |reversed| {
        packets
            .iter()
            .any(|seen| seen.is_reversed() == reversed && seen.is_syn_without_ack())
    };
    match (sent_syn(false), sent_syn(true)) {
        (true, false) => false,
        (false, true) => true,
        _ => {
            let first = packets[0].is_reversed();
            let other = packets.iter().any(|seen| seen.is_reversed() != first);
            first != (packets[0].packet.is_answer() && other)
        }
    }
}

/// The input's value in one packet; `None` if the packet has none.
pub(super) fn input_of_packet(input: Input, packet: &Packet, values: &InputValues) -> Option<u64> {
    match input {
        Input::IpLength => Some(packet.ip_length_bytes.into()),
        Input::FrameLength => Some(packet.frame_length_bytes.into()),
        Input::Timestamp => Some(packet.timestamp_ns),
        Input::Ttl => Some(packet.ttl.into()),
        Input::Tos => Some(packet.tos.into()),
        other => values.get(other),
    }
}

/// The gaps between consecutive packets, in ns; 0 if the clock went backwards.
fn gaps_ns(packets: &[Directed<'_>]) -> Vec<u64> {
    let time = |packet: &Directed<'_>| packet.seen.packet.timestamp_ns;
    packets
        .windows(2)
        .map(|pair| time(&pair[1]).saturating_sub(time(&pair[0])))
        .collect()
}

/// The values of `input`, packet by packet, without absent ones.
fn values_of(input: Input, packets: &[Directed<'_>], biflow: bool) -> Vec<u64> {
    match input {
        Input::Gap => gaps_ns(packets),
        Input::Direction if biflow => packets
            .iter()
            .map(|packet| packet.from_responder.into())
            .collect(),
        Input::Direction => Vec::new(),
        other => packets
            .iter()
            .filter_map(|packet| input_of_packet(other, &packet.seen.packet, &packet.seen.values))
            .collect(),
    }
}

fn value(feature: &Feature, packets: &[Directed<'_>], biflow: bool) -> OwnedValue {
    let values = match (&feature.op, feature.of) {
        (Op::GapMin | Op::GapMax | Op::GapMean | Op::GapVariance, _) => gaps_ns(packets),
        (_, Some(input)) => values_of(input, packets, biflow),
        // Without an input, `count` and `rate` count packets, and `duration` uses only times.
        (_, None) => vec![1; packets.len()],
    };
    let values = match (&feature.op, feature.of) {
        // In packets without TCP flags the value is 0, which does not change an OR. So parsers need
        // not fill in the input.
        (Op::BitOr, Some(Input::TcpFlags)) => packets
            .iter()
            .map(|packet| packet.seen.packet.tcp_flags.into())
            .collect(),
        _ => values,
    };
    let unsigned = |value: Option<u64>| value.map_or(OwnedValue::Absent, OwnedValue::Unsigned);
    let float = |value: Option<f64>| value.map_or(OwnedValue::Absent, OwnedValue::Float);
    match &feature.op {
        Op::Count => OwnedValue::Unsigned(values.len() as u64),
        Op::Sum => OwnedValue::Unsigned(sum_64(&values)),
        Op::Min | Op::GapMin => unsigned(values.iter().copied().min()),
        Op::Max | Op::GapMax => unsigned(values.iter().copied().max()),
        Op::First => unsigned(values.first().copied()),
        Op::Last => unsigned(values.last().copied()),
        Op::Nth { k } => unsigned(values.get(k - 1).copied()),
        Op::BitOr => OwnedValue::Unsigned(values.iter().fold(0, |bits, value| bits | value)),
        Op::Mean | Op::GapMean => float(mean(&values)),
        Op::Variance | Op::GapVariance => float(variance(&values)),
        Op::Histogram { edges } => OwnedValue::List(histogram(edges, &values)),
        Op::List { k } => OwnedValue::List(values.into_iter().take(*k).collect()),
        Op::Duration => unsigned(duration_ns(packets)),
        Op::Rate => float(rate(&values, duration_ns(packets))),
        Op::CommunityId => unreachable!("it follows from the key"),
    }
}

fn sum(values: &[u64]) -> u128 {
    values.iter().map(|&value| u128::from(value)).sum()
}

/// The sum modulo 2^64, as in 64-bit counters.
fn sum_64(values: &[u64]) -> u64 {
    sum(values) as u64
}

fn mean(values: &[u64]) -> Option<f64> {
    (!values.is_empty()).then(|| sum(values) as f64 / values.len() as f64)
}

/// Population variance in two passes. It is also `None` if the sum of squares exceeds 128 bits,
/// like the record's exact moments. Deviations from the first value are computed in integers, so
/// that large values close to each other keep their precision.
fn variance(values: &[u64]) -> Option<f64> {
    let mut squares = 0_u128;
    for &value in values {
        squares = squares
            .checked_add(u128::from(value).pow(2))
            .filter(|&sum| sum < u128::MAX)?;
    }
    let origin = i128::from(*values.first()?);
    let shifted: Vec<i128> = values
        .iter()
        .map(|&value| i128::from(value) - origin)
        .collect();
    let count = values.len() as f64;
    let mean = shifted.iter().sum::<i128>() as f64 / count;
    Some(
        shifted
            .iter()
            .map(|&value| (value as f64 - mean).powi(2))
            .sum::<f64>()
            / count,
    )
}

fn histogram(edges: &[u64], values: &[u64]) -> Vec<u64> {
    let mut counts = vec![0; edges.len() + 1];
    for value in values {
        counts[edges.iter().filter(|edge| *edge <= value).count()] += 1;
    }
    counts
}

fn duration_ns(packets: &[Directed<'_>]) -> Option<u64> {
    let times: Vec<u64> = packets
        .iter()
        .map(|packet| packet.seen.packet.timestamp_ns)
        .collect();
    Some(times.iter().max()? - times.iter().min()?)
}

fn rate(values: &[u64], duration_ns: Option<u64>) -> Option<f64> {
    let duration_ns = duration_ns.filter(|&ns| ns != 0)?;
    Some(sum_64(values) as f64 / (duration_ns as f64 / 1e9))
}
