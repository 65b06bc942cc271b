// SPDX-License-Identifier: Apache-2.0
// TurboFlow's microflow generator for bmv2's simple_switch. The CPU port carries lanes and reports.
// Every other port carries plain frames, which the pipeline's clock gives their time.
//
// A frame that pushes a record out becomes its report, and no frame is passed on: a tap.
//
// -DINLINE: every frame is passed on, and a clone becomes the report. The clone session has to be
// set, once: `mirroring_add 100 64` in simple_switch_CLI.
//
// -DBATCH, of a tap: three records leave in one frame.
//
// -DBEHIND_QUEUE: every frame is passed on, and a copy of what leaves by a port is metered, with
// what the frame met in the queue. The table stays in ingress, which is one thread: ports share
// those of egress, where a record could be torn. The copies take the way through the CPU port's
// queue: `mirroring_add 101 64` and `set_queue_depth 65536 64`.

#include <core.p4>
#include <v1model.p4>

#ifndef CPU_PORT
#define CPU_PORT 64
#endif
#define CLONE_SESSION 100
#define COPY_SESSION 101

// Instance types of bmv2.
#define EGRESS_CLONE 2
#define RECIRCULATED 4

#include "headers.p4"
#include "parser.p4"
#include "classify.p4"
#include "microflows.p4"
#include "status.p4"
#ifdef BATCH
#if defined(INLINE) || defined(BEHIND_QUEUE)
#error "a copy of a frame that goes on carries one record: -DBATCH is for a tap"
#endif
#include "batch.p4"
#endif

control NoChecksum(inout headers_t hdr, inout metadata_t md) {
    apply { }
}

#if defined(INLINE) || defined(BEHIND_QUEUE)
// Where frames go on: a stub, to be replaced by the switch's own forwarding. Without entries, what
// comes in by an even port leaves by the next one, and the other way round.
control Forward(inout standard_metadata_t standard) {
    action to_port(bit<9> port) {
        standard.egress_spec = port;
    }
    action to_neighbour() {
        standard.egress_spec = standard.ingress_port ^ 1;
    }
    table ports {
        key = { standard.ingress_port: exact; }
        actions = { to_port; to_neighbour; }
        default_action = to_neighbour();
    }
    apply {
        ports.apply();
    }
}
#endif

control Meter(inout headers_t hdr, inout metadata_t md, inout standard_metadata_t standard) {
    Arrival() arrival;
    Classify() classify;
    Microflows() microflows;
    Counts() counts;
#ifdef BATCH
    Batch() batch;
#endif
#if defined(INLINE) || defined(BEHIND_QUEUE)
    Forward() forward;
#endif
    register<bit<32>>(1) sequence_reg;

    action number() {
        sequence_reg.read(md.sequence, 0);
        sequence_reg.write(0, md.sequence + 1);
    }

    apply {
#ifdef BEHIND_QUEUE
        if (standard.ingress_port != CPU_PORT && standard.instance_type != RECIRCULATED) {
            forward.apply(standard);
            return;
        }
#endif
        if (md.verdict != STRANGE) {
            arrival.apply(hdr, md, standard);
        }
        if (md.verdict != STRANGE) {
            if (md.verdict == METERED) {
                classify.apply(hdr, md);
            }
            if (md.verdict == UNKNOWN) {
                md.cause = CAUSE_PUNTED;
            } else {
                microflows.apply(hdr, md);
            }
            counts.apply(hdr, md);
            if (md.cause != 0) {
                number();
            }
#ifdef BATCH
            batch.apply(hdr, md);
#endif
        }
#ifdef INLINE
        if (standard.ingress_port != CPU_PORT) {
            if (md.cause != 0) {
                clone_preserving_field_list(CloneType.I2E, CLONE_SESSION, OF_REPORT);
            }
            forward.apply(standard);
        } else
#endif
        if (md.cause != 0) {
            standard.egress_spec = CPU_PORT;
        } else {
            mark_to_drop(standard);
        }
    }
}

// Makes a report of what leaves by the CPU port, and a copy of what leaves by others.
control Report(inout headers_t hdr, inout metadata_t md, inout standard_metadata_t standard) {

    action report(bit<8> flags) {
        hdr.outer.setValid();
        hdr.outer.destination = 0x020000000000;
        hdr.outer.source = 0x020000000000;
        hdr.outer.ether_type = LANE_ETHER_TYPE;
        hdr.report.setValid();
        hdr.report.version = REPORT_VERSION;
        hdr.report.cause = md.cause;
        hdr.report.flags = flags;
        hdr.report.family = 0;
        hdr.report.sequence = md.sequence;
        hdr.report.now_ns = md.now_ns;
    }

    action record() {
        hdr.record.setValid();
        hdr.record.source_high = md.resident.source_high;
        hdr.record.source_low = md.resident.source_low;
        hdr.record.destination_high = md.resident.destination_high;
        hdr.record.destination_low = md.resident.destination_low;
        hdr.record.rest = md.resident.rest;
        hdr.record.packets = md.resident.packets;
        hdr.record.bytes = md.resident.bytes;
        hdr.record.first_ns = md.resident.first_ns;
        hdr.record.last_ns = md.resident.last_ns;
        hdr.record.tcp = md.resident.tcp;
#define COPY(op, name, input) hdr.record.name = md.resident.name;
        RECORD_FEATURES(COPY)
    }

#define OUTER_BYTES 14
#define REPORT_BYTES 16
#define STATUS_BYTES 88
#define COUNT_WORD(op, name, input) + 8
#define RECORD_BYTES (10 * 8 RECORD_FEATURES(COUNT_WORD))
#ifdef BATCH
#if OUTER_BYTES + (WAITING_MOST + 1) * (REPORT_BYTES + RECORD_BYTES) > 512
#error "bmv2 aborts if a frame grows by more than 512 bytes: no -DBATCH with so many features"
#endif
#define BYTES_BEFORE (OUTER_BYTES + md.waiting * (REPORT_BYTES + RECORD_BYTES))
#else
#define BYTES_BEFORE OUTER_BYTES
#endif

    apply {
#ifdef BEHIND_QUEUE
        if (standard.instance_type == EGRESS_CLONE) {
            recirculate_preserving_field_list(OF_COPY);
        } else if (standard.egress_port != CPU_PORT) {
            md.queue_depth = (bit<64>) standard.enq_qdepth;
            md.hop_latency = ((bit<64>) standard.deq_timedelta) * 1000;
            md.egress_interface = (bit<64>) standard.egress_port;
            md.now_ns = ((bit<64>) standard.egress_global_timestamp) * 1000;
            clone_preserving_field_list(CloneType.E2E, COPY_SESSION, OF_COPY);
        }
#endif
        if (standard.egress_port == CPU_PORT && md.cause != 0) {
            if (md.cause < CAUSE_STATUS) {
                report(0);
                record();
                truncate(BYTES_BEFORE + REPORT_BYTES + RECORD_BYTES);
            } else if (md.cause == CAUSE_STATUS) {
                report(0);
                truncate(BYTES_BEFORE + REPORT_BYTES + STATUS_BYTES);
            } else if (hdr.lane.isValid()) {
                report(REPORT_HAS_LANE);
            } else {
                report(0);
            }
        }
    }
}

control FrameDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.outer);
#ifdef BATCH
#define EMIT_WAITING(at) packet.emit(hdr.waiting_report_##at); packet.emit(hdr.waiting_##at);
        FOR_ALL_WAITING(EMIT_WAITING)
#endif
        packet.emit(hdr.report);
        packet.emit(hdr.record);
        packet.emit(hdr.status);
        packet.emit(hdr.lane);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.tags);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.options);
        packet.emit(hdr.ipv6);
        packet.emit(hdr.extension_1);
        packet.emit(hdr.rest_1);
        packet.emit(hdr.extension_2);
        packet.emit(hdr.rest_2);
        packet.emit(hdr.extension_3);
        packet.emit(hdr.rest_3);
        packet.emit(hdr.extension_4);
        packet.emit(hdr.rest_4);
        packet.emit(hdr.fragment);
        packet.emit(hdr.ports);
        packet.emit(hdr.tcp);
    }
}

V1Switch(FrameParser(), NoChecksum(), Meter(), Report(), NoChecksum(), FrameDeparser()) main;
