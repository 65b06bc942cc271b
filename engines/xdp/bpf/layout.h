// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What the program shares with user space: src/layout.rs mirrors it, with the same sizes asserted.
#pragma once

#include <linux/types.h>

#include "reasons.h"

// Interfaces that an engine can be on.
#define INTERFACES 16
#define KEY_WORDS 5
#define KEY_WORDS_V4 2

// `Base` in crates/merge/src/microflow.rs.
struct base {
    __u64 packets;
    __u64 bytes;
    __u64 first_ns;
    __u64 last_ns;
    // The smallest length's complement.
    __u32 not_min_length_bytes;
    __u32 max_length_bytes;
    // The smallest time to live's complement.
    __u8 not_min_ttl;
    __u8 max_ttl;
    __u8 end_reason;
    // In the ring, the half of the table it was in. Padding to crates/record.
    __u8 half;
    __u16 tcp_flags;
    __u8 tos;
    __u8 marks;
};
_Static_assert(sizeof(struct base) == 48, "as in crates/record");
_Static_assert(__builtin_offsetof(struct base, not_min_length_bytes) == 32, "as in crates/record");
_Static_assert(__builtin_offsetof(struct base, not_min_ttl) == 40, "as in crates/record");
_Static_assert(__builtin_offsetof(struct base, half) == 43, "as in src/layout.rs");
_Static_assert(__builtin_offsetof(struct base, tcp_flags) == 44, "as in crates/record");
_Static_assert(__builtin_offsetof(struct base, marks) == 47, "as in crates/record");

// A slot of a table, and an item of the ring; empty where it has no packets. In the table, rows are apart by whole cache lines.
struct row_v4 {
    struct base base;
    __u64 key[KEY_WORDS_V4];
};
_Static_assert(sizeof(struct row_v4) == 64, "as in src/layout.rs");

struct row_v6 {
    struct base base;
    __u64 key[KEY_WORDS];
};
_Static_assert(sizeof(struct row_v6) == 88, "as in src/layout.rs");

// Behind an item of the ring where several CPUs share a table: with it, the records of a slot are put in order.
struct ticket {
    __u32 slot;
    __u32 number;
};

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
    __u64 packets_metered;
    __u64 bytes_metered;
    __u64 cell_start_ns;
    __u64 cell_end_ns;
    __u64 evicted_collision;
    __u64 evicted_age;
    __u64 evicted_cut;
    __u64 microflows_dropped;
    __u64 packets_dropped;
    __u64 bytes_dropped;
    // Of the dropped ones, those whose flow is not in `short_flows`.
    __u64 microflows_unnamed;
    __u64 rejected_packets[REASON_COUNT];
    __u64 rejected_bytes[REASON_COUNT];
    // By the interface's place in `config.interfaces`.
    __u64 packets_received[INTERFACES];
    __u64 bytes_received[INTERFACES];
    // Of the received ones, those longer than `config.longest_frame_bytes`.
    __u64 packets_merged[INTERFACES];
};
_Static_assert(sizeof(struct counters) == 8 * (11 + 2 * REASON_COUNT + 3 * INTERFACES), "as in src/layout.rs");

// Written before the program is loaded, constant to the verifier.
struct config {
    __u64 hash_keys[1 + 2 * KEY_WORDS];
    __u64 cell_ns;
    // Nanoseconds of the kernel's tick, where the coarse clock counts ticks; 0 where it is asked for.
    __u64 tick_ns;
    __u32 slots;
    // For programs of tested.h: flows that packets are spread over, and the interface they are sent from.
    __u32 fire_flows;
    __u32 fire_interface;
    __u32 interfaces[INTERFACES];
    __u32 interface_count;
    // Of what was one frame on the wire: a longer one was merged of several behind it.
    __u32 longest_frame_bytes;
    // Marks after which no packet joins a record.
    __u8 evict_after;
    __u8 coarse_clock;
    __u8 is_shared;
    // Frames end here.
    __u8 drops;
    // Of `fire_flows`, where they follow Zipf's law; 0 where packets are spread evenly.
    __u8 fire_octaves;
    // Records are those of `plan` (plan.h).
    __u8 has_plan;
    // A driver may part headers and data.
    __u8 splits_headers;
    __u8 padding[5];
};
_Static_assert(sizeof(struct config) == 200, "as in src/layout.rs");

// A tick that the kernel has counted, and the monotonic clock right after it was looked at.
struct tick {
    __u64 number;
    __u64 read_ns;
};
_Static_assert(sizeof(struct tick) == 16, "as in src/ticks.rs");

// Written by user space while the program runs.
struct control {
    // Added to the kernel's monotonic clock.
    __u64 clock_offset_ns;
    // The half of every table that packets go to: 0 or 1. User space empties the other one.
    __u64 half;
};
_Static_assert(sizeof(struct control) == 16, "as in src/layout.rs");
