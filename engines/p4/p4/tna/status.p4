// SPDX-License-Identifier: Apache-2.0
// The seeds, and the bytes that were metered. Packets are counted in microflows.p4. The two counts
// let the receiver say how much was in reports that were lost. Of the settings, there is room for
// the seeds alone: every slot is in use, every frame is metered, and times are the chip's.

struct seed_and_bytes_t {
    bit<32> seed;
    bit<32> bytes;
}

// Before the table, because the seed is in the slot's hash.
control Counts(inout headers_t hdr, inout metadata_t md) {
    Register<seed_and_bytes_t, bit<1>>(1, { 0, 0 }) seed_reg;
    RegisterAction<seed_and_bytes_t, bit<1>, bit<32>>(seed_reg) count_bytes = {
        void apply(inout seed_and_bytes_t value, out bit<32> seed) {
            seed = value.seed;
            value.bytes = value.bytes + (bit<32>) md.ip_length;
        }
    };
#ifdef QUEUE_FEATURES
    RegisterAction<seed_and_bytes_t, bit<1>, bit<32>>(seed_reg) read_seed = {
        void apply(inout seed_and_bytes_t value, out bit<32> seed) {
            seed = value.seed;
        }
    };
    action get_seed() { md.seed = read_seed.execute(0); }
#endif
    RegisterAction<seed_and_bytes_t, bit<1>, bit<32>>(seed_reg) read_bytes = {
        void apply(inout seed_and_bytes_t value, out bit<32> bytes) {
            bytes = value.bytes;
        }
    };
    RegisterAction<seed_and_bytes_t, bit<1>, bit<32>>(seed_reg) set_seed = {
        void apply(inout seed_and_bytes_t value, out bit<32> bytes) {
            bytes = value.bytes;
            value.seed = hdr.settings.seed[31:0];
        }
    };
    action count_the_bytes() { md.seed = count_bytes.execute(0); }
    action show_bytes() { hdr.status.bytes[31:0] = read_bytes.execute(0); }
    action take_settings() { hdr.status.bytes[31:0] = set_seed.execute(0); }
    table seed_and_bytes {
        key = { md.verdict: exact; }
        actions = {
            count_the_bytes;
#ifdef QUEUE_FEATURES
            get_seed;
#endif
            show_bytes;
            take_settings;
            NoAction;
        }
        const default_action = NoAction;
        const entries = {
            SEEN: count_the_bytes();
#ifdef QUEUE_FEATURES
            METERED: get_seed();
#endif
            STATUS: show_bytes();
            SETTINGS: take_settings();
        }
        size = 4;
    }

#ifdef WITH_V6
    // An ALU reaches 16 words: not those of all addresses and one seed.
    Register<bit<32>, bit<1>>(1, 0) more_seed_reg;
    RegisterAction<bit<32>, bit<1>, bit<32>>(more_seed_reg) read_more_seed = {
        void apply(inout bit<32> value, out bit<32> seed) {
            seed = value;
        }
    };
    RegisterAction<bit<32>, bit<1>, bit<32>>(more_seed_reg) set_more_seed = {
        void apply(inout bit<32> value) {
            value = hdr.settings.more_seed[31:0];
        }
    };
    action get_more_seed() { md.more_seed = read_more_seed.execute(0); }
    action take_more_seed() { set_more_seed.execute(0); }
    table more_seed {
        key = { md.verdict: exact; }
        actions = { get_more_seed; take_more_seed; NoAction; }
        const default_action = NoAction;
        const entries = {
            METERED: get_more_seed();
#ifdef QUEUE_FEATURES
            PROBE: get_more_seed();
#endif
            SETTINGS: take_more_seed();
        }
        size = 2;
    }
#endif

    apply {
        seed_and_bytes.apply();
#ifdef WITH_V6
        more_seed.apply();
#endif
    }
}
