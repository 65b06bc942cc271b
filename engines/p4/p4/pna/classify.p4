// SPDX-License-Identifier: Apache-2.0
// Which flow a frame belongs to, and what of it is metered.

control Classify(inout headers_t hdr, inout metadata_t md) {

    apply {
        if (hdr.ipv4.isValid()) {
            hdr.key.source_high = 0;
            hdr.key.destination_high = 0;
            hdr.key.source_low = (bit<64>) hdr.ipv4.source;
            hdr.key.destination_low = (bit<64>) hdr.ipv4.destination;
            hdr.key.rest = 4;
            md.ip_length = (bit<64>) hdr.ipv4.total_length;
            md.ttl = (bit<64>) hdr.ipv4.ttl;
            md.tos = (bit<64>) hdr.ipv4.tos;
        } else {
            hdr.key.source_high = hdr.ipv6.source_high;
            hdr.key.destination_high = hdr.ipv6.destination_high;
            hdr.key.source_low = hdr.ipv6.source_low;
            hdr.key.destination_low = hdr.ipv6.destination_low;
            hdr.key.rest = 6;
            md.ip_length = (bit<64>) hdr.ipv6.payload_length;
            // A length of 0 is told by someone else.
            if (md.ip_length != 0) {
                md.ip_length = md.ip_length + 40;
            }
            md.ttl = (bit<64>) hdr.ipv6.hop_limit;
            md.word = (bit<64>) hdr.ipv6.version_class_label;
            md.word = md.word >> 20;
            md.tos = md.word & 0xff;
        }
        md.word = (bit<64>) md.protocol;
        md.word = md.word << 8;
        hdr.key.rest = hdr.key.rest | md.word;
        md.tcp = 0;
        if (hdr.ports.isValid()) {
            md.word = (bit<64>) hdr.ports.source;
            md.word = md.word << 32;
            hdr.key.rest = hdr.key.rest | md.word;
            md.word = (bit<64>) hdr.ports.destination;
            md.word = md.word << 16;
            hdr.key.rest = hdr.key.rest | md.word;
        }
        if (hdr.tcp.isValid()) {
            md.tcp = (bit<64>) hdr.tcp.offset_flags;
            md.tcp = md.tcp & 0xfff;
            md.word = md.tcp & (TCP_SYN | TCP_ACK);
            if (md.word == TCP_SYN) {
                md.tcp = md.tcp | STARTS_WITH_SYN;
            }
        }
        // The headers must have been captured, and lie in the datagram.
        md.word = (bit<64>) hdr.lane.captured;
        if (md.end > md.word) {
            md.verdict = UNKNOWN;
        }
        md.word = md.ip_length + md.l2_length;
        if (md.end > md.word) {
            md.verdict = UNKNOWN;
        }
    }
}
