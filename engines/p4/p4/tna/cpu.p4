// SPDX-License-Identifier: Apache-2.0
// Egress, where reports are made into frames for the CPU. What stands before a frame is cut off on
// every other port. On the CPU's port it is the other way round: the chip's mirror makes a copy
// that ends behind the report, and this copy comes around to the CPU's port again. A coalescing
// mirror puts several of them into one packet.

// Mirror sessions, whose owner sets where they go (the CPU's port, one queue for all of them) and
// how long their copies are: REPORT_BYTES and the bytes of a record or status.
#ifdef COALESCE_SESSION
#define RECORD_4_SESSION COALESCE_SESSION
#define RECORD_6_SESSION COALESCE_SESSION
#define ANSWER_SESSION COALESCE_SESSION
#else
#define RECORD_4_SESSION 1
#define RECORD_6_SESSION 2
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
    action cut(MirrorId_t session, bit<8> length) {
        md.session = session;
        deparser.mirror_type = MIRROR_CUT;
        deparser.drop_ctl = 1;
#ifdef COALESCE_SESSION
#if __TARGET_TOFINO__ == 1
        deparser.coalesce_length = length[6:0];
#else
        deparser.mirror_coalesce_length = length;
#endif
#endif
    }
    // No report waits longer than the answer that tells how many there were.
    action cut_and_flush(MirrorId_t session, bit<8> length) {
        cut(session, length);
#ifdef COALESCE_SESSION
        deparser.coalesce_flush = 1;
#endif
    }
    table to_cpu {
        key = {
            hdr.kind.isValid(): exact;
            output.egress_port: exact;
            hdr.kind.kind: exact;
        }
        actions = { cut; cut_and_flush; NoAction; }
        const default_action = NoAction;
        const entries = {
            (true, CPU_PORT, KIND_RECORD_4): cut(RECORD_4_SESSION, REPORT_BYTES + RECORD_BYTES_4);
            (true, CPU_PORT, KIND_RECORD_6): cut(RECORD_6_SESSION, REPORT_BYTES + RECORD_BYTES_6);
            (true, CPU_PORT, KIND_ANSWER):
                cut_and_flush(ANSWER_SESSION, REPORT_BYTES + STATUS_BYTES);
        }
        size = 4;
    }

    apply {
        to_cpu.apply();
        if (hdr.outer.isValid()) {
            hdr.outer.destination = 0xffffffffffff;
            hdr.outer.source = 0x020000000001;
            hdr.outer.ether_type = LANE_ETHER_TYPE;
        }
        hdr.kind.setInvalid();
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
