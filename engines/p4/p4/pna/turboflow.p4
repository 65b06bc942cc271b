// SPDX-License-Identifier: Apache-2.0
// TurboFlow's microflow generator for the Portable NIC Architecture, as DPDK's pipeline runs it.
// Every frame comes with a lane. A frame that pushes a record out becomes its report.

#include <core.p4>
#include <dpdk/pna.p4>

#include "headers.p4"
#include "parser.p4"
#include "classify.p4"
#include "microflows.p4"
#include "status.p4"

// The pipeline's side of the CPU port.
#define CPU_PORT ((PortId_t) 1)
// Where frames and commands end that nothing is reported of. `drop_packet` would free a buffer of
// DPDK's, and the frames of our runner are none.
#define NOWHERE ((PortId_t) 0)

control Before(in headers_t hdr, inout metadata_t md, in pna_pre_input_metadata_t input,
               inout pna_pre_output_metadata_t output) {
    apply { }
}

control Main(inout headers_t hdr, inout metadata_t md, in pna_main_input_metadata_t input,
             inout pna_main_output_metadata_t output) {
    Classify() classify;
    Microflows() microflows;
    Counts() counts;
    Register<bit<32>, bit<32>>(1, 0) sequence_reg;
    bit<32> sequence;

    apply {
        md.cause = 0;
        md.joins = 0;
        if (hdr.lane.kind != KIND_REPLAY) {
            md.verdict = COMMAND;
        } else if (md.verdict == METERED) {
            classify.apply(hdr, md);
        }
        if (md.verdict == UNKNOWN) {
            md.cause = CAUSE_PUNTED;
        } else {
            microflows.apply(hdr, md);
        }
        counts.apply(hdr, md);
        if (md.cause == 0) {
            send_to_port(NOWHERE);
        } else {
            sequence = sequence_reg.read(0);
            hdr.report.setValid();
            hdr.report.version = REPORT_VERSION;
            hdr.report.cause = md.cause;
            hdr.report.flags = REPORT_HAS_TRAILER | REPORT_HAS_LANE;
            hdr.report.family = 0;
            hdr.report.sequence = sequence;
            hdr.report.now_ns = hdr.lane.time_ns;
            if (md.cause < CAUSE_STATUS) {
                hdr.record.setValid();
            }
            sequence = sequence + 1;
            sequence_reg.write(0, sequence);
            send_to_port(CPU_PORT);
        }
    }
}

control Deparser(packet_out packet, in headers_t hdr, in metadata_t md,
                 in pna_main_output_metadata_t output) {
    apply {
        packet.emit(hdr.outer);
        packet.emit(hdr.report);
        packet.emit(hdr.record);
        packet.emit(hdr.status);
        packet.emit(hdr.lane);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.tag_1);
        packet.emit(hdr.tag_2);
        packet.emit(hdr.tag_3);
        packet.emit(hdr.tag_4);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.options);
        packet.emit(hdr.ipv6);
        packet.emit(hdr.extension_1);
        packet.emit(hdr.rest_1);
        packet.emit(hdr.extension_2);
        packet.emit(hdr.rest_2);
        packet.emit(hdr.fragment);
        packet.emit(hdr.ports);
        packet.emit(hdr.tcp);
    }
}

PNA_NIC(Parser(), Before(), Main(), Deparser()) main;
