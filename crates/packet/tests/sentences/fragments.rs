// SPDX-License-Identifier: Apache-2.0

use turboflow_packet::{
    FragmentCounters, LinkType, Parser, ParserConfig, ReassemblyConfig, Rejected, TunnelSet,
};
use turboflow_record::{Input, InputValues, Packet};

use super::flow;
use crate::build::{ethernet, extension, fragment, frame_of, ipv4, ipv4_fragment, ipv6, udp};

const FIRST: u16 = 0x2000;
const LATER: u16 = 0x0003;

struct Rig {
    parser: Parser,
}

impl Rig {
    fn new(max_datagrams: usize) -> Self {
        let reassembly = ReassemblyConfig {
            max_datagrams,
            timeout_ns: 100,
        };
        Self::with(ParserConfig {
            reassemble_flows: Some(reassembly),
            ..Default::default()
        })
    }

    fn with(config: ParserConfig) -> Self {
        let needs = [Input::Identification].into_iter().collect();
        Self {
            parser: Parser::new(ParserConfig { needs, ..config }),
        }
    }

    fn see(&mut self, timestamp_ns: u64, bytes: &[u8]) -> Result<Packet, Rejected> {
        let mut frame = frame_of(bytes, LinkType::Ethernet);
        frame.timestamp_ns = timestamp_ns;
        self.parser
            .parse_with_inputs(&frame, &mut InputValues::default())
    }

    fn v4(&mut self, at_ns: u64, id: u16, flags: u16) -> Result<Packet, Rejected> {
        let payload = udp(53, 1000 + id, &[0; 16]);
        self.see(
            at_ns,
            &ethernet(0x0800, &ipv4_fragment(17, id, flags, &payload)),
        )
    }

    /// Time, destination port and identification of released fragments.
    fn released(&mut self, now_ns: u64) -> Vec<(u64, u16, Option<u64>)> {
        let mut out = Vec::new();
        self.parser.release(now_ns, &mut out);
        out.iter()
            .map(|(packet, values)| {
                let port = packet.tuple.destination_port();
                (packet.timestamp_ns, port, values.get(Input::Identification))
            })
            .collect()
    }

    fn counters(&self) -> FragmentCounters {
        self.parser.fragment_counters()
    }
}

#[test]
fn later_fragments_take_the_ports_of_the_first() {
    let mut rig = Rig::new(8);
    assert_eq!(flow(&rig.v4(0, 7, FIRST).unwrap()), (17, 53, 1007));
    let later = rig.v4(1, 7, LATER).unwrap();
    assert_eq!((flow(&later), later.ip_length_bytes), ((17, 53, 1007), 44));
    assert_eq!(rig.v4(2, 8, LATER), Err(Rejected::Held), "another datagram");
    assert_eq!(rig.counters().attributed, 1);
}

#[test]
fn later_fragments_that_arrive_first_are_held() {
    let mut rig = Rig::new(8);
    assert_eq!(rig.v4(0, 7, LATER), Err(Rejected::Held));
    assert_eq!(rig.v4(1, 7, LATER + 3), Err(Rejected::Held));
    assert_eq!(rig.released(50), []);
    rig.v4(51, 7, FIRST).unwrap();
    assert_eq!(rig.released(51), [(0, 1007, Some(7)), (1, 1007, Some(7))]);
    assert_eq!(rig.released(52), []);
    let expected = FragmentCounters {
        attributed: 2,
        held: 2,
        ..Default::default()
    };
    assert_eq!(rig.counters(), expected);
}

#[test]
fn held_fragments_that_time_out_are_released_without_ports() {
    let mut rig = Rig::new(8);
    rig.v4(0, 7, LATER).unwrap_err();
    assert_eq!(rig.released(99), []);
    assert_eq!(rig.released(100), [(0, 0, Some(7))]);
    rig.v4(101, 7, FIRST).unwrap();
    assert_eq!(rig.released(1_000), []);
    assert_eq!(rig.counters().expired, 1);
    // A first fragment times out as well.
    rig.v4(2_000, 9, FIRST).unwrap();
    assert_eq!(rig.v4(2_100, 9, LATER), Err(Rejected::Held));
}

#[test]
fn all_held_fragments_are_released_at_the_end() {
    let mut rig = Rig::new(8);
    for id in 0..5 {
        rig.v4(u64::from(id), id, LATER).unwrap_err();
    }
    let mut out = Vec::new();
    rig.parser.release_all(&mut out);
    assert_eq!(out.len(), 5);
    rig.parser.release_all(&mut out);
    assert_eq!(out.len(), 5);
}

#[test]
fn a_full_cache_evicts_the_oldest_datagram() {
    let mut rig = Rig::new(2);
    rig.v4(0, 1, LATER).unwrap_err();
    rig.v4(1, 2, FIRST).unwrap();
    rig.v4(2, 3, FIRST).unwrap();
    assert_eq!(rig.released(3), [(0, 0, Some(1))]);
    assert_eq!(rig.counters().evicted, 1);
    assert_eq!(flow(&rig.v4(4, 2, LATER).unwrap()), (17, 53, 1002));
    assert_eq!(flow(&rig.v4(5, 3, LATER).unwrap()), (17, 53, 1003));
}

#[test]
fn no_more_fragments_are_held_than_configured() {
    let mut rig = Rig::new(2);
    rig.v4(0, 1, LATER).unwrap_err();
    rig.v4(1, 1, LATER).unwrap_err();
    assert_eq!(flow(&rig.v4(2, 1, LATER).unwrap()), (17, 0, 0));
    assert_eq!(rig.counters().overflowed, 1);
    rig.v4(3, 1, FIRST).unwrap();
    assert_eq!(rig.released(3).len(), 2);
    rig.v4(4, 2, LATER).unwrap_err();
}

#[test]
fn a_reused_identification_belongs_to_the_first_fragment_seen_last() {
    let mut rig = Rig::new(8);
    rig.v4(0, 7, FIRST).unwrap();
    let payload = udp(99, 98, &[0; 16]);
    rig.see(1, &ethernet(0x0800, &ipv4_fragment(17, 7, FIRST, &payload)))
        .unwrap();
    assert_eq!(flow(&rig.v4(2, 7, LATER).unwrap()), (17, 99, 98));
}

#[test]
fn a_reused_identification_has_its_own_timeout() {
    let mut rig = Rig::new(8);
    rig.v4(0, 7, FIRST).unwrap();
    rig.v4(99, 7, FIRST).unwrap();
    assert!(rig.released(101).is_empty());
    assert_eq!(flow(&rig.v4(101, 7, LATER).unwrap()), (17, 53, 1007));
}

#[test]
fn fragments_are_not_joined_across_a_clock_that_went_backwards() {
    let mut rig = Rig::new(8);
    rig.v4(2_000, 7, FIRST).unwrap();
    assert_eq!(rig.v4(2_001, 8, LATER), Err(Rejected::Held));
    // The clock went back 999 ns. Neither fragment belongs to the datagram that arrived before.
    assert_eq!(rig.v4(1_001, 7, LATER), Err(Rejected::Held));
    let mut out = Vec::new();
    rig.parser.set_back(1_001, &mut out);
    assert_eq!(out.len(), 1);
    assert_eq!(out[0].0.timestamp_ns, 2_001);
    rig.v4(1_002, 7, FIRST).unwrap();
    assert_eq!(rig.released(1_002), [(1_001, 1007, Some(7))]);
}

#[test]
fn expire_releases_only_fragments_that_timed_out() {
    let mut rig = Rig::new(8);
    assert_eq!(rig.v4(0, 7, LATER), Err(Rejected::Held));
    assert_eq!(rig.v4(60, 8, LATER), Err(Rejected::Held));
    rig.v4(100, 8, FIRST).unwrap();
    let mut out = Vec::new();
    rig.parser.expire(100, &mut out);
    let times: Vec<u64> = out.iter().map(|(packet, _)| packet.timestamp_ns).collect();
    assert_eq!(times, [0]);
    assert_eq!(rig.released(100), [(60, 1008, Some(8))]);
}

#[test]
fn ipv6_fragments_join_even_where_extension_headers_hide_the_protocol() {
    let mut rig = Rig::new(8);
    let piece = |place: u16| {
        let chain = extension(17, 0, &udp(53, 5353, &[0; 16]));
        ethernet(0x86dd, &ipv6(44, &fragment(60, place, 9, &chain)))
    };
    assert_eq!(rig.see(0, &piece(16)), Err(Rejected::Held));
    assert_eq!(flow(&rig.see(1, &piece(1)).unwrap()), (17, 53, 5353));
    assert_eq!(rig.released(1), [(0, 5353, Some(9))]);
    assert_eq!(flow(&rig.see(2, &piece(32)).unwrap()), (17, 53, 5353));
}

#[test]
fn fragments_without_ports_are_not_held() {
    let mut rig = Rig::new(8);
    let bytes = ethernet(0x0800, &ipv4_fragment(50, 7, LATER, &[0; 16]));
    assert_eq!(flow(&rig.see(0, &bytes).unwrap()), (50, 0, 0));
    assert_eq!(flow(&rig.v4(0, 7, 0).unwrap()), (17, 53, 1007));
}

#[test]
fn outer_fragments_stay_with_the_outer_flow() {
    let mut rig = Rig::with(ParserConfig {
        decapsulate: TunnelSet::ALL,
        reassemble_flows: Some(ReassemblyConfig {
            max_datagrams: 8,
            timeout_ns: 100,
        }),
        ..Default::default()
    });
    let inner = ethernet(0x0800, &ipv4(17, &udp(1, 2, &[0; 8])));
    let vxlan = udp(
        50_000,
        4789,
        &[&[8, 0, 0, 0, 0, 0, 1, 0][..], &inner].concat(),
    );
    let first = ethernet(0x0800, &ipv4_fragment(17, 7, FIRST, &vxlan));
    let later = ethernet(0x0800, &ipv4_fragment(17, 7, LATER, &[0; 16]));
    assert_eq!(flow(&rig.see(0, &first).unwrap()), (17, 1, 2));
    assert_eq!(flow(&rig.see(1, &later).unwrap()), (17, 50_000, 4789));
    // Likewise inside one and inside two IP-in-IP tunnels.
    for depth in 1..3 {
        let around = |datagram: Vec<u8>| (0..depth).fold(datagram, |inner, _| ipv4(4, &inner));
        let first = around(ipv4_fragment(17, 8 + depth, FIRST, &vxlan));
        let later = around(ipv4_fragment(17, 8 + depth, LATER, &[0; 16]));
        let first = rig.see(2, &ethernet(0x0800, &first));
        assert_eq!(flow(&first.unwrap()), (17, 1, 2), "{depth}");
        let later = rig.see(3, &ethernet(0x0800, &later));
        assert_eq!(flow(&later.unwrap()), (17, 50_000, 4789), "{depth}");
    }
}
