// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What a packet may have: `Input` in crates/record/src/input.rs, name by name and in its order (tests/values.rs), and behind them what
// keys are made of besides.
#pragma once

enum value {
    IP_LENGTH,
    FRAME_LENGTH,
    TIMESTAMP,
    TCP_FLAGS,
    TCP_WINDOW,
    TCP_SEQUENCE,
    TCP_ACKNOWLEDGEMENT,
    TCP_OPTIONS,
    TTL,
    TOS,
    FLOW_LABEL,
    IDENTIFICATION,
    FRAGMENT_OFFSET,
    IP_OPTIONS,
    PAYLOAD_LENGTH,
    ICMP_TYPE,
    ICMP_CODE,
    VLAN,
    INNER_VLAN,
    VLAN_PRIORITY,
    MPLS_LABEL,
    SOURCE_MAC,
    DESTINATION_MAC,
    ETHER_TYPE,
    VNI,
    TEID,
    GRE_KEY,
    INGRESS_INTERFACE,
    EGRESS_INTERFACE,
    QUEUE_DEPTH,
    HOP_LATENCY,
    DIRECTION,
    GAP,
    RECEIVE_QUEUE,
    HARDWARE_TIMESTAMP,
    INPUT_COUNT,
    // Every packet has these. An address is two values, an IPv4 address the first.
    FIRST_OF_KEY = 48,
    SOURCE_PORT = FIRST_OF_KEY,
    DESTINATION_PORT,
    PROTOCOL,
    FAMILY,
    SOURCE_ADDRESS,
    DESTINATION_ADDRESS = SOURCE_ADDRESS + 2,
};

// As many as a word has bits.
#define VALUES 64
