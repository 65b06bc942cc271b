// SPDX-License-Identifier: Apache-2.0
// The microflow table (TurboFlow, section 4): old = slot; slot = joins ? merge(slot, packet) :
// packet. A record that was in the slot and is not joined leaves. Each register is one stateful
// ALU, which answers with one word: so a record needs one for each of its words.

// A register that a packet writes and a sweep reads. One action does both: the chip has few
// instruction words.
#define KEY_REGISTER(header, name, slots, slot) \
    Register<bit<32>, slot_t>(slots, 0) name##_reg; \
    RegisterAction<bit<32>, slot_t, bit<32>>(name##_reg) exchange_##name = { \
        void apply(inout bit<32> value, out bit<32> old) { \
            old = value; \
            if (md.verdict == METERED) { \
                value = md.key.name; \
            } \
        } \
    }; \
    action get_##name() { hdr.header.name = exchange_##name.execute(slot); }
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
        actions = { get_##name; NoAction; } \
        const default_action = NoAction; \
        const entries = { \
            METERED: get_##name(); \
            SWEEP: get_##name(); \
            SWEEP_ALL: get_##name(); \
            PROBE_ENTRY(get_##name()) \
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
        actions = { get_##name; NoAction; } \
        const default_action = NoAction; \
        const entries = { \
            (METERED, 1): get_##name(); \
            (SWEEP, 1): get_##name(); \
            (SWEEP_ALL, 1): get_##name(); \
            HIGH_PROBE_ENTRY(get_##name()) \
        } \
        size = 4; \
    }

// A register that starts anew, or has the packet merged into it. Again one action does both.
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
#define WORD(op, name, width, input, begin) SIZED_WORD(op, name, width, input, begin)
#define SIZED_WORD(op, name, width, input, begin) \
    Register<bit<width>, slot_t>(ALL_SLOTS, 0) name##_reg; \
    RegisterAction<bit<width>, slot_t, bit<width>>(name##_reg) fold_##name = { \
        void apply(inout bit<width> value, out bit<width> old) { \
            old = value; \
            if (md.step == STEP_JOIN) { \
                MERGE_##op(width, input) \
            } else { \
                value = (bit<width>) begin; \
            } \
        } \
    }; \
    action get_##name() { hdr.record.name = fold_##name.execute(md.slot); } \
    table name { \
        key = { md.step: exact; } \
        actions = { get_##name; NoAction; } \
        const default_action = NoAction; \
        const entries = { \
            STEP_OPEN: get_##name(); \
            STEP_JOIN: get_##name(); \
        } \
        size = 2; \
    }
// What the word of a new record is: the first packet's input, which has no gap before it.
#define FIRST_ttl md.ttl
#define FIRST_tos md.tos
#define FIRST_ip_length md.ip_length
#define FIRST_queue_depth md.queue_depth
#define FIRST_hop_latency md.hop_latency
#define FIRST_gap 0
#define FEATURE_WORD(op, name, input) WORD(op, name, WIDTH(op, input), md.input, FIRST_##input)

// The slot of a key, the cell word, and the number of packets. A chip has few logical tables, so
// each table here does all that its key can decide at this point.
control Slots(inout headers_t hdr, inout metadata_t md, in bit<48> clock) {
    Hash<bit<SLOT_BITS>>(HashAlgorithm_t.CRC32) slot_hash;
    Hash<bit<16>>(HashAlgorithm_t.IDENTITY) cell_bits;

    // The key's words are added to a seed, with carries, before they are hashed: the CRC alone is
    // known to everybody, and keys that collide in it do so under every start value. The record's
    // words hold the sums until the registers answer.
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

    // The lower half of the cell word.
    action begin_word(bit<8> state) {
        md.low[15:8] = state;
        md.low[7:0] = md.protocol;
    }

    // A SYN without ACK begins a record; nothing joins after FIN or RST.
    action no_tcp() {
        begin_word(STATE_OPEN);
        mix();
        md.tcp = 0;
    }
    action note_tcp(bit<8> state, bit<4> start) {
        begin_word(state);
        mix();
        md.tcp[15:12] = start;
        md.tcp[11:0] = hdr.tcp.offset_flags[11:0];
    }
    table prepare {
        key = {
            hdr.tcp.isValid(): exact;
            hdr.tcp.offset_flags: ternary;
        }
        actions = { no_tcp; note_tcp; }
        const default_action = no_tcp;
#define SYN_AND(end) \
            (true, (TCP_SYN | end) &&& (TCP_SYN | TCP_ACK | end)): \
                note_tcp(STATE_CLOSED, TCP_STARTS);
        const entries = {
            SYN_AND(TCP_FIN)
            SYN_AND(TCP_RST)
            (true, TCP_SYN &&& (TCP_SYN | TCP_ACK)): note_tcp(STATE_OPEN, TCP_STARTS);
            (true, TCP_FIN &&& TCP_FIN): note_tcp(STATE_CLOSED, 0);
            (true, TCP_RST &&& TCP_RST): note_tcp(STATE_CLOSED, 0);
            (true, _): note_tcp(STATE_OPEN, 0);
        }
        size = 8;
    }

    Register<bit<32>, bit<1>>(1, 0) all_packets_reg;
    RegisterAction<bit<32>, bit<1>, bit<32>>(all_packets_reg) count_packet = {
        void apply(inout bit<32> value) {
            value = value + 1;
        }
    };
    RegisterAction<bit<32>, bit<1>, bit<32>>(all_packets_reg) read_packets = {
        void apply(inout bit<32> value, out bit<32> packets) {
            packets = value;
        }
    };
    action choose_slot() {
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
    action choose_cell() {
        md.low[31:16] = cell_bits.get({ clock[CELL_SHIFT + 15:CELL_SHIFT] });
    }
    action choose() {
        choose_slot();
        choose_cell();
    }
    action choose_and_count() {
        choose();
        count_packet.execute(0);
    }
    // A sweep asks from the lowest word of the cell to the highest. The parser has set the lower
    // halves of both.
    action choose_bounds() {
        choose_cell();
        md.high[31:16] = cell_bits.get({ clock[CELL_SHIFT + 15:CELL_SHIFT] });
    }
    action show_packets() {
        hdr.status.packets[31:0] = read_packets.execute(0);
        hdr.status.token = hdr.lane.time_ns;
    }
    table slot {
        key = { md.verdict: exact; }
        actions = {
            choose_and_count;
#ifdef QUEUE_FEATURES
            choose;
#endif
            choose_bounds;
            show_packets;
            NoAction;
        }
        const default_action = NoAction;
        const entries = {
            SEEN: choose_and_count();
#ifdef QUEUE_FEATURES
            // A copy was counted when its frame came first.
            METERED: choose();
#endif
            SWEEP: choose_bounds();
            STATUS: show_packets();
            SETTINGS: show_packets();
        }
        size = 8;
    }

    apply {
        // Without QUEUE_FEATURES, SEEN is METERED.
        if (md.verdict == METERED || md.verdict == SEEN) {
            prepare.apply();
        }
        slot.apply();
    }
}

control Microflows(inout headers_t hdr, inout metadata_t md, in bit<48> clock) {
    Slots() slots;

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
    table cell {
        key = { md.verdict: exact; }
        actions = {
            write_cell;
            take_old;
#ifdef QUEUE_FEATURES
            show_cell;
#endif
            NoAction;
        }
        const default_action = NoAction;
        const entries = {
            METERED: write_cell();
            SWEEP: take_old();
            // Its md.low is 0, from the parser: the slot is empty then.
            SWEEP_ALL: write_cell();
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

    action take_step(bit<8> step, bit<8> cause) {
        md.step = step;
        md.cause = cause;
    }
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
        actions = { take_step; NoAction; }
        const default_action = NoAction;
// One action, to save instruction words; step and cause are its data.
#define JOIN take_step(STEP_JOIN, 0)
#define OPEN take_step(STEP_OPEN, 0)
#define EVICT(cause) take_step(STEP_OPEN, cause)
        const entries = {
            (METERED, 0, _, _, _, _, _, _ HIGH_ANY): OPEN;
            (METERED, 1, 0, 0, 0 &&& WORD_ALIKE, 0, 0, 0 HIGH_ZERO): JOIN;
            (METERED, 1, _, _, 0 &&& WORD_ALIKE, 0, 0, 0 HIGH_ZERO): EVICT(CAUSE_CUT);
            (METERED, 1, _, _, 0 &&& WORD_OF_CELL, _, _, _ HIGH_ANY): EVICT(CAUSE_COLLISION);
            (METERED, 1, _, _, _, _, _, _ HIGH_ANY): EVICT(CAUSE_AGED);
#ifdef QUEUE_FEATURES
            // What would close the record or displace it, comes again.
            (PROBE, 1, 0, 0, 0, 0, 0, 0 HIGH_ZERO): JOIN;
            (PROBE, _, _, _, _, _, _, _ HIGH_ANY): take_step(STEP_NONE, COMES_AGAIN);
#endif
            (SWEEP, 1, _, _, _, _, _, _ HIGH_ANY): EVICT(CAUSE_AGED);
            (SWEEP_ALL, 1, _, _, _, _, _, _ HIGH_ANY): EVICT(CAUSE_AGED);
        }
        size = 16;
    }

    // After `last` has answered.
    action measure_gap() {
        md.gap = clock[31:0] - hdr.record.last;
    }

    WORD(sum, packets, 32, 1, 1)
    WORD(sum, bytes, 32, md.ip_length, md.ip_length)
    WORD(first, first, 32, clock[31:0], clock[31:0])
    WORD(last, last, 32, clock[31:0], clock[31:0])
    WORD(bit_or, tcp, 16, md.tcp, md.tcp)
    RECORD_FEATURES(FEATURE_WORD)

    apply {
        slots.apply(hdr, md, clock);
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
        packets.apply();
        bytes.apply();
        first.apply();
        last.apply();
        measure_gap();
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
