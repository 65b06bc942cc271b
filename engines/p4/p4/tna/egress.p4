// SPDX-License-Identifier: Apache-2.0
// The table in egress, where alone the depth of a queue and the time in it are known. A frame that
// leaves through its port cannot carry a record besides, and the chip's mirror carries 32 bytes
// before a frame's copy. So a frame may join the record of its slot as it passes, but nothing else.
// If it does not join, or ends the record, a copy comes by the table again, on the CPU's port, with
// the time and depth of the first pass: it takes the record out, opens the next, and becomes the
// report. All reports pass the CPU's port in the order of their numbers.
//
// Each of the two passes counts a frame once: the first adds it to what is metered, one of them
// puts it into the table. Copies are counted when they are made and when they have come, so that
// one that is lost is not overlooked.

// Mirror sessions, whose owner sets their port (the CPU's, in the pipe of the ports that are
// metered; one queue) and the length of copies: of frames that come again, what the parser can read
// (160 bytes); of punted ones, all.
#define AGAIN_SESSION 1
#define PUNT_SESSION 2
const MirrorType_t MIRROR_AGAIN = 1;
const MirrorType_t MIRROR_PUNTED = 2;

struct ingress_headers_t {
    kind_t kind;
}

struct ingress_metadata_t {
    bit<8> kind;
}

parser IngressParser(packet_in packet, out ingress_headers_t hdr, out ingress_metadata_t md,
                     out ingress_intrinsic_metadata_t input) {
    state start {
        packet.extract(input);
        packet.advance(PORT_METADATA_SIZE);
        transition select(input.ingress_port) {
            CPU_PORT: parse_cpu;
            GENERATOR_PORT &&& 0x7f: timer;
            default: frame;
        }
    }
    state timer {
        md.kind = KIND_TIMER;
        transition accept;
    }
    state parse_cpu {
        transition select(packet.lookahead<outer_t>().ether_type) {
            LANE_ETHER_TYPE: command;
            default: frame;
        }
    }
    state command {
        md.kind = KIND_LANE;
        transition accept;
    }
    state frame {
        md.kind = KIND_FRAME;
        transition accept;
    }
}

control Ingress(inout ingress_headers_t hdr, inout ingress_metadata_t md,
                in ingress_intrinsic_metadata_t input,
                in ingress_intrinsic_metadata_from_parser_t from_parser,
                inout ingress_intrinsic_metadata_for_deparser_t deparser,
                inout ingress_intrinsic_metadata_for_tm_t tm) {
    // To be replaced by whatever the switch is for. Frames must not be forwarded to the CPU's port.
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

    apply {
        hdr.kind.setValid();
        hdr.kind.kind = md.kind;
        hdr.kind.arrived = input.ingress_mac_tstamp[31:0];
        if (md.kind == KIND_FRAME) {
            forwarding.apply();
        } else {
            tm.ucast_egress_port = CPU_PORT;
        }
    }
}

control IngressDeparser(packet_out packet, inout ingress_headers_t hdr, in ingress_metadata_t md,
                        in ingress_intrinsic_metadata_for_deparser_t deparser) {
    apply {
        packet.emit(hdr.kind);
    }
}

struct numbers_t {
    bit<32> reports;
    bit<32> copies;
}

parser EgressParser(packet_in packet, out headers_t hdr, out metadata_t md,
                    out egress_intrinsic_metadata_t output) {
    Frame() frame;
    Command() command;

    state start {
        packet.extract(output);
        BEGIN_METADATA
        transition select(packet.lookahead<bit<8>>()) {
            KIND_FRAME: parse_frame;
            KIND_AGAIN: parse_again;
            KIND_PUNTED: parse_punted;
            KIND_TIMER: parse_timer;
            default: parse_command;
        }
    }
    state parse_frame {
        packet.extract(hdr.kind);
        md.known = PROBE;
        transition parse_headers;
    }
    state parse_again {
        packet.extract(hdr.again);
        md.copies = 1;
        md.known = METERED;
        md.clock = hdr.again.clock;
        md.queue_depth = hdr.again.queue_depth;
        md.hop_latency = hdr.again.hop_latency;
        transition parse_headers;
    }
    state parse_headers {
        frame.apply(packet, hdr, md);
        transition accept;
    }
    state parse_punted {
        packet.advance(8);
        md.copies = 1;
        md.verdict = PUNTED;
        transition accept;
    }
    // Each packet of the generator sweeps one slot.
    state parse_timer {
        packet.advance(40);
        packet.extract(hdr.timer);
        md.slot = hdr.timer.packet_id;
        md.verdict = SWEEP;
        transition accept;
    }
    state parse_command {
        packet.advance(40);
        command.apply(packet, hdr, md);
        transition accept;
    }
}

control Egress(inout headers_t hdr, inout metadata_t md, in egress_intrinsic_metadata_t output,
               in egress_intrinsic_metadata_from_parser_t from_parser,
               inout egress_intrinsic_metadata_for_deparser_t deparser,
               inout egress_intrinsic_metadata_for_output_port_t port) {
    Classify() classify;
    Counts() counts;
    Microflows() microflows;

    // What the second pass must know of the first: a copy brings it along.
    action note_clock() {
        md.clock = from_parser.global_tstamp;
    }
    action note_frame() {
        note_clock();
        md.queue_depth = (bit<32>) output.enq_qdepth;
        // The chip's own count of the time in the queue has 18 bits.
        md.hop_latency = from_parser.global_tstamp[31:0] - hdr.kind.arrived;
    }
    table first_pass {
        key = {
            hdr.kind.isValid(): exact;
            hdr.again.isValid(): exact;
        }
        actions = { note_clock; note_frame; NoAction; }
        const default_action = note_clock;
        const entries = {
            (true, false): note_frame();
            (false, true): NoAction();
        }
        size = 2;
    }

    // One number for all reports, so that a gap tells how many were lost; and how many copies are
    // under way or were lost.
    Register<numbers_t, bit<1>>(1, { 0, 0 }) numbers_reg;
    RegisterAction<numbers_t, bit<1>, bit<32>>(numbers_reg) number_report = {
        void apply(inout numbers_t value, out bit<32> number) {
            number = value.reports;
            value.reports = value.reports + 1;
            value.copies = value.copies - md.copies;
        }
    };
    RegisterAction<numbers_t, bit<1>, bit<32>>(numbers_reg) begin_copy = {
        void apply(inout numbers_t value) {
            value.copies = value.copies + 1;
        }
    };
    RegisterAction<numbers_t, bit<1>, bit<32>>(numbers_reg) end_copy = {
        void apply(inout numbers_t value) {
            value.copies = value.copies - md.copies;
        }
    };
    RegisterAction<numbers_t, bit<1>, bit<32>>(numbers_reg) read_copies = {
        void apply(inout numbers_t value, out bit<32> copies) {
            copies = value.copies;
        }
    };
    action begin_report(bit<8> cause, bit<8> flags, bit<8> family) {
        hdr.outer.setValid();
        hdr.outer.destination = 0xffffffffffff;
        hdr.outer.source = 0x020000000001;
        hdr.outer.ether_type = LANE_ETHER_TYPE;
        hdr.report.setValid();
        hdr.report.version = REPORT_VERSION;
        hdr.report.cause = cause;
        hdr.report.flags = flags;
        hdr.report.family = family;
        hdr.report.now_ns[63:48] = 0;
        hdr.report.now_ns[47:0] = from_parser.global_tstamp;
    }
    action report(bit<8> cause, bit<8> family) {
        begin_report(cause, REPORT_HAS_TRAILER, family); // the copy that became the report
        hdr.report.sequence = number_report.execute(0);
    }
    action record() {
        hdr.source.setValid();
        hdr.record.setValid();
        hdr.record.protocol = md.before[7:0];
        hdr.record.reserved = 0;
        hdr.record.no_tcp = 0;
        RECORD_FEATURES(PAD)
    }
    action report_4() {
        report(md.cause, 4);
        record();
    }
#ifdef WITH_V6
    action report_6() {
        report(md.cause, 6);
        record();
        hdr.high_source.setValid();
        hdr.high_destination.setValid();
    }
#endif
    action answer() {
        report(CAUSE_STATUS, 0);
    }
    action answer_copies() {
        begin_report(CAUSE_STATUS, REPORT_HAS_TRAILER + REPORT_COUNTS_COPIES, 0);
        hdr.report.sequence = read_copies.execute(0);
    }
    action report_frame() {
        report(CAUSE_PUNTED, 0);
    }
    action copy_known() {
        begin_copy.execute(0);
        deparser.mirror_type = MIRROR_AGAIN;
        md.session = AGAIN_SESSION;
        md.again = KIND_AGAIN;
    }
    action copy_unknown() {
        begin_copy.execute(0);
        deparser.mirror_type = MIRROR_PUNTED;
        md.session = PUNT_SESSION;
        md.again = KIND_PUNTED;
    }
    action drop() {
        end_copy.execute(0);
        deparser.drop_ctl = 1;
    }
    table reports {
        key = {
            md.verdict: ternary;
            md.known: ternary;
            md.cause: ternary;
#ifdef WITH_V6
            md.slot[SLOT_BITS:SLOT_BITS]: ternary;
#endif
        }
        actions = {
            report_4;
#ifdef WITH_V6
            report_6;
#endif
            answer;
            answer_copies;
            report_frame;
            copy_known;
            copy_unknown;
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
            (UNKNOWN, PROBE, _ OF_ANY): copy_unknown();
            (UNKNOWN, _, _ OF_ANY): drop();
            (PUNTED, _, _ OF_ANY): report_frame();
            (PROBE, _, COMES_AGAIN OF_ANY): copy_known();
            (PROBE, _, _ OF_ANY): NoAction();
            (STATUS, _, _ OF_ANY): answer_copies();
            (SETTINGS, _, _ OF_ANY): answer();
            (IGNORED, _, _ OF_ANY): drop();
            // METERED, SWEEP, SWEEP_ALL.
            (_, _, 0 OF_ANY): drop();
            (_, _, _ OF_V4): report_4();
#ifdef WITH_V6
            (_, _, _, 1): report_6();
#endif
        }
        size = 16;
    }

    apply {
        first_pass.apply();
        classify.apply(hdr, md, from_parser.parser_err);
        counts.apply(hdr, md);
        microflows.apply(hdr, md, md.clock);
        reports.apply();
    }
}

control EgressDeparser(packet_out packet, inout headers_t hdr, in metadata_t md,
                       in egress_intrinsic_metadata_for_deparser_t deparser) {
    Mirror() mirror;

    apply {
        if (deparser.mirror_type == MIRROR_AGAIN) {
            mirror.emit<again_t>(md.session, {
                md.again,
                md.clock,
                md.queue_depth,
                md.hop_latency
            });
        }
        if (deparser.mirror_type == MIRROR_PUNTED) {
            mirror.emit<copy_t>(md.session, { md.again });
        }
        packet.emit(hdr.outer);
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
