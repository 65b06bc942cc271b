// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Structures shared with user space: src/layout.rs mirrors them, with their sizes asserted.
#pragma once

#include <linux/types.h>

#include "reasons.h"

// Maximum number of interfaces of an engine.
#define INTERFACES 16
#define KEY_WORDS 5
#define KEY_WORDS_V4 2

// `Base` in crates/merge/src/microflow.rs.
struct base {
    __u64 packets;
    __u64 bytes;
    __u64 first_ns;
    __u64 last_ns;
    // Complement of the smallest length.
    __u32 not_min_length_bytes;
    __u32 max_length_bytes;
    // Complement of the smallest time to live.
    __u8 not_min_ttl;
    __u8 max_ttl;
    __u8 end_reason;
    // In the ring: the table half of the record. User space clears it, and uses the byte as
    // `has_other`.
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

// A slot of a table, and an item of the ring. A slot without packets is empty. In the table, rows
// are aligned to cache lines.
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

// Follows an item of the ring if CPUs share a table, to put the records of a slot in order.
struct ticket {
    __u32 slot;
    __u32 number;
};

// A packet: `Packet` in crates/record/src/packet.rs, without its time.
struct packet {
    __u64 key[KEY_WORDS];
    __u32 ip_length_bytes;
    __u16 tcp_flags;
    __u8 ttl;
    __u8 tos;
};
_Static_assert(sizeof(struct packet) == 48, "as in src/layout.rs");

// The result of the program `parse`: PARSED or a reason.
struct outcome {
    struct packet packet;
    __s64 reason;
};
_Static_assert(sizeof(struct outcome) == 56, "as in src/layout.rs");

// The counters of one CPU, and its current cell.
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
    // Dropped records whose flow is not in `short_flows`.
    __u64 microflows_unnamed;
    // Metered packets that declare more bytes than their frame has.
    __u64 packets_longer_than_frame;
    __u64 rejected_packets[REASON_COUNT];
    __u64 rejected_bytes[REASON_COUNT];
    // By the interface's index in `config.interfaces`.
    __u64 packets_received[INTERFACES];
    __u64 bytes_received[INTERFACES];
    // Received frames longer than `config.longest_frame_bytes`.
    __u64 packets_merged[INTERFACES];
};
_Static_assert(sizeof(struct counters) == 8 * (12 + 2 * REASON_COUNT + 3 * INTERFACES), "as in src/layout.rs");

// Written before the program is loaded, and constant for the verifier.
struct config {
    __u64 hash_keys[1 + 2 * KEY_WORDS];
    __u64 cell_ns;
    // Nanoseconds of the kernel's tick, if ticks are counted; 0 if the coarse clock is read.
    __u64 tick_ns;
    __u32 slots;
    // For the programs in tested.h: number of flows to spread packets over, and the interface to
    // send from.
    __u32 fire_flows;
    __u32 fire_interface;
    __u32 interfaces[INTERFACES];
    __u32 interface_count;
    // Maximum length of a frame on the wire; a longer one was merged from several.
    __u32 longest_frame_bytes;
    // No packet joins a record that has any of these marks.
    __u8 evict_after;
    __u8 coarse_clock;
    __u8 is_shared;
    // Whether the program drops frames instead of passing them on.
    __u8 drops;
    // Number of octaves in `fire_flows`, if the flows follow Zipf's law; 0 if they are uniform.
    __u8 fire_octaves;
    // Whether records follow `plan` (plan.h).
    __u8 has_plan;
    // Whether a driver may split headers and data.
    __u8 splits_headers;
    __u8 padding[5];
};
_Static_assert(sizeof(struct config) == 200, "as in src/layout.rs");

// A tick number of the kernel, and the monotonic clock right after reading it.
struct tick {
    __u64 number;
    __u64 read_ns;
};
_Static_assert(sizeof(struct tick) == 16, "as in src/ticks.rs");

// Written by user space while the program runs.
struct control {
    // Offset added to the kernel's monotonic clock.
    __u64 clock_offset_ns;
    // The half of every table that packets go to: 0 or 1. User space empties the other half.
    __u64 half;
};
_Static_assert(sizeof(struct control) == 16, "as in src/layout.rs");
