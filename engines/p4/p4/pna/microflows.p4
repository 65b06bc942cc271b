// SPDX-License-Identifier: Apache-2.0
// The microflow table (TurboFlow, section 4): old = slot; slot = joins ? merge(slot, packet) :
// packet. A record that was in the slot and is not joined leaves.

control Microflows(inout headers_t hdr, inout metadata_t md) {
    Register<bit<32>, bit<32>>(2 * SLOTS, 0) cell_reg;
    Register<bit<64>, bit<32>>(2 * SLOTS, 0) source_high_reg;
    Register<bit<64>, bit<32>>(2 * SLOTS, 0) source_low_reg;
    Register<bit<64>, bit<32>>(2 * SLOTS, 0) destination_high_reg;
    Register<bit<64>, bit<32>>(2 * SLOTS, 0) destination_low_reg;
    Register<bit<64>, bit<32>>(2 * SLOTS, 0) rest_reg;
    Register<bit<64>, bit<32>>(2 * SLOTS, 0) packets_reg;
    Register<bit<64>, bit<32>>(2 * SLOTS, 0) bytes_reg;
    Register<bit<64>, bit<32>>(2 * SLOTS, 0) first_ns_reg;
    Register<bit<64>, bit<32>>(2 * SLOTS, 0) last_ns_reg;
    Register<bit<64>, bit<32>>(2 * SLOTS, 0) tcp_reg;
#define REGISTER(op, name, input) Register<bit<64>, bit<32>>(2 * SLOTS, 0) name##_reg;
    RECORD_FEATURES(REGISTER)

    // The slots in use, by the lowest bit of the cell in which a packet first came to them.
    Register<bit<32>, bit<32>>(4 * SLOTS, 0) list_reg;
    Register<bit<32>, bit<32>>(2, 0) listed_reg;

    Register<bit<64>, bit<32>>(2, 0) seed_reg;
    Register<bit<32>, bit<32>>(1, 0) slot_mask_reg;
    Hash<bit<32>>(PNA_HashAlgorithm_t.CRC32) slot_hash;


    apply {
        if (hdr.lane.kind < KIND_STATUS) {
            if (hdr.lane.kind == KIND_REPLAY) {
                // The CRC alone is known to everybody, and keys that collide in it do so under every
                // start value: the seed is added to the key, with carries.
                md.word = seed_reg.read(0);
                md.more = seed_reg.read(1);
                md.slot = slot_hash.get_hash({
                    hdr.key.source_low + md.word,
                    hdr.key.destination_low + md.more,
                    hdr.key.rest + md.word,
                    hdr.key.source_high + md.more,
                    hdr.key.destination_high + md.word
                });
                md.count = slot_mask_reg.read(0);
                md.slot = md.slot & md.count;
                if (hdr.ipv6.isValid()) {
                    md.slot = md.slot + SLOTS;
                }
            } else {
                md.slot = hdr.lane.argument;
                md.count = (bit<32>) hdr.lane.flags;
                md.index = md.count & (bit<32>) FLAG_SLOT;
                if (md.index == 0) {
                    md.index = md.count & (bit<32>) FLAG_ODD;
                    if (md.index != 0) {
                        md.slot = md.slot + 2 * SLOTS;
                    }
                    md.slot = list_reg.read(md.slot);
                }
            }
            md.word_before = cell_reg.read(md.slot);
            hdr.record.source_high = source_high_reg.read(md.slot);
            hdr.record.source_low = source_low_reg.read(md.slot);
            hdr.record.destination_high = destination_high_reg.read(md.slot);
            hdr.record.destination_low = destination_low_reg.read(md.slot);
            hdr.record.rest = rest_reg.read(md.slot);
            hdr.record.packets = packets_reg.read(md.slot);
            hdr.record.bytes = bytes_reg.read(md.slot);
            hdr.record.first_ns = first_ns_reg.read(md.slot);
            hdr.record.last_ns = last_ns_reg.read(md.slot);
            hdr.record.tcp = tcp_reg.read(md.slot);
#define READ(op, name, input) hdr.record.name = name##_reg.read(md.slot);
            RECORD_FEATURES(READ)

            md.cell_before = md.word_before >> 1;
            if (hdr.lane.kind == KIND_SWEEP) {
                md.count = (bit<32>) hdr.lane.flags;
                md.count = md.count & (bit<32>) FLAG_ALL;
                if (md.word_before != 0) {
                    if (md.cell_before != hdr.lane.cell || md.count != 0) {
                        md.cause = CAUSE_AGED;
                        cell_reg.write(md.slot, 0);
                    }
                }
            } else {
                md.cell = hdr.lane.cell << 1;
                if (md.word_before == md.cell && hdr.record.source_low == hdr.key.source_low
                    && hdr.record.destination_low == hdr.key.destination_low
                    && hdr.record.rest == hdr.key.rest
                    && hdr.record.source_high == hdr.key.source_high
                    && hdr.record.destination_high == hdr.key.destination_high) {
                    md.word = md.tcp & STARTS_WITH_SYN;
                    if (hdr.lane.time_ns >= hdr.record.first_ns && md.word == 0) {
                        md.joins = 1;
                    }
                }
                // Whether anything may join after this packet.
                md.count = (bit<32>) hdr.lane.flags;
                md.index = md.count & (bit<32>) FLAG_LATE;
                md.cell = md.cell | md.index;
                md.count = md.count & (bit<32>) FLAG_CUT_AT_ENDS;
                if (md.count != 0) {
                    md.word = md.tcp & (TCP_FIN | TCP_RST);
                    if (md.word != 0) {
                        md.cell = md.cell | 1;
                    }
                }
                cell_reg.write(md.slot, md.cell);
                if (md.cell_before != hdr.lane.cell) {
                    // The first packet of this cell in this slot.
                    md.index = hdr.lane.cell & 1;
                    md.count = listed_reg.read(md.index);
                    // A slot is listed once a cell, so that there is room.
                    md.word_before = md.index << (SLOT_BITS + 1);
                    md.word_before = md.word_before + md.count;
                    list_reg.write(md.word_before, md.slot);
                    md.count = md.count + 1;
                    listed_reg.write(md.index, md.count);
                    md.word_before = md.cell_before;
                }
                if (md.joins == 1) {
                    md.word = hdr.record.packets + 1;
                    packets_reg.write(md.slot, md.word);
                    md.word = hdr.record.bytes + md.ip_length;
                    bytes_reg.write(md.slot, md.word);
                    if (hdr.lane.time_ns > hdr.record.last_ns) {
                        last_ns_reg.write(md.slot, hdr.lane.time_ns);
                    }
                    md.word = hdr.record.tcp | md.tcp;
                    tcp_reg.write(md.slot, md.word);
#define MERGE_first(name, input)
#define MERGE_last(name, input) name##_reg.write(md.slot, md.input);
#define MERGE_min(name, input) \
        if (md.input < hdr.record.name) { name##_reg.write(md.slot, md.input); }
#define MERGE_max(name, input) \
        if (md.input > hdr.record.name) { name##_reg.write(md.slot, md.input); }
#define MERGE_sum(name, input) \
        md.word = hdr.record.name + md.input; name##_reg.write(md.slot, md.word);
#define MERGE_bit_or(name, input) \
        md.word = hdr.record.name | md.input; name##_reg.write(md.slot, md.word);
#define MERGE(op, name, input) MERGE_##op(name, input)
                    RECORD_FEATURES(MERGE)
                } else {
                    if (md.word_before != 0) {
                        if (md.cell_before != hdr.lane.cell) {
                            md.cause = CAUSE_AGED;
                        } else if (hdr.record.source_low == hdr.key.source_low
                                   && hdr.record.destination_low == hdr.key.destination_low
                                   && hdr.record.rest == hdr.key.rest
                                   && hdr.record.source_high == hdr.key.source_high
                                   && hdr.record.destination_high == hdr.key.destination_high) {
                            md.cause = CAUSE_CUT;
                        } else {
                            md.cause = CAUSE_COLLISION;
                        }
                    }
                    source_high_reg.write(md.slot, hdr.key.source_high);
                    source_low_reg.write(md.slot, hdr.key.source_low);
                    destination_high_reg.write(md.slot, hdr.key.destination_high);
                    destination_low_reg.write(md.slot, hdr.key.destination_low);
                    rest_reg.write(md.slot, hdr.key.rest);
                    packets_reg.write(md.slot, 1);
                    bytes_reg.write(md.slot, md.ip_length);
                    first_ns_reg.write(md.slot, hdr.lane.time_ns);
                    last_ns_reg.write(md.slot, hdr.lane.time_ns);
                    tcp_reg.write(md.slot, md.tcp);
#define OPEN(op, name, input) name##_reg.write(md.slot, md.input);
                    RECORD_FEATURES(OPEN)
                }
            }
        } else {
            md.cause = CAUSE_STATUS;
            if (hdr.settings.isValid()) {
                seed_reg.write(0, hdr.settings.seed);
                seed_reg.write(1, hdr.settings.more_seed);
                slot_mask_reg.write(0, hdr.settings.slot_mask);
            }
            md.count = (bit<32>) hdr.lane.flags;
            md.index = md.count & (bit<32>) FLAG_ODD;
            md.index = md.index >> 2;
            hdr.status.setValid();
            hdr.status.listed = listed_reg.read(md.index);
            md.count = md.count & (bit<32>) FLAG_RESET;
            if (md.count != 0 && hdr.status.listed == hdr.lane.argument) {
                listed_reg.write(md.index, 0);
            }
        }
    }
}
