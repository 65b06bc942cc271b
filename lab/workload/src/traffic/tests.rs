// SPDX-License-Identifier: Apache-2.0
//! The generated frames match the generator's statistics and configuration.

use std::collections::{HashMap, HashSet};

use turboflow_packet::{Frame, Parser, ParserConfig};
use turboflow_record::{TCP_ACK, TCP_FIN, TCP_SYN};

use super::*;

/// A frame decoded by hand, independent of the product's parser.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Read {
    tuple: FiveTuple,
    vlan: Option<u16>,
    tcp_flags: u16,
}

fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// The one's complement sum of RFC 1071, word by word: 0xffff if the checksum is correct.
fn sum(parts: &[&[u8]]) -> u16 {
    let words = parts.iter().flat_map(|part| part.chunks(2));
    let total: u64 = words
        .map(|pair| {
            u64::from(u16::from_be_bytes([
                pair[0],
                pair.get(1).copied().unwrap_or(0),
            ]))
        })
        .sum();
    let mut folded = total;
    while folded > 0xffff {
        folded = (folded & 0xffff) + (folded >> 16);
    }
    folded as u16
}

/// Decodes a frame, and checks its lengths and, if it was captured completely, its checksums.
fn read(frame: &Frame<'_>) -> Read {
    let bytes = frame.bytes;
    let (vlan, ip) = if word(bytes, 12) == 0x8100 {
        (Some(word(bytes, 14)), 18)
    } else {
        (None, 14)
    };
    let on_wire = frame.wire_length_bytes as usize - ip;
    let captured_whole = bytes.len() == frame.wire_length_bytes as usize;
    let (tuple, transport) = match word(bytes, ip - 2) {
        0x0800 => {
            assert_eq!(bytes[ip], 0x45);
            assert_eq!(usize::from(word(bytes, ip + 2)), on_wire);
            assert_eq!(sum(&[&bytes[ip..ip + 20]]), 0xffff, "IPv4 header checksum");
            let addresses = bytes[ip + 12..ip + 20].try_into().unwrap();
            let ports = bytes[ip + 20..ip + 24].try_into().unwrap();
            (FiveTuple::v4(addresses, ports, bytes[ip + 9]), ip + 20)
        }
        0x86dd => {
            assert_eq!(bytes[ip] >> 4, 6);
            assert_eq!(usize::from(word(bytes, ip + 4)) + 40, on_wire);
            let source = bytes[ip + 8..ip + 24].try_into().unwrap();
            let destination = bytes[ip + 24..ip + 40].try_into().unwrap();
            let ports = bytes[ip + 40..ip + 44].try_into().unwrap();
            (
                FiveTuple::v6(source, destination, ports, bytes[ip + 6]),
                ip + 40,
            )
        }
        other => panic!("ethertype {other:#x}"),
    };
    if captured_whole {
        let addresses = if transport == ip + 20 {
            ip + 12..ip + 20
        } else {
            ip + 8..ip + 40
        };
        let segment = &bytes[transport..];
        let lengths = [
            0,
            tuple.protocol(),
            (segment.len() >> 8) as u8,
            segment.len() as u8,
        ];
        assert_eq!(
            sum(&[&bytes[addresses], &lengths, segment]),
            0xffff,
            "transport checksum"
        );
    }
    let tcp_flags = if tuple.protocol() == 6 {
        word(bytes, transport + 12) & 0xfff
    } else {
        0
    };
    Read {
        tuple,
        vlan,
        tcp_flags,
    }
}

fn zipf(exponent: f64, mean_train_length: f64) -> Skew {
    Skew::Zipf {
        exponent,
        mean_train_length,
    }
}

/// All options at once: both families, tags, UDP, sizes, births.
fn mixed() -> TrafficConfig {
    TrafficConfig {
        packets: 200_000,
        flows: 2_000,
        births_per_second: 5_000.0,
        packets_per_second: 1e6 / 3.0,
        frame_sizes: FrameSizes::Imix,
        skew: zipf(1.05, 5.0),
        ipv6_share: 0.3,
        vlan_share: 0.2,
        udp_share: 0.4,
        ..TrafficConfig::default()
    }
}

fn each_frame(config: TrafficConfig, mut visit: impl FnMut(Frame<'_>)) -> Traffic {
    let mut traffic = Traffic::new(config).unwrap();
    let mut buffer = FrameBuffer::default();
    while traffic.fill(&mut buffer, 1_000) > 0 {
        buffer.frames().for_each(&mut visit);
    }
    traffic
}

#[test]
fn frames_are_valid_and_belong_to_their_flows() {
    let mut seen = HashMap::new();
    let traffic = each_frame(mixed(), |frame| {
        let read = read(&frame);
        seen.insert(read.tuple, read.vlan);
    });
    let mut known = HashMap::new();
    // 3,000 births among 2,000 flows: one and a half rounds.
    let numbers = 0..3 * 2_000;
    numbers.for_each(|number| {
        let before = known.insert(traffic.five_tuple(number), traffic.vlan(number));
        assert_eq!(before, None, "5-tuples are unique");
    });
    assert!(
        seen.iter()
            .all(|(tuple, vlan)| known.get(tuple) == Some(vlan))
    );
    assert!(seen.len() > 4_000);
}

#[test]
fn the_products_parser_agrees() {
    let mut parser = Parser::new(ParserConfig::default());
    each_frame(mixed(), |frame| {
        let packet = parser.parse(&frame).unwrap();
        let read = read(&frame);
        assert_eq!(
            (packet.tuple, packet.tcp_flags),
            (read.tuple, read.tcp_flags)
        );
        assert_eq!(packet.frame_length_bytes, frame.wire_length_bytes);
        assert!((49..=64).contains(&packet.ttl));
    });
}

#[test]
fn statistics_match_configuration_and_frames() {
    let (mut packets, mut wire_bytes, mut last_ns) = (0_u64, 0_u64, 0);
    let (mut ipv6, mut vlan, mut udp) = (0_u64, 0_u64, 0_u64);
    let traffic = each_frame(mixed(), |frame| {
        let read = read(&frame);
        packets += 1;
        wire_bytes += u64::from(frame.wire_length_bytes);
        ipv6 += u64::from(read.tuple.family() == Family::V6);
        vlan += u64::from(read.vlan.is_some());
        udp += u64::from(read.tuple.protocol() == 17);
        assert!(frame.timestamp_ns >= last_ns);
        last_ns = frame.timestamp_ns;
    });
    let stated = traffic.statistics();
    assert_eq!(
        (stated.packets, stated.wire_bytes, stated.last_ns),
        (packets, wire_bytes, last_ns)
    );
    assert_eq!(
        (stated.ipv6_packets, stated.vlan_packets, stated.udp_packets),
        (ipv6, vlan, udp)
    );
    assert_eq!(packets, 200_000);
    // 200,000 packets at a third of a million per second last 0.6 s.
    assert_eq!(last_ns - mixed().start_ns, 599_997_000);
    assert_eq!((stated.births, stated.deaths), (3_000, 3_000));
    for (part, share) in [(ipv6, 0.3), (vlan, 0.2), (udp, 0.4)] {
        let achieved = part as f64 / packets as f64;
        assert!((achieved - share).abs() < 0.02, "{achieved} of {share}");
    }
    // The mean of 7 x 64, 4 x 594 and 1 x 1,518. IPv6 and tags make some frames longer.
    let mean_bytes = wire_bytes as f64 / packets as f64;
    assert!((355.0..370.0).contains(&mean_bytes), "{mean_bytes}");
}

#[test]
fn shares_hold_for_flows_and_packets_under_any_skew() {
    for skew in [Skew::Uniform, zipf(1.05, 5.0), zipf(0.7, 1.0)] {
        for (share, flows) in [(0.08, 50_000), (0.5, 1_000_000), (0.95, 300)] {
            let shares = TrafficConfig {
                ipv6_share: share,
                vlan_share: share,
                ..mixed()
            };
            let config = TrafficConfig {
                skew,
                flows,
                births_per_second: 0.0,
                ..shares
            };
            let traffic = each_frame(config, |_| ());
            let stated = traffic.statistics();
            for part in [stated.ipv6_packets, stated.vlan_packets] {
                let achieved = part as f64 / stated.packets as f64;
                assert!(
                    (achieved - share).abs() < 0.015,
                    "{achieved} of {share}, {skew:?}"
                );
            }
            let v6 = |number: &u64| traffic.five_tuple(*number).family() == Family::V6;
            let achieved = (0..flows).filter(v6).count() as f64 / flows as f64;
            assert!((achieved - share).abs() < 0.015, "{achieved} of {share}");
        }
    }
}

#[test]
fn new_flows_begin_with_syn_and_old_ones_end_with_fin() {
    let config = TrafficConfig {
        skew: Skew::Uniform,
        udp_share: 0.0,
        ..mixed()
    };
    let mut packets: HashMap<FiveTuple, Vec<u16>> = HashMap::new();
    let traffic = each_frame(config, |frame| {
        let read = read(&frame);
        packets.entry(read.tuple).or_default().push(read.tcp_flags);
    });
    let births = traffic.statistics().births;
    let at = |number| {
        packets
            .get(&traffic.five_tuple(number))
            .map_or(&[][..], Vec::as_slice)
    };
    let mut born = 0;
    for number in 0..3 * 2_000 {
        let flags = at(number);
        let syns = flags.iter().filter(|&&flags| flags == TCP_SYN).count();
        let fins = flags
            .iter()
            .filter(|&&flags| flags == TCP_FIN | TCP_ACK)
            .count();
        born += syns as u64;
        assert!(syns == usize::from(number >= 2_000) || number >= 2 * 2_000 && flags.is_empty());
        assert!(syns == 0 || flags[0] == TCP_SYN);
        assert!(fins == 0 || fins == 1 && *flags.last().unwrap() == TCP_FIN | TCP_ACK);
    }
    assert_eq!(born, births);
    let ended = |number: &u64| at(*number).last() == Some(&(TCP_FIN | TCP_ACK));
    assert_eq!((0..2_000).filter(ended).count(), 2_000);
    assert_eq!((2_000..4_000).filter(ended).count(), 1_000);
}

#[test]
fn every_packet_may_be_a_birth() {
    let config = TrafficConfig {
        packets: 5_000,
        flows: 7,
        births_per_second: 1e6,
        packets_per_second: 1e6,
        ..TrafficConfig::default()
    };
    let mut tuples = HashSet::new();
    let traffic = each_frame(config, |frame| {
        assert!(tuples.insert(read(&frame).tuple));
    });
    assert_eq!(
        (traffic.statistics().births, traffic.statistics().deaths),
        (5_000, 0)
    );
}

#[test]
fn uniform_traffic_favours_no_flow() {
    const FLOWS: u64 = 1_000;
    const DRAWS: u64 = 1_000_000;
    let mut counts = [0_u64; FLOWS as usize];
    let numbers = keys(FLOWS, Skew::Uniform, 3).unwrap();
    numbers
        .take(DRAWS as usize)
        .for_each(|number| counts[number as usize] += 1);
    let expected = (DRAWS / FLOWS) as f64;
    let square = |&count: &u64| (count as f64 - expected).powi(2) / expected;
    let chi_square: f64 = counts.iter().map(square).sum();
    assert!((850.0..1_150.0).contains(&chi_square), "{chi_square}");
}

#[test]
fn heavy_flows_have_their_share_by_zipfs_law() {
    const FLOWS: u64 = 10_000;
    const DRAWS: u64 = 4_000_000;
    let weight = |rank: u64| (rank as f64).powf(-1.05);
    let total: f64 = (1..=FLOWS).map(weight).sum();
    let mut counts = vec![0_u64; FLOWS as usize];
    let numbers = keys(FLOWS, zipf(1.05, 5.0), 3).unwrap();
    numbers
        .take(DRAWS as usize)
        .for_each(|number| counts[number as usize] += 1);
    for head in [1, 10, 100, 1_000] {
        let achieved = counts[..head as usize].iter().sum::<u64>() as f64 / DRAWS as f64;
        let expected = (1..=head).map(weight).sum::<f64>() / total;
        assert!(
            (achieved / expected - 1.0).abs() < 0.02,
            "{head}: {achieved} of {expected}"
        );
    }
}

#[test]
fn trains_have_their_mean_length_and_interleave() {
    const DRAWS: u64 = 2_000_000;
    // With so many flows of equal weight, nearby packets of one flow belong to one train.
    let mut numbers = keys(4_000_000_000, zipf(0.0, 5.0), 9).unwrap();
    let mut places: HashMap<u64, Vec<u64>> = HashMap::new();
    for place in 0..DRAWS {
        places.entry(numbers.next_number()).or_default().push(place);
    }
    let mean = DRAWS as f64 / numbers.trains_begun() as f64;
    assert!(
        (mean - 5.0).abs() < 0.05,
        "{mean} packets for each train begun"
    );
    let mean = DRAWS as f64 / places.len() as f64;
    assert!(
        (mean - 5.0).abs() < 0.05,
        "{mean} packets for each train seen"
    );
    let gaps: Vec<_> = places
        .values()
        .flat_map(|of_one| of_one.windows(2))
        .collect();
    let near: Vec<_> = gaps
        .iter()
        .map(|gap| gap[1] - gap[0])
        .filter(|gap| *gap < 1_000)
        .collect();
    let mean = near.iter().sum::<u64>() as f64 / near.len() as f64;
    assert!(
        (mean / CONCURRENT_TRAINS as f64 - 1.0).abs() < 0.05,
        "{mean} packets apart"
    );
}

#[test]
fn the_same_seed_gives_the_same_traffic() {
    let all = |seed, frames: usize| {
        let config = TrafficConfig {
            packets: 3_000,
            seed,
            ..mixed()
        };
        let mut traffic = Traffic::new(config).unwrap();
        let (mut buffer, mut bytes) = (FrameBuffer::default(), Vec::new());
        while traffic.fill(&mut buffer, frames) > 0 {
            bytes.extend_from_slice(buffer.bytes());
        }
        bytes
    };
    assert_eq!(all(4, 7), all(4, 1_000));
    assert_ne!(all(4, 1_000), all(5, 1_000));
}

#[test]
fn a_snap_length_cuts_bytes_and_nothing_else() {
    let whole = Traffic::new(mixed());
    let cut = Traffic::new(TrafficConfig {
        snap_length_bytes: Some(64),
        ..mixed()
    });
    let (mut whole, mut cut) = (whole.unwrap(), cut.unwrap());
    let (mut all, mut heads) = (FrameBuffer::default(), FrameBuffer::default());
    assert_eq!(whole.fill(&mut all, 5_000), cut.fill(&mut heads, 5_000));
    for (all, head) in all.frames().zip(heads.frames()) {
        assert_eq!(all.wire_length_bytes as usize, all.bytes.len());
        assert_eq!(head.wire_length_bytes, all.wire_length_bytes);
        assert_eq!(head.bytes, &all.bytes[..64]);
    }
}

#[test]
fn impossible_configurations_are_refused_with_one_sentence() {
    let refused = |change: fn(&mut TrafficConfig)| {
        let mut config = TrafficConfig::default();
        change(&mut config);
        Traffic::new(config).unwrap_err().to_string()
    };
    assert_eq!(
        refused(|config| config.births_per_second = 2e6),
        "2000000 births per second cannot come from 1000000 packets per second; each birth takes a \
         packet: lower the births or raise the packets"
    );
    assert_eq!(
        refused(|config| config.flows = 0),
        "0 flows asked for; ask for 1 to 4294967295"
    );
    assert_eq!(
        refused(|config| config.packets = 0),
        "0 packets asked for; ask for at least 1"
    );
    assert!(refused(|config| config.ipv6_share = 1.5).contains("ipv6_share is 1.5"));
    assert!(refused(|config| config.udp_share = f64::NAN).contains("udp_share is NaN"));
    assert!(refused(|config| config.packets_per_second = 0.0).contains("0 packets per second"));
    assert!(refused(|config| config.packets_per_second = 1e-6).contains("2554"));
    assert!(refused(|config| config.frame_sizes = FrameSizes::Fixed(63)).contains("63 bytes"));
    assert!(refused(|config| config.frame_sizes = FrameSizes::Fixed(9_001)).contains("9001"));
    assert!(refused(|config| config.frame_sizes = FrameSizes::Mix(vec![])).contains("a mix"));
    assert!(refused(|config| config.snap_length_bytes = Some(10)).contains("snap length 10"));
    assert!(refused(|config| config.skew = zipf(-1.0, 5.0)).contains("exponent -1"));
    assert!(refused(|config| config.skew = zipf(1.0, 0.5)).contains("mean length 0.5"));
}
