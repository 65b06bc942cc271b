// SPDX-License-Identifier: Apache-2.0
// What of a frame is metered.

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
            hdr.ipv4.version_length: ternary;
            hdr.ports.isValid(): ternary;
            hdr.tcp.isValid(): ternary;
            md.ip_length: range;
            parser_error: ternary;
        }
        actions = { unknown; known; }
        const default_action = unknown;
#define TOO_SHORT_4(words) \
            (0x40 + words, false, false, 0 .. 4 * words - 1, _): unknown; \
            (0x40 + words, true, false, 0 .. 4 * words + 3, _): unknown; \
            (0x40 + words, true, true, 0 .. 4 * words + 13, _): unknown;
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
            // The only entry that meters: long enough, and no error of the parser.
            (_, _, _, _, 0): known;
        }
        size = 34;
    }
#ifdef WITH_V6
    // The hash can move bits that do not lie on the bounds of bytes.
    Hash<bit<8>>(HashAlgorithm_t.IDENTITY) class_bits;
    // The payload, so far. What would not have 16 bits with its header cannot have come, either.
    action metered_6() {
        md.ip_length = md.ip_length + 40;
        md.tos = class_bits.get({ hdr.ipv6.version_class_label[27:20] });
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
            parser_error: ternary;
        }
        actions = { unknown; metered_6; }
        const default_action = unknown;
#define TOO_SHORT_6(one, two, fragment, words) \
            (one, two, fragment, false, false, 0 .. 8 * words - 1, _): unknown; \
            (one, two, fragment, true, false, 0 .. 8 * words + 3, _): unknown; \
            (one, two, fragment, true, true, 0 .. 8 * words + 13, _): unknown;
        const entries = {
            (_, _, _, _, _, 0 .. 0, _): unknown;
            (_, _, _, _, _, 65496 .. 65535, _): unknown;
            (false, false, false, true, false, 0 .. 3, _): unknown;
            (false, false, false, true, true, 0 .. 13, _): unknown;
            TOO_SHORT_6(false, false, true, 1)
            TOO_SHORT_6(true, false, false, 1)
            TOO_SHORT_6(true, false, true, 2)
            TOO_SHORT_6(true, true, false, 2)
            TOO_SHORT_6(true, true, true, 3)
            // As above.
            (_, _, _, _, _, _, 0): metered_6;
        }
        size = 20;
    }
#endif

    apply {
        if (md.verdict == METERED) {
#ifdef WITH_V6
            if (hdr.ipv6.isValid()) {
                lengths_6.apply();
            } else {
                lengths_4.apply();
            }
#else
            lengths_4.apply();
#endif
        }
    }
}
