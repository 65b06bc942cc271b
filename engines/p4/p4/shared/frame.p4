// SPDX-License-Identifier: Apache-2.0
// The headers of frames. Fields are whole bytes of at most 64 bits, as DPDK's pipeline wants them.

#ifndef FRAME_P4
#define FRAME_P4

header ethernet_t {
    bit<48> destination;
    bit<48> source;
    bit<16> ether_type;
}

header tag_t {
    bit<16> tci;
    bit<16> ether_type;
}

header ipv4_t {
    bit<8> version_length;
    bit<8> tos;
    bit<16> total_length;
    bit<16> identification;
    bit<16> flags_offset;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    bit<32> source;
    bit<32> destination;
}

header ipv6_t {
    bit<32> version_class_label;
    bit<16> payload_length;
    bit<8> next;
    bit<8> hop_limit;
    bit<64> source_high;
    bit<64> source_low;
    bit<64> destination_high;
    bit<64> destination_low;
}

// IPv4 options.
header options_t {
    varbit<320> data;
}

// The first 8 bytes of an IPv6 extension header. `length` counts the words of 8 bytes behind them.
header extension_t {
    bit<8> next;
    bit<8> length;
    bit<48> rest;
}

header extension_rest_t {
    varbit<16320> data;
}

header fragment_t {
    bit<8> next;
    bit<8> reserved;
    bit<16> offset_flags;
    bit<32> identification;
}

header ports_t {
    bit<16> source;
    bit<16> destination;
}

header tcp_t {
    bit<32> sequence;
    bit<32> acknowledgement;
    bit<16> offset_flags;
}

#define ETHER_TYPE_IPV4 0x0800
#define ETHER_TYPE_IPV6 0x86dd
#define ETHER_TYPE_VLAN 0x8100
#define ETHER_TYPE_SERVICE_VLAN 0x88a8
#define ETHER_TYPE_OLD_SERVICE_VLAN 0x9100

#define PROTOCOL_HOP_BY_HOP 0
#define PROTOCOL_TCP 6
#define PROTOCOL_UDP 17
#define PROTOCOL_DCCP 33
#define PROTOCOL_ROUTING 43
#define PROTOCOL_FRAGMENT 44
#define PROTOCOL_AUTHENTICATION 51
#define PROTOCOL_DESTINATION 60
#define PROTOCOL_SCTP 132
#define PROTOCOL_UDP_LITE 136

#define TCP_FIN 0x01
#define TCP_SYN 0x02
#define TCP_RST 0x04
#define TCP_ACK 0x10

#endif
