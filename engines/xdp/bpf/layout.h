// SPDX-License-Identifier: Apache-2.0
// What the program shares with user space: src/layout.rs mirrors it, with the same sizes asserted.
#pragma once

#include <linux/types.h>

#include "reasons.h"

#define KEY_WORDS 5
#define KEY_WORDS_V4 2

// `Base` in crates/record/src/microflow.rs.
struct base {
    __u64 packets;
    __u64 bytes;
    __u64 first_ns;
    __u64 last_ns;
    __u32 min_length_bytes;
    __u32 max_length_bytes;
    __u16 tcp_flags;
    __u8 marks;
    __u8 tos;
    __u8 min_ttl;
    __u8 max_ttl;
    __u8 end_reason;
    __u8 padding;
};
_Static_assert(sizeof(struct base) == 48, "as in crates/record");

// A slot of the table; empty where it has no packets. An IPv4 key leaves the last three words zero, an IPv6 key never
// the last one, so that five equal words are one flow.
struct row {
    __u64 key[KEY_WORDS];
    struct base base;
};
_Static_assert(sizeof(struct row) == 88, "as in src/layout.rs");

// What the ring carries: the size says which family it is.
struct microflow_v4 {
    __u64 key[KEY_WORDS_V4];
    struct base base;
};
_Static_assert(sizeof(struct microflow_v4) == 64, "MicroflowRecord<2, 0>");

// One packet, as `Packet` in crates/record/src/packet.rs without its time.
struct packet {
    __u64 key[KEY_WORDS];
    __u32 ip_length_bytes;
    __u16 tcp_flags;
    __u8 ttl;
    __u8 tos;
};
_Static_assert(sizeof(struct packet) == 48, "as in src/layout.rs");

// What `parse` leaves for whoever asks: PARSED or a reason.
struct outcome {
    struct packet packet;
    __s64 reason;
};
_Static_assert(sizeof(struct outcome) == 56, "as in src/layout.rs");

// The ledger of one CPU, and the cell of the clock that it is in.
struct counters {
    __u64 packets_received;
    __u64 bytes_received;
    __u64 packets_metered;
    __u64 bytes_metered;
    __u64 evicted_collision;
    __u64 evicted_age;
    __u64 evicted_cut;
    __u64 microflows_dropped;
    __u64 packets_dropped;
    __u64 bytes_dropped;
    __u64 rejected_packets[REASON_COUNT];
    __u64 rejected_bytes[REASON_COUNT];
    __u64 cell_start_ns;
    __u64 cell_end_ns;
};
_Static_assert(sizeof(struct counters) == 8 * (12 + 2 * REASON_COUNT), "as in src/layout.rs");

// Written before the program is loaded, constant to the verifier.
struct config {
    __u64 hash_keys[1 + 2 * KEY_WORDS];
    __u64 cell_ns;
    // Added to the kernel's monotonic clock.
    __u64 clock_offset_ns;
    __u32 slots;
    // Marks after which no packet joins a record.
    __u8 evict_after;
    __u8 coarse_clock;
    __u8 padding[2];
};
_Static_assert(sizeof(struct config) == 112, "as in src/layout.rs");
