// SPDX-License-Identifier: Apache-2.0
// What the pipeline counts, and the commands that ask for it.

control Counts(inout headers_t hdr, inout metadata_t md) {
    Register<bit<64>, bit<32>>(7, 0) count_reg;

#define COUNT(at, number) \
    md.word = count_reg.read(at); \
    md.word = md.word + number; \
    count_reg.write(at, md.word);
#define PACKETS 0
#define BYTES 1
#define TOO_LONG 2
#define FRAME_BYTES 3
#define PUNTED 4
#define EVICTED 5
#define SWEEPS 6

    apply {
        if (hdr.lane.kind == KIND_REPLAY) {
            md.more = (bit<64>) hdr.lane.frame_length;
            COUNT(FRAME_BYTES, md.more)
            if (md.verdict == METERED) {
                COUNT(PACKETS, 1)
                COUNT(BYTES, md.ip_length)
                md.word = md.ip_length + md.l2_length;
                if (md.word > md.more) {
                    COUNT(TOO_LONG, 1)
                }
            } else {
                COUNT(PUNTED, 1)
            }
        }
        if (hdr.lane.kind == KIND_SWEEP) {
            COUNT(SWEEPS, 1)
        }
        if (md.cause != 0) {
            if (md.cause < CAUSE_STATUS) {
                COUNT(EVICTED, 1)
            }
        }
        if (md.cause == CAUSE_STATUS) {
            hdr.status.token = hdr.lane.time_ns;
            hdr.status.layout_id = LAYOUT_ID;
            hdr.status.slots = SLOTS;
            hdr.status.abilities = ABILITY_LISTS | ABILITY_REPLAY;
            hdr.status.word_bits = 64;
            hdr.status.cell_shift = 0;
            hdr.status.packets = count_reg.read(PACKETS);
            hdr.status.bytes = count_reg.read(BYTES);
            hdr.status.too_long = count_reg.read(TOO_LONG);
            hdr.status.frame_bytes = count_reg.read(FRAME_BYTES);
            hdr.status.punted = count_reg.read(PUNTED);
            hdr.status.evicted = count_reg.read(EVICTED);
            hdr.status.sweeps = count_reg.read(SWEEPS);
        }
    }
}
