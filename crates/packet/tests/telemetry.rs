// SPDX-License-Identifier: Apache-2.0
//! Whatever hops write, the inputs have these values.

use proptest::prelude::*;
use turboflow_packet::{LinkType, Parser, ParserConfig, TELEMETRY_INPUTS, TelemetryConfig};
use turboflow_record::{Input, InputValues};

use crate::build::{self, frame_of, join};

/// What a hop writes, for the bits that request it.
#[derive(Clone, Copy, Debug)]
struct Planted {
    node: u32,
    egress: u16,
    latency: u32,
    queue: u32,
}

fn hops() -> impl Strategy<Value = Vec<Planted>> {
    // None of these values means "unknown".
    let hop = (1..2_000_u32, 0..u16::MAX, 0..1_u32 << 31, 0..1_u32 << 24);
    let hop = hop.prop_map(|(node, egress, latency, queue)| Planted {
        node,
        egress,
        latency,
        queue,
    });
    prop::collection::vec(hop, 1..9)
}

/// The inputs that must result from the planted hops.
fn expected(hops: &[Planted], asked: [bool; 4]) -> [Option<u64>; 5] {
    let [node, egress, latency, queue] = asked;
    let readable = hops.len() <= 6 && hops.iter().all(|hop| hop.node < 1_000);
    let digits = || {
        hops.iter()
            .map(|hop| format!("{:03}", hop.node))
            .collect::<String>()
    };
    [
        queue.then(|| hops.iter().map(|hop| u64::from(hop.queue)).max().unwrap()),
        latency.then(|| hops.iter().map(|hop| u64::from(hop.latency)).sum()),
        (node && readable).then(|| digits().parse().unwrap()),
        egress.then(|| hops.last().unwrap().egress.into()),
        Some(hops.len() as u64),
    ]
}

fn read(bytes: &[u8]) -> [Option<u64>; 5] {
    let mut parser = Parser::new(ParserConfig {
        telemetry: Some(TelemetryConfig::default()),
        needs: TELEMETRY_INPUTS,
        ..ParserConfig::default()
    });
    let mut values = InputValues::default();
    let frame = frame_of(bytes, LinkType::Ethernet);
    parser.parse_with_inputs(&frame, &mut values).unwrap();
    assert_eq!(parser.telemetry_counters().unwrap().read, 1);
    let path = values.get(Input::Path).filter(|path| path >> 63 == 0);
    let get = |input| values.get(input);
    [
        get(Input::QueueDepth),
        get(Input::HopLatency),
        path,
        get(Input::EgressInterface),
        get(Input::HopCount),
    ]
}

/// The words that a hop writes: what each set bit requests, from bit 0 on.
fn words(bits: u32, count: u32, write: impl Fn(u32) -> Vec<u32>) -> Vec<u8> {
    let set = (0..count).filter(|bit| bits >> (count - 1 - bit) & 1 == 1);
    set.flat_map(write).flat_map(u32::to_be_bytes).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn int_gives_what_hops_wrote(hops in hops(), bitmap in 1_u16.., domain_words in 0_usize..3) {
        // Logical interfaces would replace missing physical ones.
        let bitmap = bitmap & !(1 << 9);
        let bit = |bit: u32| bitmap >> (15 - bit) & 1 == 1;
        let hop = |hop: &Planted| {
            let baseline = words(bitmap.into(), 16, |bit| match bit {
                0 => vec![hop.node],
                1 => vec![0xabcd_0000 | u32::from(hop.egress)],
                2 => vec![hop.latency],
                3 => vec![0x0700_0000 | hop.queue],
                4 | 5 => vec![1, 2],
                _ => vec![u32::MAX],
            });
            join(&[&baseline, &vec![9; domain_words * 4]])
        };
        let stack: Vec<u8> = hops.iter().rev().flat_map(hop).collect();
        let hop_words = stack.len() / hops.len() / 4;
        prop_assume!((1..32).contains(&hop_words));
        let [high, low] = bitmap.to_be_bytes();
        let domain = (domain_words > 0).into();
        let header = [0x20, 0, hop_words as u8, 3, high, low, 0, domain, domain, 0, 0, 0];
        let shim = [0x10, (3 + stack.len() / 4) as u8, 0, 0];
        let mut datagram = build::ipv4(17, &build::udp(9, 53, &join(&[&shim, &header, &stack])));
        datagram[1] = 0x17 << 2;
        let bytes = build::ethernet(0x0800, &build::with_checksum(datagram));
        prop_assert_eq!(read(&bytes), expected(&hops, [bit(0), bit(1), bit(2), bit(3)]));
    }

    #[test]
    fn ioam_gives_what_nodes_wrote(hops in hops(), kind in any::<u32>(), free in 0_usize..3) {
        // Bits that RFC 9197 defines, without wide fields.
        let kind = kind & 0b1111_1111_0001_0000_0000_0000 | 1 << 19;
        let bit = |bit: u32| kind >> (23 - bit) & 1 == 1;
        let node = |hop: &Planted| words(kind, 24, |bit| match bit {
            0 => vec![0x4000_0000 | hop.node],
            1 => vec![0xabcd_0000 | u32::from(hop.egress)],
            4 => vec![hop.latency],
            6 => vec![hop.queue],
            _ => vec![u32::MAX],
        });
        let nodes: Vec<u8> = hops.iter().rev().flat_map(node).collect();
        let node_words = nodes.len() / hops.len() / 4;
        let data = join(&[&vec![0; free * node_words * 4], &nodes]);
        prop_assume!(data.len() <= 244);
        let [_, a, b, c] = kind.to_be_bytes();
        let trace = [0, 1, (node_words as u8) << 3, (free * node_words) as u8, a, b, c, 0];
        let option = [0x31, (10 + data.len()) as u8, 0, 0];
        let mut header = join(&[&[17, 0, 1, 0], &option, &trace, &data]);
        header.resize(header.len().next_multiple_of(8), 0);
        header[1] = (header.len() / 8 - 1) as u8;
        let payload = join(&[&header, &build::udp(9, 53, b"data")]);
        let bytes = build::ethernet(0x86dd, &build::ipv6(0, &payload));
        prop_assert_eq!(read(&bytes), expected(&hops, [bit(0), bit(1), bit(4), bit(6)]));
    }
}
