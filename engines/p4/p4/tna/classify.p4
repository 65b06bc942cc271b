// SPDX-License-Identifier: Apache-2.0
// What of a frame is metered, and whether anything may join after it.

control Classify(inout headers_t hdr, inout metadata_t md, in bit<16> parser_error) {

    // The headers that were read must lie in the datagram. A length of 0 is told by someone else.
    action unknown() {
        md.verdict = UNKNOWN;
    }
#ifdef QUEUE_FEATURES
    action known() {
        md.verdict = md.known;
    }
#else
#define known NoAction
#endif
    table lengths_4 {
        key = {
            hdr.ipv4.version_length: exact;
            hdr.ports.isValid(): exact;
            hdr.tcp.isValid(): exact;
            md.ip_length: range;
        }
        actions = { unknown; known; }
        const default_action = known;
#define TOO_SHORT_4(words) \
            (0x40 + words, false, false, 0 .. 4 * words - 1): unknown; \
            (0x40 + words, true, false, 0 .. 4 * words + 3): unknown; \
            (0x40 + words, true, true, 0 .. 4 * words + 13): unknown;
        const entries = {
            TOO_SHORT_4(5)
            TOO_SHORT_4(6)
            TOO_SHORT_4(7)
            TOO_SHORT_4(8)
            TOO_SHORT_4(9)
            TOO_SHORT_4(10)
            TOO_SHORT_4(11)
            TOO_SHORT_4(12)
            TOO_SHORT_4(13)
            TOO_SHORT_4(14)
            TOO_SHORT_4(15)
        }
        size = 33;
    }
#ifdef WITH_V6
    // The payload, so far. What would not have 16 bits with its header cannot have come, either.
    action metered_6() {
        md.ip_length = md.ip_length + 40;
        md.slot[SLOT_BITS:SLOT_BITS] = 1;
#ifdef QUEUE_FEATURES
        known();
#endif
    }
    table lengths_6 {
        key = {
            hdr.extension_1.isValid(): ternary;
            hdr.extension_2.isValid(): ternary;
            hdr.fragment.isValid(): ternary;
            hdr.ports.isValid(): ternary;
            hdr.tcp.isValid(): ternary;
            md.ip_length: range;
        }
        actions = { unknown; metered_6; }
        const default_action = metered_6;
#define TOO_SHORT_6(one, two, fragment, words) \
            (one, two, fragment, false, false, 0 .. 8 * words - 1): unknown; \
            (one, two, fragment, true, false, 0 .. 8 * words + 3): unknown; \
            (one, two, fragment, true, true, 0 .. 8 * words + 13): unknown;
        const entries = {
            (_, _, _, _, _, 0 .. 0): unknown;
            (_, _, _, _, _, 65496 .. 65535): unknown;
            (false, false, false, true, false, 0 .. 3): unknown;
            (false, false, false, true, true, 0 .. 13): unknown;
            TOO_SHORT_6(false, false, true, 1)
            TOO_SHORT_6(true, false, false, 1)
            TOO_SHORT_6(true, false, true, 2)
            TOO_SHORT_6(true, true, false, 2)
            TOO_SHORT_6(true, true, true, 3)
        }
        size = 19;
    }
    // The hash can move bits that do not lie on the bounds of bytes.
    Hash<bit<8>>(HashAlgorithm_t.IDENTITY) class_bits;
    action traffic_class() {
        md.tos = class_bits.get({ hdr.ipv6.version_class_label[27:20] });
    }
    table classes {
        key = { hdr.ipv6.isValid(): exact; }
        actions = { traffic_class; NoAction; }
        const default_action = NoAction;
        const entries = {
            true: traffic_class();
        }
        size = 1;
    }
#endif

    // A SYN without ACK begins a record; nothing joins after FIN or RST.
    action no_tcp() {
        md.state = STATE_OPEN;
        md.tcp = 0;
    }
    action tcp_data() {
        md.state = STATE_OPEN;
        md.tcp = hdr.tcp.offset_flags & 0x0fff;
    }
    action tcp_end() {
        md.state = STATE_CLOSED;
        md.tcp = hdr.tcp.offset_flags & 0x0fff;
    }
    action tcp_start() {
        md.state = STATE_OPEN;
        md.tcp[15:12] = STARTS_WITH_SYN >> 12;
        md.tcp[11:0] = hdr.tcp.offset_flags[11:0];
    }
    action tcp_start_and_end() {
        md.state = STATE_CLOSED;
        md.tcp[15:12] = STARTS_WITH_SYN >> 12;
        md.tcp[11:0] = hdr.tcp.offset_flags[11:0];
    }
    table ends {
        key = {
            hdr.tcp.isValid(): exact;
            hdr.tcp.offset_flags: ternary;
        }
        actions = { no_tcp; tcp_data; tcp_end; tcp_start; tcp_start_and_end; }
        const default_action = no_tcp;
        const entries = {
            (true, (TCP_SYN | TCP_FIN) &&& (TCP_SYN | TCP_ACK | TCP_FIN)): tcp_start_and_end;
            (true, (TCP_SYN | TCP_RST) &&& (TCP_SYN | TCP_ACK | TCP_RST)): tcp_start_and_end;
            (true, TCP_SYN &&& (TCP_SYN | TCP_ACK)): tcp_start;
            (true, TCP_FIN &&& TCP_FIN): tcp_end;
            (true, TCP_RST &&& TCP_RST): tcp_end;
            (true, _): tcp_data;
        }
        size = 8;
    }

    apply {
        if (md.verdict == METERED) {
            ends.apply();
            if (parser_error != 0) {
                unknown();
            } else if (hdr.ipv4.isValid()) {
                lengths_4.apply();
            }
#ifdef WITH_V6
            else {
                lengths_6.apply();
                classes.apply();
            }
#endif
        }
    }
}
