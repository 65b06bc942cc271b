// SPDX-License-Identifier: Apache-2.0
// The microflow table (TurboFlow, section 4): old = slot; slot = joins ? merge(slot, packet) :
// packet. A record that was in the slot and is not joined leaves. Each register is one stateful
// ALU, which answers with one word: so a record needs one for each of its words.

// A register that a packet writes and a sweep reads. Both are actions of one table: the chip has
// one place from which a register can be reached.
#define KEY_REGISTER(header, name, slots, slot) \
    Register<bit<32>, slot_t>(slots, 0) name##_reg; \
    RegisterAction<bit<32>, slot_t, bit<32>>(name##_reg) swap_##name = { \
        void apply(inout bit<32> value, out bit<32> old) { \
            old = value; \
            value = md.key.name; \
        } \
    }; \
    RegisterAction<bit<32>, slot_t, bit<32>>(name##_reg) read_##name = { \
        void apply(inout bit<32> value, out bit<32> old) { \
            old = value; \
        } \
    }; \
    action write_##name() { hdr.header.name = swap_##name.execute(slot); } \
    action show_##name() { hdr.header.name = read_##name.execute(slot); }
#ifdef QUEUE_FEATURES
#define PROBE_ENTRY(what) PROBE: what;
#define HIGH_PROBE_ENTRY(what) (PROBE, 1): what;
#else
#define PROBE_ENTRY(what)
#define HIGH_PROBE_ENTRY(what)
#endif
#define KEY_WORD(header, name) \
    KEY_REGISTER(header, name, ALL_SLOTS, md.slot) \
    table name { \
        key = { md.verdict: exact; } \
        actions = { write_##name; show_##name; NoAction; } \
        const default_action = NoAction; \
        const entries = { \
            METERED: write_##name(); \
            SWEEP: show_##name(); \
            SWEEP_ALL: show_##name(); \
            PROBE_ENTRY(show_##name()) \
        } \
        size = 4; \
    }
// Of IPv6 alone.
#define HIGH_WORD(header, name) \
    KEY_REGISTER(header, name, SLOTS, (slot_t) md.slot[SLOT_BITS - 1:0]) \
    table name { \
        key = { \
            md.verdict: exact; \
            md.slot[SLOT_BITS:SLOT_BITS]: exact; \
        } \
        actions = { write_##name; show_##name; NoAction; } \
        const default_action = NoAction; \
        const entries = { \
            (METERED, 1): write_##name(); \
            (SWEEP, 1): show_##name(); \
            (SWEEP_ALL, 1): show_##name(); \
            HIGH_PROBE_ENTRY(show_##name()) \
        } \
        size = 4; \
    }

// A register that starts anew, or has the packet merged into it.
#define MERGE_first(width, input)
#ifdef QUEUE_FEATURES
// Unless the frame came again, after later ones.
#define MERGE_last(width, input) \
            if ((int<width>) (input - value) > 0) { value = (bit<width>) input; }
#else
#define MERGE_last(width, input) value = (bit<width>) input;
#endif
#define MERGE_min(width, input) value = min(value, (bit<width>) input);
#define MERGE_max(width, input) value = max(value, (bit<width>) input);
// Not over the end: the receiver sees that the sum is not known.
#define MERGE_sum(width, input) value = value |+| (bit<width>) input;
#define MERGE_bit_or(width, input) value = value | (bit<width>) input;
#define WORD(op, name, width, input) SIZED_WORD(op, name, width, input)
#define SIZED_WORD(op, name, width, input) \
    Register<bit<width>, slot_t>(ALL_SLOTS, 0) name##_reg; \
    RegisterAction<bit<width>, slot_t, bit<width>>(name##_reg) swap_##name = { \
        void apply(inout bit<width> value, out bit<width> old) { \
            old = value; \
            value = (bit<width>) input; \
        } \
    }; \
    RegisterAction<bit<width>, slot_t, bit<width>>(name##_reg) merge_##name = { \
        void apply(inout bit<width> value, out bit<width> old) { \
            old = value; \
            MERGE_##op(width, input) \
        } \
    }; \
    action open_##name() { hdr.record.name = swap_##name.execute(md.slot); } \
    action join_##name() { hdr.record.name = merge_##name.execute(md.slot); } \
    table name { \
        key = { md.step: exact; } \
        actions = { open_##name; join_##name; NoAction; } \
        const default_action = NoAction; \
        const entries = { \
            STEP_OPEN: open_##name(); \
            STEP_JOIN: join_##name(); \
        } \
        size = 2; \
    }
#define FEATURE_WORD(op, name, input) WORD(op, name, WIDTH(op, input), md.input)

// The slot of a key. Its words are added to a seed, with carries, before the hash: the CRC alone is
// known to everybody, and keys that collide in it do so under every start value. The record's words
// hold the sums until the registers answer.
control Slots(inout headers_t hdr, inout metadata_t md) {
    Hash<bit<SLOT_BITS>>(HashAlgorithm_t.CRC32) slot_hash;

    action mix() {
        hdr.source.source = md.key.source + md.seed;
        hdr.record.destination = md.key.destination + md.seed;
        hdr.record.ports = md.key.ports + md.seed;
#ifdef WITH_V6
        hdr.high_source.source_0 = md.key.source_0 + md.seed;
        hdr.high_source.source_1 = md.key.source_1 + md.more_seed;
        hdr.high_source.source_2 = md.key.source_2 + md.more_seed;
        hdr.high_destination.destination_0 = md.key.destination_0 + md.seed;
        hdr.high_destination.destination_1 = md.key.destination_1 + md.more_seed;
        hdr.high_destination.destination_2 = md.key.destination_2 + md.more_seed;
#endif
    }
    action choose() {
        md.slot[SLOT_BITS - 1:0] = slot_hash.get({
            hdr.source.source,
            hdr.record.destination,
            hdr.record.ports,
#ifdef WITH_V6
            hdr.high_source.source_0,
            hdr.high_source.source_1,
            hdr.high_source.source_2,
            hdr.high_destination.destination_0,
            hdr.high_destination.destination_1,
            hdr.high_destination.destination_2,
#endif
            md.protocol
        });
    }
    table slot {
        key = { md.verdict: exact; }
        actions = { choose; NoAction; }
        const default_action = NoAction;
        const entries = {
            METERED: choose();
            PROBE_ENTRY(choose())
        }
        size = 2;
    }

    apply {
        mix();
        slot.apply();
    }
}

control Microflows(inout headers_t hdr, inout metadata_t md, in bit<48> clock) {
    Slots() slots;
    Hash<bit<32>>(HashAlgorithm_t.IDENTITY) word_bits;

    // A sweep has neither state nor protocol: it asks from the lowest word of the cell to the
    // highest.
    action choose_word() {
        md.low = word_bits.get({ clock[CELL_SHIFT + 15:CELL_SHIFT], md.state, md.protocol });
    }
    table word {
        key = { md.verdict: exact; }
        actions = { choose_word; NoAction; }
        const default_action = NoAction;
        const entries = {
            METERED: choose_word();
            SWEEP: choose_word();
            PROBE_ENTRY(choose_word())
        }
        size = 4;
    }
    action choose_highest() {
        md.high = md.low | 0xffff;
    }

    // The cell word: a packet writes its own. A sweep takes what is not of the current cell, closed
    // or open; whether it did, it must know at once.
    Register<bit<32>, slot_t>(ALL_SLOTS, 0) cell_reg;
    RegisterAction<bit<32>, slot_t, bit<32>>(cell_reg) swap_cell = {
        void apply(inout bit<32> value, out bit<32> old) {
            old = value;
            value = md.low;
        }
    };
    RegisterAction<bit<32>, slot_t, bit<32>>(cell_reg) take_old_cell = {
        void apply(inout bit<32> value, out bit<32> old) {
            old = 0;
            if (value < md.low || value > md.high) {
                old = value;
                value = 0;
            }
        }
    };
    RegisterAction<bit<32>, slot_t, bit<32>>(cell_reg) take_any_cell = {
        void apply(inout bit<32> value, out bit<32> old) {
            old = value;
            value = 0;
        }
    };
#ifdef QUEUE_FEATURES
    RegisterAction<bit<32>, slot_t, bit<32>>(cell_reg) read_cell = {
        void apply(inout bit<32> value, out bit<32> old) {
            old = value;
        }
    };
    action show_cell() { md.before = read_cell.execute(md.slot); }
#endif
    action write_cell() { md.before = swap_cell.execute(md.slot); }
    action take_old() { md.before = take_old_cell.execute(md.slot); }
    action take_any() { md.before = take_any_cell.execute(md.slot); }
    table cell {
        key = { md.verdict: exact; }
        actions = {
            write_cell;
            take_old;
            take_any;
#ifdef QUEUE_FEATURES
            show_cell;
#endif
            NoAction;
        }
        const default_action = NoAction;
        const entries = {
            METERED: write_cell();
            SWEEP: take_old();
            SWEEP_ALL: take_any();
            PROBE_ENTRY(show_cell())
        }
        size = 4;
    }

    KEY_WORD(source, source)
    KEY_WORD(record, destination)
    KEY_WORD(record, ports)
#ifdef WITH_V6
    HIGH_WORD(high_source, source_0)
    HIGH_WORD(high_source, source_1)
    HIGH_WORD(high_source, source_2)
    HIGH_WORD(high_destination, destination_0)
    HIGH_WORD(high_destination, destination_1)
    HIGH_WORD(high_destination, destination_2)
#endif

    // From here on, words of the key are those in which it differs from the slot's.
    action compare() {
        md.low = md.low ^ md.before;
        md.key.source = md.key.source ^ hdr.source.source;
        md.key.destination = md.key.destination ^ hdr.record.destination;
        md.key.ports = md.key.ports ^ hdr.record.ports;
    }
#ifdef WITH_V6
    action compare_high() {
        md.key.source_0 = md.key.source_0 ^ hdr.high_source.source_0;
        md.key.source_1 = md.key.source_1 ^ hdr.high_source.source_1;
        md.key.source_2 = md.key.source_2 ^ hdr.high_source.source_2;
        md.key.destination_0 = md.key.destination_0 ^ hdr.high_destination.destination_0;
        md.key.destination_1 = md.key.destination_1 ^ hdr.high_destination.destination_1;
        md.key.destination_2 = md.key.destination_2 ^ hdr.high_destination.destination_2;
    }
#define HIGH_KEY \
            md.key.source_0: ternary; \
            md.key.source_1: ternary; \
            md.key.source_2: ternary; \
            md.key.destination_0: ternary; \
            md.key.destination_1: ternary; \
            md.key.destination_2: ternary;
#define HIGH_ZERO , 0, 0, 0, 0, 0, 0
#define HIGH_ANY , _, _, _, _, _, _
#else
#define HIGH_KEY
#define HIGH_ZERO
#define HIGH_ANY
#endif

    action join() {
        md.step = STEP_JOIN;
    }
    action open() {
        md.step = STEP_OPEN;
    }
    action evict(bit<8> cause) {
        md.step = STEP_OPEN;
        md.cause = cause;
    }
#ifdef QUEUE_FEATURES
    action again() {
        md.cause = COMES_AGAIN;
    }
#endif
    table decide {
        key = {
            md.verdict: ternary;
            md.before[WORD_IN_USE]: ternary;
            md.before[WORD_CLOSED]: ternary;
            md.tcp[12:12]: ternary;
            md.low: ternary;
            md.key.source: ternary;
            md.key.destination: ternary;
            md.key.ports: ternary;
            HIGH_KEY
        }
        actions = {
            join;
            open;
            evict;
#ifdef QUEUE_FEATURES
            again;
#endif
            NoAction;
        }
        const default_action = NoAction;
        const entries = {
            (METERED, 0, _, _, _, _, _, _ HIGH_ANY): open();
            (METERED, 1, 0, 0, 0 &&& WORD_ALIKE, 0, 0, 0 HIGH_ZERO): join();
            (METERED, 1, _, _, 0 &&& WORD_ALIKE, 0, 0, 0 HIGH_ZERO): evict(CAUSE_CUT);
            (METERED, 1, _, _, 0 &&& WORD_OF_CELL, _, _, _ HIGH_ANY): evict(CAUSE_COLLISION);
            (METERED, 1, _, _, _, _, _, _ HIGH_ANY): evict(CAUSE_AGED);
#ifdef QUEUE_FEATURES
            // What would close the record or displace it, comes again.
            (PROBE, 1, 0, 0, 0, 0, 0, 0 HIGH_ZERO): join();
            (PROBE, _, _, _, _, _, _, _ HIGH_ANY): again();
#endif
            (SWEEP, 1, _, _, _, _, _, _ HIGH_ANY): evict(CAUSE_AGED);
            (SWEEP_ALL, 1, _, _, _, _, _, _ HIGH_ANY): evict(CAUSE_AGED);
        }
        size = 16;
    }

    // After `last` has answered.
    action measure_gap() {
        md.gap = md.now - hdr.record.last;
    }

    WORD(sum, packets, 32, 1)
    WORD(sum, bytes, 32, md.ip_length)
    WORD(first, first, 32, md.now)
    WORD(last, last, 32, md.now)
    WORD(bit_or, tcp, 16, md.tcp)
    RECORD_FEATURES(FEATURE_WORD)

    apply {
        word.apply();
        choose_highest();
        slots.apply(hdr, md);
        cell.apply();
        source.apply();
        destination.apply();
        ports.apply();
        compare();
#ifdef WITH_V6
        source_0.apply();
        source_1.apply();
        source_2.apply();
        destination_0.apply();
        destination_1.apply();
        destination_2.apply();
        if (md.slot[SLOT_BITS:SLOT_BITS] == 1) {
            compare_high();
        }
#endif
        decide.apply();
        hdr.record.protocol = md.before[7:0];
        packets.apply();
        bytes.apply();
        first.apply();
        last.apply();
        if (md.step == STEP_JOIN) {
            measure_gap();
        }
#ifdef QUEUE_FEATURES
        // A frame that comes again may come after later ones.
        if (md.gap[31:31] == 1) {
            md.gap = 0;
        }
#endif
        tcp.apply();
#define APPLY(op, name, input) name.apply();
        RECORD_FEATURES(APPLY)
    }
}
