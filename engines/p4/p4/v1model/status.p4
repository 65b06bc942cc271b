// SPDX-License-Identifier: Apache-2.0
// What the pipeline counts, and the commands that ask for it.

control Counts(inout headers_t hdr, in metadata_t md) {
    register<bit<64>>(7) count_reg;

    action count(bit<32> at, bit<64> number) {
        bit<64> counted;
        count_reg.read(counted, at);
        count_reg.write(at, counted + number);
    }

#define PACKETS 0
#define BYTES 1
#define TOO_LONG 2
#define FRAME_BYTES 3
#define PUNTED 4
#define EVICTED 5
#define SWEEPS 6

    action fill_in() {
        hdr.status.token = hdr.lane.time_ns;
        hdr.status.layout_id = LAYOUT_ID;
        hdr.status.slots = SLOTS;
        hdr.status.abilities = ABILITY_LISTS | ABILITY_REPLAY;
        hdr.status.word_bits = 64;
        hdr.status.cell_shift = CELL_SHIFT;
        count_reg.read(hdr.status.packets, PACKETS);
        count_reg.read(hdr.status.bytes, BYTES);
        count_reg.read(hdr.status.too_long, TOO_LONG);
        count_reg.read(hdr.status.frame_bytes, FRAME_BYTES);
        count_reg.read(hdr.status.punted, PUNTED);
        count_reg.read(hdr.status.evicted, EVICTED);
        count_reg.read(hdr.status.sweeps, SWEEPS);
    }

    apply {
        if (md.verdict != COMMAND) {
            count(FRAME_BYTES, md.frame_length);
            if (md.verdict == METERED) {
                count(PACKETS, 1);
                count(BYTES, md.ip_length);
                if (md.ip_length + md.l2_length > md.frame_length) {
                    count(TOO_LONG, 1);
                }
            } else {
                count(PUNTED, 1);
            }
        }
        if (md.verdict == COMMAND && hdr.lane.kind == KIND_SWEEP) {
            count(SWEEPS, 1);
        }
        if (md.cause != 0 && md.cause < CAUSE_STATUS) {
            count(EVICTED, 1);
        }
        if (md.cause == CAUSE_STATUS) {
            fill_in();
        }
    }
}
