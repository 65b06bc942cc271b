// SPDX-License-Identifier: Apache-2.0
// The table in ingress, which sees every frame once and first.

control Ingress(inout headers_t hdr, inout metadata_t md, in ingress_intrinsic_metadata_t input,
                in ingress_intrinsic_metadata_from_parser_t from_parser,
                inout ingress_intrinsic_metadata_for_deparser_t deparser,
                inout ingress_intrinsic_metadata_for_tm_t tm) {
    Classify() classify;
    Counts() counts;
    Microflows() microflows;

    // To be replaced by whatever the switch is for. Frames must not be forwarded to the CPU's port:
    // what is to be reported of them goes there besides.
    action forward(PortId_t port) {
        tm.ucast_egress_port = port;
    }
    action drop() {
        deparser.drop_ctl[0:0] = 1;
    }
    table forwarding {
        key = { input.ingress_port: exact; }
        actions = { forward; drop; }
        const default_action = drop;
        size = 512;
    }

    // One number for all reports, so that a gap tells how many were lost.
    Register<bit<32>, bit<1>>(1, 0) sequence_reg;
    RegisterAction<bit<32>, bit<1>, bit<32>>(sequence_reg) next_sequence = {
        void apply(inout bit<32> value, out bit<32> sequence) {
            sequence = value;
            value = value + 1;
        }
    };
    action report(bit<8> kind, bit<8> cause, bit<8> family, bit<8> flags) {
        hdr.kind.kind = kind;
        hdr.report.setValid();
        hdr.report.version = REPORT_VERSION;
        hdr.report.cause = cause;
        hdr.report.flags = flags;
        hdr.report.family = family;
        hdr.report.sequence = next_sequence.execute(0);
        hdr.report.now_ns[63:48] = 0;
        hdr.report.now_ns[47:0] = from_parser.global_tstamp;
    }
    action record() {
        hdr.source.setValid();
        hdr.record.setValid();
        hdr.record.protocol = md.before[7:0];
        hdr.record.reserved = 0;
        hdr.record.no_tcp = 0;
        RECORD_FEATURES(PAD)
    }
    // Beside the frame, which goes on.
    action copy_4() {
        report(KIND_RECORD_4, md.cause, 4, 0);
        record();
        tm.copy_to_cpu = 1;
    }
#ifdef WITH_V6
    action copy_6() {
        report(KIND_RECORD_6, md.cause, 6, 0);
        record();
        hdr.high_source.setValid();
        hdr.high_destination.setValid();
        tm.copy_to_cpu = 1;
    }
#endif
    action copy_frame() {
        report(KIND_PUNTED, CAUSE_PUNTED, 0, REPORT_HAS_TRAILER);
        tm.copy_to_cpu = 1;
    }
    // Instead of a command.
    action turn_4() {
        report(KIND_RECORD_4, md.cause, 4, 0);
        record();
        tm.ucast_egress_port = CPU_PORT;
    }
#ifdef WITH_V6
    action turn_6() {
        report(KIND_RECORD_6, md.cause, 6, 0);
        record();
        hdr.high_source.setValid();
        hdr.high_destination.setValid();
        tm.ucast_egress_port = CPU_PORT;
    }
#endif
    action answer() {
        report(KIND_ANSWER, CAUSE_STATUS, 0, 0);
        tm.ucast_egress_port = CPU_PORT;
    }
    table reports {
        key = {
            md.verdict: ternary;
            md.cause: ternary;
#ifdef WITH_V6
            md.slot[SLOT_BITS:SLOT_BITS]: ternary;
#endif
        }
        actions = {
            copy_4;
            turn_4;
#ifdef WITH_V6
            copy_6;
            turn_6;
#endif
            copy_frame;
            answer;
            drop;
            NoAction;
        }
        const default_action = NoAction;
#ifdef WITH_V6
#define OF_V4 , 0
#define OF_ANY , _
#else
#define OF_V4
#define OF_ANY
#endif
        const entries = {
            (UNKNOWN, _ OF_ANY): copy_frame();
            (METERED, 0 OF_ANY): NoAction();
            (METERED, _ OF_V4): copy_4();
            (SWEEP, 0 OF_ANY): drop();
            (SWEEP_ALL, 0 OF_ANY): drop();
            (SWEEP, _ OF_V4): turn_4();
            (SWEEP_ALL, _ OF_V4): turn_4();
#ifdef WITH_V6
            (METERED, _, 1): copy_6();
            (SWEEP, _, 1): turn_6();
            (SWEEP_ALL, _, 1): turn_6();
#endif
            (STATUS, _ OF_ANY): answer();
            (SETTINGS, _ OF_ANY): answer();
            (IGNORED, _ OF_ANY): drop();
        }
        size = 16;
    }

    apply {
        if (hdr.ethernet.isValid()) {
            forwarding.apply();
        }
        classify.apply(hdr, md, from_parser.parser_err);
        counts.apply(hdr, md);
        // The time at which the pipe's parser got the packet: generated packets have it, too, and
        // it does not run backwards as the ports' own times do between ports.
        microflows.apply(hdr, md, from_parser.global_tstamp);
        reports.apply();
    }
}

control IngressDeparser(packet_out packet, inout headers_t hdr, in metadata_t md,
                        in ingress_intrinsic_metadata_for_deparser_t deparser) {
    apply {
        packet.emit(hdr.kind);
        packet.emit(hdr.report);
        packet.emit(hdr.status);
        packet.emit(hdr.high_source);
        packet.emit(hdr.source);
        packet.emit(hdr.high_destination);
        packet.emit(hdr.record);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.tag_1);
        packet.emit(hdr.tag_2);
        packet.emit(hdr.tag_3);
        packet.emit(hdr.tag_4);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.option_10);
        packet.emit(hdr.option_9);
        packet.emit(hdr.option_8);
        packet.emit(hdr.option_7);
        packet.emit(hdr.option_6);
        packet.emit(hdr.option_5);
        packet.emit(hdr.option_4);
        packet.emit(hdr.option_3);
        packet.emit(hdr.option_2);
        packet.emit(hdr.option_1);
        packet.emit(hdr.ipv6);
        packet.emit(hdr.extension_1);
        packet.emit(hdr.extension_2);
        packet.emit(hdr.fragment);
        packet.emit(hdr.ports);
        packet.emit(hdr.tcp);
    }
}
