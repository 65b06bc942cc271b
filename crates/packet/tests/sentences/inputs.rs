// SPDX-License-Identifier: Apache-2.0

use turboflow_packet::TunnelSet;
use turboflow_record::{Input, InputValues};

use super::{inner, values_of};
use crate::build::{
    ethernet, extension, fragment, ipv4, ipv4_fragment, ipv4_with_options, ipv6, join, tag, tcp,
    udp,
};

fn values(bytes: &[u8]) -> InputValues {
    values_of(bytes, TunnelSet::EMPTY).1
}

fn expect(values: &InputValues, expected: &[(Input, Option<u64>)]) {
    for &(input, value) in expected {
        assert_eq!(values.get(input), value, "{}", input.name());
    }
}

#[test]
fn tcp_over_ipv4_carries_these() {
    let options = [2, 4, 5, 180, 1, 3, 3, 7, 4, 2, 0, 0];
    let values = values(&ethernet(0x0800, &ipv4(6, &tcp(0x018, &options, &[0; 11]))));
    expect(
        &values,
        &[
            (Input::IpLength, Some(63)),
            (Input::FrameLength, Some(77)),
            (Input::Timestamp, Some(1_000)),
            (Input::TcpFlags, Some(0x018)),
            (Input::TcpWindow, Some(0x090a)),
            (Input::TcpSequence, Some(0x0102_0304)),
            (Input::TcpAcknowledgement, Some(0x0506_0708)),
            (Input::TcpOptions, Some(0b11111)),
            (Input::Ttl, Some(61)),
            (Input::Tos, Some(0xb8)),
            (Input::FlowLabel, None),
            (Input::Identification, Some(0x1234)),
            (Input::FragmentOffset, None),
            (Input::IpOptions, Some(0)),
            (Input::PayloadLength, Some(11)),
            (Input::IcmpType, None),
            (Input::Vlan, None),
            (Input::MplsLabel, None),
            (Input::SourceMac, Some(0x0200_0000_0008)),
            (Input::DestinationMac, Some(0x0200_0000_0009)),
            (Input::EtherType, Some(0x0800)),
            (Input::IngressInterface, Some(3)),
            (Input::Vni, None),
            (Input::Direction, None),
            (Input::Gap, None),
        ],
    );
    assert_eq!(values.outer_addresses, [[0; 16]; 2]);
}

#[test]
fn an_acknowledgement_number_needs_the_flag() {
    let values = values(&ethernet(0x0800, &ipv4(6, &tcp(0x002, &[], b""))));
    expect(
        &values,
        &[
            (Input::TcpAcknowledgement, None),
            (Input::TcpOptions, Some(0)),
        ],
    );
}

#[test]
fn ipv6_carries_a_flow_label_and_fragments_their_place() {
    let whole = values(&ethernet(0x86dd, &ipv6(17, &udp(1, 2, &[0; 30]))));
    expect(
        &whole,
        &[
            (Input::FlowLabel, Some(0xc_def0)),
            (Input::Tos, Some(0xab)),
            (Input::Identification, None),
            (Input::FragmentOffset, None),
            (Input::IpOptions, None),
            (Input::PayloadLength, Some(30)),
            (Input::TcpWindow, None),
            (Input::EtherType, Some(0x86dd)),
        ],
    );
    let chain = extension(44, 0, &fragment(17, 0x0011, 0x8765_4321, &[0; 16]));
    let later = values(&ethernet(0x86dd, &ipv6(0, &chain)));
    expect(
        &later,
        &[
            (Input::Identification, Some(0x8765_4321)),
            (Input::FragmentOffset, Some(16)),
            (Input::PayloadLength, Some(16)),
        ],
    );
    let first = values(&ethernet(
        0x0800,
        &ipv4_fragment(17, 7, 0x2000, &udp(1, 2, &[0; 16])),
    ));
    expect(
        &first,
        &[
            (Input::FragmentOffset, Some(0)),
            (Input::PayloadLength, Some(16)),
        ],
    );
}

#[test]
fn ipv4_options_are_bits_of_their_numbers() {
    // Router alert is option 148: copied flag, class 0, number 20. Timestamp is 68: number 4.
    let options = [148, 4, 0, 0, 1, 68, 5, 0, 0, 0, 0, 0];
    let values = values(&ethernet(
        0x0800,
        &ipv4_with_options(17, &options, &udp(1, 2, b"")),
    ));
    expect(
        &values,
        &[(Input::IpOptions, Some(1 << 20 | 1 << 1 | 1 << 4 | 1))],
    );
    expect(&values, &[(Input::PayloadLength, Some(0))]);
}

#[test]
fn icmp_carries_type_and_code() {
    let values = values(&ethernet(
        0x0800,
        &ipv4(1, &join(&[&[11, 1, 0, 0, 0, 0, 0, 0], &[0; 28]])),
    ));
    let expected = [
        (Input::IcmpType, Some(11)),
        (Input::IcmpCode, Some(1)),
        (Input::PayloadLength, Some(28)),
    ];
    expect(&values, &expected);
}

#[test]
fn tags_and_labels_are_the_outermost_ones() {
    for payload in [inner(), ipv4(1, &[8, 0, 0, 0, 0, 0, 0, 0])] {
        let one = values(&ethernet(0x8100, &tag(0xa00c, 0x0800, &payload)));
        expect(
            &one,
            &[
                (Input::Vlan, Some(12)),
                (Input::VlanPriority, Some(5)),
                (Input::InnerVlan, None),
                (Input::EtherType, Some(0x0800)),
            ],
        );
    }
    let labels = [0xab, 0xcd, 0xe0, 64, 0, 1, 0x21, 64];
    let mpls = tag(3, 0x8847, &join(&[&labels, &inner()]));
    let three = values(&ethernet(0x88a8, &tag(1, 0x8100, &tag(2, 0x8100, &mpls))));
    expect(
        &three,
        &[
            (Input::Vlan, Some(1)),
            (Input::InnerVlan, Some(2)),
            (Input::MplsLabel, Some(0xabcde)),
            (Input::EtherType, Some(0x8847)),
        ],
    );
}

#[test]
fn only_needed_inputs_are_extracted() {
    use turboflow_packet::{LinkType, Parser, ParserConfig};
    let needs = [Input::Ttl].into_iter().collect();
    let mut parser = Parser::new(ParserConfig {
        needs,
        ..Default::default()
    });
    let bytes = ethernet(0x0800, &inner());
    let mut values = InputValues::default();
    values.set(Input::Vlan, 9);
    let frame = super::frame_of(&bytes, LinkType::Ethernet);
    parser.parse_with_inputs(&frame, &mut values).unwrap();
    for input in Input::ALL {
        assert_eq!(values.get(input), (input == Input::Ttl).then_some(61));
    }
}
