// SPDX-License-Identifier: Apache-2.0
// The microflow table (TurboFlow, section 4): old = slot; slot = joins ? merge(slot, packet) :
// packet. A record that was in the slot and is not joined leaves.

control Microflows(inout headers_t hdr, inout metadata_t md) {
    register<bit<32>>(2 * SLOTS) cell_reg;
    register<bit<64>>(2 * SLOTS) source_high_reg;
    register<bit<64>>(2 * SLOTS) source_low_reg;
    register<bit<64>>(2 * SLOTS) destination_high_reg;
    register<bit<64>>(2 * SLOTS) destination_low_reg;
    register<bit<64>>(2 * SLOTS) rest_reg;
    register<bit<64>>(2 * SLOTS) packets_reg;
    register<bit<64>>(2 * SLOTS) bytes_reg;
    register<bit<64>>(2 * SLOTS) first_ns_reg;
    register<bit<64>>(2 * SLOTS) last_ns_reg;
    register<bit<64>>(2 * SLOTS) tcp_reg;
#define REGISTER(op, name, input) register<bit<64>>(2 * SLOTS) name##_reg;
    RECORD_FEATURES(REGISTER)

    // The slots in use, by the lowest bit of the cell in which a packet first came to them.
    register<bit<32>>(4 * SLOTS) list_reg;
    register<bit<32>>(2) listed_reg;

    register<bit<64>>(2) seed_reg;
    register<bit<32>>(1) slot_mask_reg;

    // The slot of a packet.
    action find() {
        bit<64> seed;
        bit<64> more_seed;
        bit<32> slot_mask;
        // The CRC alone is known to everybody, and keys that collide in it do so under every start
        // value: the seed is added to the key, with carries.
        seed_reg.read(seed, 0);
        seed_reg.read(more_seed, 1);
        slot_mask_reg.read(slot_mask, 0);
        hash(md.slot, HashAlgorithm.crc32, (bit<32>) 0, {
            md.key.source_low + seed,
            md.key.destination_low + more_seed,
            md.key.rest + seed,
            md.key.source_high + more_seed,
            md.key.destination_high + seed
        }, (bit<64>) 1 << 32);
        md.slot = md.slot & slot_mask & (SLOTS - 1);
    }

    // The slot that a sweep is of.
    action place() {
        md.slot = hdr.lane.argument & (2 * SLOTS - 1);
    }
    action place_in_list(bit<32> odd) {
        list_reg.read(md.slot, (odd << (SLOT_BITS + 1)) + (hdr.lane.argument & (2 * SLOTS - 1)));
    }

    action read() {
        cell_reg.read(md.word_before, md.slot);
        source_high_reg.read(md.resident.source_high, md.slot);
        source_low_reg.read(md.resident.source_low, md.slot);
        destination_high_reg.read(md.resident.destination_high, md.slot);
        destination_low_reg.read(md.resident.destination_low, md.slot);
        rest_reg.read(md.resident.rest, md.slot);
        packets_reg.read(md.resident.packets, md.slot);
        bytes_reg.read(md.resident.bytes, md.slot);
        first_ns_reg.read(md.resident.first_ns, md.slot);
        last_ns_reg.read(md.resident.last_ns, md.slot);
        tcp_reg.read(md.resident.tcp, md.slot);
#define READ(op, name, input) name##_reg.read(md.resident.name, md.slot);
        RECORD_FEATURES(READ)
    }

#define MERGE_first(name, input) md.resident.name
#define MERGE_last(name, input) md.input
#define MERGE_min(name, input) md.input < md.resident.name ? md.input : md.resident.name
#define MERGE_max(name, input) md.input > md.resident.name ? md.input : md.resident.name
#define MERGE_sum(name, input) md.resident.name + md.input
#define MERGE_bit_or(name, input) md.resident.name | md.input
    action join() {
        packets_reg.write(md.slot, md.resident.packets + 1);
        bytes_reg.write(md.slot, md.resident.bytes + md.ip_length);
        tcp_reg.write(md.slot, md.resident.tcp | md.tcp);
        last_ns_reg.write(md.slot, MERGE_max(last_ns, time_ns));
#define MERGE(op, name, input) name##_reg.write(md.slot, MERGE_##op(name, input));
        RECORD_FEATURES(MERGE)
    }

    action open() {
        source_high_reg.write(md.slot, md.key.source_high);
        source_low_reg.write(md.slot, md.key.source_low);
        destination_high_reg.write(md.slot, md.key.destination_high);
        destination_low_reg.write(md.slot, md.key.destination_low);
        rest_reg.write(md.slot, md.key.rest);
        packets_reg.write(md.slot, 1);
        bytes_reg.write(md.slot, md.ip_length);
        first_ns_reg.write(md.slot, md.time_ns);
        last_ns_reg.write(md.slot, md.time_ns);
        tcp_reg.write(md.slot, md.tcp);
#define OPEN(op, name, input) name##_reg.write(md.slot, md.input);
        RECORD_FEATURES(OPEN)
    }

    // Notes that a packet came to the slot in this cell. A list that is full counts on: more are
    // listed than there are places.
    action count_listed(out bit<32> listed) {
        listed_reg.read(listed, md.cell & 1);
        listed_reg.write(md.cell & 1, listed |+| 1);
    }
    action note(in bit<32> listed) {
        list_reg.write(((md.cell & 1) << (SLOT_BITS + 1)) + listed, md.slot);
    }

    action set() {
        seed_reg.write(0, hdr.settings.seed);
        seed_reg.write(1, hdr.settings.more_seed);
        slot_mask_reg.write(0, hdr.settings.slot_mask);
    }

    apply {
        if (md.verdict == METERED) {
            find();
            if (hdr.ipv6.isValid()) {
                md.slot = md.slot + SLOTS;
            }
            read();
            bit<32> cell_before = md.word_before >> 1;
            bool is_same_key = md.resident.source_low == md.key.source_low
                && md.resident.destination_low == md.key.destination_low
                && md.resident.rest == md.key.rest
                && md.resident.source_high == md.key.source_high
                && md.resident.destination_high == md.key.destination_high;
            bool joins = is_same_key && md.word_before == CELL_WORD(md.cell, 0)
                && md.time_ns >= md.resident.first_ns && md.tcp & STARTS_WITH_SYN == 0;
            md.gap = 0;
            if (joins && md.time_ns > md.resident.last_ns) {
                md.gap = md.time_ns - md.resident.last_ns;
            }
            // Whether anything may join after this packet.
            bit<32> closed = (bit<32>) (md.flags & FLAG_LATE);
            if (md.flags & FLAG_CUT_AT_ENDS != 0 && md.tcp & (TCP_FIN | TCP_RST) != 0) {
                closed = 1;
            }
            // A slot in use must not look empty. Cells of 2^20 ns come to number 0 after 26 days.
            if (md.cell == 0) {
                closed = 1;
            }
            cell_reg.write(md.slot, CELL_WORD(md.cell, closed));
            if (cell_before != md.cell || md.word_before == 0) {
                // The first packet of this cell in this slot.
                bit<32> listed;
                count_listed(listed);
                if (listed < 2 * SLOTS) {
                    note(listed);
                }
            }
            if (joins) {
                join();
            } else {
                if (md.word_before != 0) {
                    if (cell_before != md.cell) {
                        md.cause = CAUSE_AGED;
                    } else if (is_same_key) {
                        md.cause = CAUSE_CUT;
                    } else {
                        md.cause = CAUSE_COLLISION;
                    }
                }
                open();
            }
        } else if (hdr.lane.kind == KIND_SWEEP) {
            if (hdr.lane.flags & FLAG_SLOT != 0) {
                place();
            } else if (hdr.lane.flags & FLAG_ODD != 0) {
                place_in_list(1);
            } else {
                place_in_list(0);
            }
            read();
            if (md.word_before != 0
                && (md.word_before >> 1 != md.cell || hdr.lane.flags & FLAG_ALL != 0)) {
                md.cause = CAUSE_AGED;
                cell_reg.write(md.slot, 0);
            }
        } else {
            md.cause = CAUSE_STATUS;
            if (hdr.settings.isValid()) {
                set();
            }
            bit<32> odd = (bit<32>) (hdr.lane.flags & FLAG_ODD) >> 2;
            hdr.status.setValid();
            listed_reg.read(hdr.status.listed, odd);
            if (hdr.lane.flags & FLAG_RESET != 0 && hdr.status.listed == hdr.lane.argument) {
                listed_reg.write(odd, 0);
            }
        }
    }
}
