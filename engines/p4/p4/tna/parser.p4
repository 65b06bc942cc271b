// SPDX-License-Identifier: Apache-2.0
// Reads a frame as far as it is certain. Whatever is read is put before the frame's rest again, so
// that the frame goes on as it came. The lengths are checked in classify.p4.

parser Frame(packet_in packet, inout headers_t hdr, inout metadata_t md) {

    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHER_TYPE_IPV4: parse_ipv4;
            ETHER_TYPE_IPV6: parse_ipv6;
            ETHER_TYPE_VLAN: parse_tag_1;
            ETHER_TYPE_SERVICE_VLAN: parse_tag_1;
            ETHER_TYPE_OLD_SERVICE_VLAN: parse_tag_1;
            default: accept;
        }
    }
#define PARSE_TAG(number, more) \
    state parse_tag_##number { \
        packet.extract(hdr.tag_##number); \
        transition select(hdr.tag_##number.ether_type) { \
            ETHER_TYPE_IPV4: parse_ipv4; \
            ETHER_TYPE_IPV6: parse_ipv6; \
            ETHER_TYPE_VLAN: more; \
            ETHER_TYPE_SERVICE_VLAN: more; \
            ETHER_TYPE_OLD_SERVICE_VLAN: more; \
            default: accept; \
        } \
    }
    PARSE_TAG(1, parse_tag_2)
    PARSE_TAG(2, parse_tag_3)
    PARSE_TAG(3, parse_tag_4)
    PARSE_TAG(4, accept)

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        md.ip_length = hdr.ipv4.total_length;
        md.ttl = hdr.ipv4.ttl;
        md.tos = hdr.ipv4.tos;
        md.protocol = hdr.ipv4.protocol;
        md.key.source = hdr.ipv4.source;
        md.key.destination = hdr.ipv4.destination;
        transition select(hdr.ipv4.version_length) {
            0x45: parse_ipv4_fragment;
            0x46: parse_option_1;
            0x47: parse_option_2;
            0x48: parse_option_3;
            0x49: parse_option_4;
            0x4a: parse_option_5;
            0x4b: parse_option_6;
            0x4c: parse_option_7;
            0x4d: parse_option_8;
            0x4e: parse_option_9;
            0x4f: parse_option_10;
            default: accept;
        }
    }
#define PARSE_OPTION(number, more) \
    state parse_option_##number { packet.extract(hdr.option_##number); transition more; }
    PARSE_OPTION(10, parse_option_9)
    PARSE_OPTION(9, parse_option_8)
    PARSE_OPTION(8, parse_option_7)
    PARSE_OPTION(7, parse_option_6)
    PARSE_OPTION(6, parse_option_5)
    PARSE_OPTION(5, parse_option_4)
    PARSE_OPTION(4, parse_option_3)
    PARSE_OPTION(3, parse_option_2)
    PARSE_OPTION(2, parse_option_1)
    PARSE_OPTION(1, parse_ipv4_fragment)
    // Later fragments have no transport header.
    state parse_ipv4_fragment {
        transition select(hdr.ipv4.flags_offset) {
            0x0000 &&& 0x1fff: parse_transport;
            default: metered;
        }
    }

#ifdef WITH_V6
    // A field can be written once, because Tofino 1 does not clear what was there before: so the
    // next header is looked at before a header is read.
    state parse_ipv6 {
        transition select(packet.lookahead<bit<8>>(),
                          packet.lookahead<ipv6_t>().next) {
            (0x60 &&& 0xf0, PROTOCOL_HOP_BY_HOP): ipv6_and_extension;
            (0x60 &&& 0xf0, PROTOCOL_ROUTING): ipv6_and_extension;
            (0x60 &&& 0xf0, PROTOCOL_DESTINATION): ipv6_and_extension;
            (0x60 &&& 0xf0, PROTOCOL_FRAGMENT): ipv6_and_fragment;
            (0x60 &&& 0xf0, PROTOCOL_AUTHENTICATION): accept;
            (0x60 &&& 0xf0, _): ipv6_and_transport;
            default: accept;
        }
    }
#define PARSE_IPV6 \
        packet.extract(hdr.ipv6); \
        md.ip_length = hdr.ipv6.payload_length; \
        md.ttl = hdr.ipv6.hop_limit; \
        md.key.source_0 = hdr.ipv6.source_high[63:32]; \
        md.key.source_1 = hdr.ipv6.source_high[31:0]; \
        md.key.source_2 = hdr.ipv6.source_low[63:32]; \
        md.key.source = hdr.ipv6.source_low[31:0]; \
        md.key.destination_0 = hdr.ipv6.destination_high[63:32]; \
        md.key.destination_1 = hdr.ipv6.destination_high[31:0]; \
        md.key.destination_2 = hdr.ipv6.destination_low[63:32]; \
        md.key.destination = hdr.ipv6.destination_low[31:0];
    state ipv6_and_extension {
        PARSE_IPV6
        transition parse_extension_1;
    }
    state ipv6_and_fragment {
        PARSE_IPV6
        transition parse_ipv6_fragment;
    }
    state ipv6_and_transport {
        PARSE_IPV6
        md.protocol = hdr.ipv6.next;
        transition parse_transport;
    }
    // Extension headers of 8 bytes, which are the most of those that are seen. Longer ones would
    // take room that the chip has for few.
#define PARSE_EXTENSION(number, more) \
    state parse_extension_##number { \
        transition select(packet.lookahead<extension_t>().length, \
                          packet.lookahead<extension_t>().next) { \
            (0, PROTOCOL_HOP_BY_HOP): more; \
            (0, PROTOCOL_ROUTING): more; \
            (0, PROTOCOL_DESTINATION): more; \
            (0, PROTOCOL_FRAGMENT): extension_##number##_and_fragment; \
            (0, PROTOCOL_AUTHENTICATION): accept; \
            (0, _): extension_##number##_and_transport; \
            default: accept; \
        } \
    } \
    state extension_##number##_and_fragment { \
        packet.extract(hdr.extension_##number); \
        transition parse_ipv6_fragment; \
    } \
    state extension_##number##_and_transport { \
        packet.extract(hdr.extension_##number); \
        md.protocol = hdr.extension_##number.next; \
        transition parse_transport; \
    }
    PARSE_EXTENSION(1, extension_1_and_2)
    PARSE_EXTENSION(2, accept)
    state extension_1_and_2 {
        packet.extract(hdr.extension_1);
        transition parse_extension_2;
    }
    state parse_ipv6_fragment {
        transition select(packet.lookahead<fragment_t>().offset_flags,
                          packet.lookahead<fragment_t>().next) {
            (0x0000 &&& 0xfff8, PROTOCOL_HOP_BY_HOP): accept;
            (0x0000 &&& 0xfff8, PROTOCOL_ROUTING): accept;
            (0x0000 &&& 0xfff8, PROTOCOL_DESTINATION): accept;
            (0x0000 &&& 0xfff8, PROTOCOL_FRAGMENT): accept;
            (0x0000 &&& 0xfff8, PROTOCOL_AUTHENTICATION): accept;
            (0x0000 &&& 0xfff8, _): fragment_and_transport;
            default: later_fragment;
        }
    }
    state fragment_and_transport {
        packet.extract(hdr.fragment);
        md.protocol = hdr.fragment.next;
        transition parse_transport;
    }
    state later_fragment {
        packet.extract(hdr.fragment);
        md.protocol = hdr.fragment.next;
        transition metered;
    }
#else
    // Goes to the CPU.
    state parse_ipv6 {
        transition accept;
    }
#endif

    state parse_transport {
        transition select(md.protocol) {
            PROTOCOL_TCP: parse_tcp;
            PROTOCOL_UDP: parse_ports;
            PROTOCOL_DCCP: parse_ports;
            PROTOCOL_SCTP: parse_ports;
            PROTOCOL_UDP_LITE: parse_ports;
            default: metered;
        }
    }
    state parse_ports {
        md.key.ports = packet.lookahead<bit<32>>();
        packet.extract(hdr.ports);
        transition metered;
    }
    state parse_tcp {
        md.key.ports = packet.lookahead<bit<32>>();
        packet.extract(hdr.ports);
        packet.extract(hdr.tcp);
        transition metered;
    }
    // If all of it was there, and lies in the datagram.
    state metered {
        md.verdict = METERED;
        transition accept;
    }
}

#ifdef WITH_V6
#define NO_HIGH_KEY \
        md.key.source_0 = 0; \
        md.key.source_1 = 0; \
        md.key.source_2 = 0; \
        md.key.destination_0 = 0; \
        md.key.destination_1 = 0; \
        md.key.destination_2 = 0;
#else
#define NO_HIGH_KEY
#endif
#ifdef QUEUE_FEATURES
#define NO_COPY md.copies = 0;
#else
#define NO_COPY
#endif
// Sweeps need `low` and `high`.
#define BEGIN_METADATA \
        md.verdict = UNKNOWN; \
        md.step = STEP_NONE; \
        md.cause = 0; \
        md.low = 0; \
        md.protocol = 0; \
        md.slot = 0; \
        md.high = 0x0000ffff; \
        md.key.ports = 0; \
        NO_COPY \
        NO_HIGH_KEY

#ifdef WITH_V6
#define ABILITIES ABILITY_WRAPS
#else
#define ABILITIES (ABILITY_WRAPS + ABILITY_NO_V6)
#endif

parser Command(packet_in packet, inout headers_t hdr, inout metadata_t md) {

    // The answer has an outer header of its own.
    state start {
        packet.advance(112);
        packet.extract(hdr.lane);
        md.slot = hdr.lane.argument[15:0];
        transition select(hdr.lane.kind, hdr.lane.flags) {
            (KIND_SWEEP, FLAG_SLOT &&& (FLAG_SLOT | FLAG_ALL)): sweep;
            (KIND_SWEEP, (FLAG_SLOT | FLAG_ALL) &&& (FLAG_SLOT | FLAG_ALL)): sweep_all;
            (KIND_STATUS, _): status;
            (KIND_SETTINGS, _): parse_settings;
            default: ignored;
        }
    }
    state sweep {
        md.verdict = SWEEP;
        transition accept;
    }
    state sweep_all {
        md.verdict = SWEEP_ALL;
        transition accept;
    }
    state status {
        md.verdict = STATUS;
        transition answer;
    }
    state parse_settings {
        packet.extract(hdr.settings);
        md.verdict = SETTINGS;
        transition answer;
    }
    // Here, because the compiler then knows that no frame needs room beside the status.
    state answer {
        hdr.status.setValid();
        hdr.status.layout_id = LAYOUT_ID;
        hdr.status.slots = SLOTS;
        hdr.status.abilities = ABILITIES;
        hdr.status.word_bits = 32;
        hdr.status.cell_shift = CELL_SHIFT;
        hdr.status.listed = 0;
        hdr.status.packets = 0;
        hdr.status.bytes = 0;
        hdr.status.too_long = 0;
        hdr.status.frame_bytes = 0;
        hdr.status.punted = 0;
        hdr.status.evicted = 0;
        hdr.status.sweeps = 0;
        transition accept;
    }
    // This program takes no frames by the lane and keeps no list.
    state ignored {
        md.verdict = IGNORED;
        transition accept;
    }
}

#ifndef QUEUE_FEATURES
parser IngressParser(packet_in packet, out headers_t hdr, out metadata_t md,
                     out ingress_intrinsic_metadata_t input) {
    Frame() frame;
    Command() command;

    state start {
        packet.extract(input);
        packet.advance(PORT_METADATA_SIZE);
        hdr.kind.setValid();
        hdr.kind.kind = KIND_FRAME;
        BEGIN_METADATA
        transition select(input.ingress_port) {
            CPU_PORT: parse_cpu;
            GENERATOR_PORT &&& 0x7f: parse_timer;
            default: parse_frame;
        }
    }
    // Each packet of the generator sweeps one slot. Nothing else may come to its port.
    state parse_timer {
        packet.extract(hdr.timer);
        md.slot = hdr.timer.packet_id;
        md.verdict = SWEEP;
        transition accept;
    }
    state parse_cpu {
        transition select(packet.lookahead<outer_t>().ether_type) {
            LANE_ETHER_TYPE: parse_command;
            default: parse_frame;
        }
    }
    state parse_command {
        command.apply(packet, hdr, md);
        transition accept;
    }
    state parse_frame {
        frame.apply(packet, hdr, md);
        transition accept;
    }
}
#endif
