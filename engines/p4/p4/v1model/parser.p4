// SPDX-License-Identifier: Apache-2.0
// Reads a frame as far as it is certain. At the end of a frame, or of a stack of headers, the
// pipeline stops here and goes on with the control: the verdict is UNKNOWN then.

parser FrameParser(packet_in packet, out headers_t hdr, inout metadata_t md,
              inout standard_metadata_t standard) {

    state start {
        md.verdict = UNKNOWN;
        transition select(standard.ingress_port) {
            CPU_PORT: parse_outer;
            default: parse_ethernet;
        }
    }
    // A host sends frames of its own over any interface.
    state parse_outer {
        md.verdict = STRANGE;
        packet.extract(hdr.outer);
        transition select(hdr.outer.ether_type) {
            LANE_ETHER_TYPE: parse_lane;
            default: accept;
        }
    }
    state parse_lane {
        packet.extract(hdr.lane);
        md.verdict = COMMAND;
        transition select(hdr.lane.kind) {
            KIND_REPLAY: parse_replay;
            KIND_SETTINGS: parse_settings;
            default: accept;
        }
    }
    state parse_settings {
        packet.extract(hdr.settings);
        transition accept;
    }
    state parse_replay {
        md.verdict = UNKNOWN;
        transition parse_ethernet;
    }

    state parse_ethernet {
        packet.extract(hdr.ethernet);
        md.l2_length = 14;
        transition select(hdr.ethernet.ether_type) {
            ETHER_TYPE_IPV4: parse_ipv4;
            ETHER_TYPE_IPV6: parse_ipv6;
            ETHER_TYPE_VLAN: parse_tag;
            ETHER_TYPE_SERVICE_VLAN: parse_tag;
            ETHER_TYPE_OLD_SERVICE_VLAN: parse_tag;
            default: accept;
        }
    }
    state parse_tag {
        packet.extract(hdr.tags.next);
        md.l2_length = md.l2_length + 4;
        transition select(hdr.tags.last.ether_type) {
            ETHER_TYPE_IPV4: parse_ipv4;
            ETHER_TYPE_IPV6: parse_ipv6;
            ETHER_TYPE_VLAN: parse_tag;
            ETHER_TYPE_SERVICE_VLAN: parse_tag;
            ETHER_TYPE_OLD_SERVICE_VLAN: parse_tag;
            default: accept;
        }
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        md.end = md.l2_length + 20;
        md.protocol = hdr.ipv4.protocol;
        transition select(hdr.ipv4.version_length) {
            0x45: parse_ipv4_fragment;
            0x46 &&& 0xfe: parse_options;
            0x48 &&& 0xf8: parse_options;
            default: accept;
        }
    }
    state parse_options {
        bit<32> bytes = ((bit<32>) hdr.ipv4.version_length[3:0] << 2) - 20;
        packet.extract(hdr.options, bytes << 3);
        md.end = md.end + (bit<64>) bytes;
        transition parse_ipv4_fragment;
    }
    // Later fragments have no transport header.
    state parse_ipv4_fragment {
        transition select(hdr.ipv4.flags_offset) {
            0x0000 &&& 0x1fff: parse_transport;
            default: metered;
        }
    }

    state parse_ipv6 {
        packet.extract(hdr.ipv6);
        md.end = md.l2_length + 40;
        md.protocol = hdr.ipv6.next;
        transition select(hdr.ipv6.version_class_label) {
            0x60000000 &&& 0xf0000000: parse_next;
            default: accept;
        }
    }
    state parse_next {
        transition select(md.protocol) {
            PROTOCOL_HOP_BY_HOP: parse_extension_1;
            PROTOCOL_ROUTING: parse_extension_1;
            PROTOCOL_DESTINATION: parse_extension_1;
            PROTOCOL_FRAGMENT: parse_ipv6_fragment;
            PROTOCOL_AUTHENTICATION: accept;
            default: parse_transport;
        }
    }
    // No stack: bmv2 extracts no header of variable length into one.
#define PARSE_EXTENSION(number, more) \
    state parse_extension_##number { \
        packet.extract(hdr.extension_##number); \
        packet.extract(hdr.rest_##number, (bit<32>) hdr.extension_##number.length << 6); \
        md.end = md.end + ((bit<64>) hdr.extension_##number.length << 3) + 8; \
        md.protocol = hdr.extension_##number.next; \
        transition select(md.protocol) { \
            PROTOCOL_HOP_BY_HOP: more; \
            PROTOCOL_ROUTING: more; \
            PROTOCOL_DESTINATION: more; \
            PROTOCOL_FRAGMENT: parse_ipv6_fragment; \
            PROTOCOL_AUTHENTICATION: accept; \
            default: parse_transport; \
        } \
    }
    PARSE_EXTENSION(1, parse_extension_2)
    PARSE_EXTENSION(2, parse_extension_3)
    PARSE_EXTENSION(3, parse_extension_4)
    PARSE_EXTENSION(4, accept)
    state parse_ipv6_fragment {
        packet.extract(hdr.fragment);
        md.end = md.end + 8;
        md.protocol = hdr.fragment.next;
        transition select(hdr.fragment.offset_flags) {
            0x0000 &&& 0xfff8: behind_fragment;
            default: metered;
        }
    }
    state behind_fragment {
        transition select(md.protocol) {
            PROTOCOL_HOP_BY_HOP: accept;
            PROTOCOL_ROUTING: accept;
            PROTOCOL_DESTINATION: accept;
            PROTOCOL_FRAGMENT: accept;
            PROTOCOL_AUTHENTICATION: accept;
            default: parse_transport;
        }
    }

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
        packet.extract(hdr.ports);
        md.end = md.end + 4;
        transition metered;
    }
    state parse_tcp {
        packet.extract(hdr.ports);
        packet.extract(hdr.tcp);
        md.end = md.end + 14;
        transition metered;
    }
    // If it lies in the datagram.
    state metered {
        md.verdict = METERED;
        transition accept;
    }
}
