// SPDX-License-Identifier: Apache-2.0
// The buffer of evicted records (TurboFlow, figure 6): a record that leaves waits in registers, and
// the frame that pushed it out ends there. The third goes out by its own frame, and takes the others
// with it. So does an answer, which comes behind everything that was counted.

control Batch(inout headers_t hdr, inout metadata_t md) {
    register<bit<32>>(1) waiting_reg;
    register<bit<8>>(WAITING_MOST) waiting_cause_reg;
    register<bit<32>>(WAITING_MOST) waiting_sequence_reg;
    register<bit<64>>(WAITING_MOST) waiting_now_ns_reg;
    register<bit<64>>(WAITING_MOST) waiting_source_high_reg;
    register<bit<64>>(WAITING_MOST) waiting_source_low_reg;
    register<bit<64>>(WAITING_MOST) waiting_destination_high_reg;
    register<bit<64>>(WAITING_MOST) waiting_destination_low_reg;
    register<bit<64>>(WAITING_MOST) waiting_rest_reg;
    register<bit<64>>(WAITING_MOST) waiting_packets_reg;
    register<bit<64>>(WAITING_MOST) waiting_bytes_reg;
    register<bit<64>>(WAITING_MOST) waiting_first_ns_reg;
    register<bit<64>>(WAITING_MOST) waiting_last_ns_reg;
    register<bit<64>>(WAITING_MOST) waiting_tcp_reg;
#define WAITING_REGISTER(op, name, input) register<bit<64>>(WAITING_MOST) waiting_##name##_reg;
    RECORD_FEATURES(WAITING_REGISTER)

    action wait() {
        waiting_cause_reg.write(md.waiting, md.cause);
        waiting_sequence_reg.write(md.waiting, md.sequence);
        waiting_now_ns_reg.write(md.waiting, md.now_ns);
        waiting_source_high_reg.write(md.waiting, md.resident.source_high);
        waiting_source_low_reg.write(md.waiting, md.resident.source_low);
        waiting_destination_high_reg.write(md.waiting, md.resident.destination_high);
        waiting_destination_low_reg.write(md.waiting, md.resident.destination_low);
        waiting_rest_reg.write(md.waiting, md.resident.rest);
        waiting_packets_reg.write(md.waiting, md.resident.packets);
        waiting_bytes_reg.write(md.waiting, md.resident.bytes);
        waiting_first_ns_reg.write(md.waiting, md.resident.first_ns);
        waiting_last_ns_reg.write(md.waiting, md.resident.last_ns);
        waiting_tcp_reg.write(md.waiting, md.resident.tcp);
#define WRITE_WAITING(op, name, input) \
        waiting_##name##_reg.write(md.waiting, md.resident.name);
        RECORD_FEATURES(WRITE_WAITING)
        waiting_reg.write(0, md.waiting + 1);
        md.cause = 0;
    }

#define TAKE(at) \
        if (md.waiting > at) { \
            hdr.waiting_report_##at.setValid(); \
            hdr.waiting_report_##at.version = REPORT_VERSION; \
            hdr.waiting_report_##at.flags = 0; \
            hdr.waiting_report_##at.family = 0; \
            waiting_cause_reg.read(hdr.waiting_report_##at.cause, at); \
            waiting_sequence_reg.read(hdr.waiting_report_##at.sequence, at); \
            waiting_now_ns_reg.read(hdr.waiting_report_##at.now_ns, at); \
            hdr.waiting_##at.setValid(); \
            waiting_source_high_reg.read(hdr.waiting_##at.source_high, at); \
            waiting_source_low_reg.read(hdr.waiting_##at.source_low, at); \
            waiting_destination_high_reg.read(hdr.waiting_##at.destination_high, at); \
            waiting_destination_low_reg.read(hdr.waiting_##at.destination_low, at); \
            waiting_rest_reg.read(hdr.waiting_##at.rest, at); \
            waiting_packets_reg.read(hdr.waiting_##at.packets, at); \
            waiting_bytes_reg.read(hdr.waiting_##at.bytes, at); \
            waiting_first_ns_reg.read(hdr.waiting_##at.first_ns, at); \
            waiting_last_ns_reg.read(hdr.waiting_##at.last_ns, at); \
            waiting_tcp_reg.read(hdr.waiting_##at.tcp, at); \
            RECORD_FEATURES(TAKE_FEATURE_##at) \
        }
// A macro for each place, because a macro's arguments do not reach those it expands.
#define TAKE_FEATURE(at, name) waiting_##name##_reg.read(hdr.waiting_##at.name, at);
#define TAKE_FEATURE_0(op, name, input) TAKE_FEATURE(0, name)
#define TAKE_FEATURE_1(op, name, input) TAKE_FEATURE(1, name)

    apply {
        if (md.cause != 0 && md.cause <= CAUSE_STATUS) {
            waiting_reg.read(md.waiting, 0);
            if (md.cause < CAUSE_STATUS && md.waiting < WAITING_MOST) {
                wait();
            } else {
                waiting_reg.write(0, 0);
                FOR_ALL_WAITING(TAKE)
            }
        }
    }
}
