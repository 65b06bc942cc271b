// SPDX-License-Identifier: Apache-2.0
// When a frame came, which flow it belongs to, and what of it is metered.

// Of a frame: by its lane, or by the pipeline's clock.
control Arrival(in headers_t hdr, inout metadata_t md, in standard_metadata_t standard) {
    register<bit<64>>(1) time_offset_reg;
    register<bit<32>>(1) meters_reg;

    apply {
        if (hdr.settings.isValid()) {
            time_offset_reg.write(0, hdr.settings.time_offset_ns);
            meters_reg.write(0, hdr.settings.meters);
        }
        bit<64> time_offset_ns;
        time_offset_reg.read(time_offset_ns, 0);
        // The pipeline counts microseconds from its start. A copy has the time when its frame left.
        if (standard.instance_type != RECIRCULATED) {
            md.now_ns = ((bit<64>) standard.ingress_global_timestamp) * 1000;
        }
        md.now_ns = md.now_ns + time_offset_ns;
        if (hdr.lane.isValid()) {
            md.time_ns = hdr.lane.time_ns;
            md.cell = hdr.lane.cell;
            md.flags = hdr.lane.flags;
            md.captured = (bit<64>) hdr.lane.captured;
            md.frame_length = (bit<64>) hdr.lane.frame_length;
        } else {
            md.time_ns = md.now_ns;
            md.cell = ((bit<32>) (md.now_ns >> CELL_SHIFT) + 1) & 0x7fffffff;
            md.flags = FLAG_CUT_AT_ENDS;
            md.captured = (bit<64>) standard.packet_length;
            md.frame_length = (bit<64>) standard.packet_length;
            bit<32> meters;
            meters_reg.read(meters, 0);
            if (meters == 0) {
                md.verdict = STRANGE;
            }
        }
    }
}

control Classify(in headers_t hdr, inout metadata_t md) {
    apply {
        if (hdr.ipv4.isValid()) {
            md.key.source_high = 0;
            md.key.destination_high = 0;
            md.key.source_low = (bit<64>) hdr.ipv4.source;
            md.key.destination_low = (bit<64>) hdr.ipv4.destination;
            md.key.rest = 4;
            md.ip_length = (bit<64>) hdr.ipv4.total_length;
            md.ttl = (bit<64>) hdr.ipv4.ttl;
            md.tos = (bit<64>) hdr.ipv4.tos;
        } else {
            md.key.source_high = hdr.ipv6.source_high;
            md.key.destination_high = hdr.ipv6.destination_high;
            md.key.source_low = hdr.ipv6.source_low;
            md.key.destination_low = hdr.ipv6.destination_low;
            md.key.rest = 6;
            md.ip_length = (bit<64>) hdr.ipv6.payload_length;
            // A length of 0 is told by someone else.
            if (md.ip_length != 0) {
                md.ip_length = md.ip_length + 40;
            }
            md.ttl = (bit<64>) hdr.ipv6.hop_limit;
            md.tos = (bit<64>) hdr.ipv6.version_class_label[27:20];
        }
        md.key.rest = md.key.rest | ((bit<64>) md.protocol << 8);
        md.tcp = 0;
        if (hdr.ports.isValid()) {
            md.key.rest = md.key.rest | ((bit<64>) hdr.ports.source << 32)
                | ((bit<64>) hdr.ports.destination << 16);
        }
        if (hdr.tcp.isValid()) {
            md.tcp = (bit<64>) hdr.tcp.offset_flags[11:0];
            if (md.tcp & (TCP_SYN | TCP_ACK) == TCP_SYN) {
                md.tcp = md.tcp | STARTS_WITH_SYN;
            }
        }
        // The headers must have been captured, and lie in the datagram.
        if (md.end > md.captured || md.end > md.ip_length + md.l2_length) {
            md.verdict = UNKNOWN;
        }
    }
}
