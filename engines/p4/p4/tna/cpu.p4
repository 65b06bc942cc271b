// SPDX-License-Identifier: Apache-2.0
// Egress, where reports are made into frames for the CPU. What stands before a frame is cut off on
// every other port. On the CPU's port it is the other way round: the chip's mirror makes a copy
// that ends behind the report, and this copy comes around to the CPU's port again.

// Mirror sessions, whose owner sets where they go (the CPU's port, one queue for all of them) and
// how long their copies are: 16 bytes and those of a record or status. Those of records may be
// coalescing sessions, which put several reports into one packet: then the length is the session's
// extract_len, and its internal_header begins with KIND_COALESCED. The open compiler does not pass
// on what a program says of coalescing: so an answer does not flush such a session, and may come
// before reports that wait for the session's timeout.
#ifndef RECORD_4_SESSION
#define RECORD_4_SESSION 1
#endif
#ifndef RECORD_6_SESSION
#define RECORD_6_SESSION 2
#endif
#ifndef ANSWER_SESSION
#define ANSWER_SESSION 3
#endif
const MirrorType_t MIRROR_CUT = 1;

struct cpu_headers_t {
    kind_t kind;
    outer_t outer;
}

struct cpu_metadata_t {
    MirrorId_t session;
}

parser EgressParser(packet_in packet, out cpu_headers_t hdr, out cpu_metadata_t md,
                    out egress_intrinsic_metadata_t output) {
    state start {
        packet.extract(output);
        transition select(packet.lookahead<bit<8>>()) {
            KIND_CUT: to_cpu;
            KIND_COALESCED: parse_coalesced;
            default: parse_kind;
        }
    }
    state parse_coalesced {
        packet.advance(128);
        transition to_cpu;
    }
    state to_cpu {
        hdr.outer.setValid();
        hdr.outer.destination = 0xffffffffffff;
        hdr.outer.source = 0x020000000001;
        hdr.outer.ether_type = LANE_ETHER_TYPE;
        transition accept;
    }
    state parse_kind {
        packet.extract(hdr.kind);
        transition select(output.egress_port, hdr.kind.kind) {
            (CPU_PORT, KIND_PUNTED): to_cpu;
            (CPU_PORT, _): accept;
            (_, KIND_PUNTED): strip_report;
            (_, KIND_RECORD_4): strip_record_4;
            (_, KIND_RECORD_6): strip_record_6;
            default: accept;
        }
    }
    state strip_report {
        packet.advance(8 * REPORT_BYTES);
        transition accept;
    }
    state strip_record_4 {
        packet.advance(8 * (REPORT_BYTES + RECORD_BYTES_4));
        transition accept;
    }
    state strip_record_6 {
        packet.advance(8 * (REPORT_BYTES + RECORD_BYTES_6));
        transition accept;
    }
}

control Egress(inout cpu_headers_t hdr, inout cpu_metadata_t md,
               in egress_intrinsic_metadata_t output,
               in egress_intrinsic_metadata_from_parser_t from_parser,
               inout egress_intrinsic_metadata_for_deparser_t deparser,
               inout egress_intrinsic_metadata_for_output_port_t port) {
    action cut(MirrorId_t session) {
        md.session = session;
        deparser.mirror_type = MIRROR_CUT;
        deparser.drop_ctl = 1;
    }
    table to_cpu {
        key = {
            hdr.kind.isValid(): exact;
            output.egress_port: exact;
            hdr.kind.kind: exact;
        }
        actions = { cut; NoAction; }
        const default_action = NoAction;
        const entries = {
            (true, CPU_PORT, KIND_RECORD_4): cut(RECORD_4_SESSION);
            (true, CPU_PORT, KIND_RECORD_6): cut(RECORD_6_SESSION);
            (true, CPU_PORT, KIND_ANSWER): cut(ANSWER_SESSION);
        }
        size = 4;
    }

    apply {
        to_cpu.apply();
    }
}

control EgressDeparser(packet_out packet, inout cpu_headers_t hdr, in cpu_metadata_t md,
                       in egress_intrinsic_metadata_for_deparser_t deparser) {
    Mirror() mirror;

    apply {
        if (deparser.mirror_type == MIRROR_CUT) {
            mirror.emit(md.session);
        }
        packet.emit(hdr.outer);
    }
}
