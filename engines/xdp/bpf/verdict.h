// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The verdicts on flows: what user space has decided about them. This table counts nothing: packets
// are counted in the microflow table. So a verdict can be written, changed or removed at any time
// without the loss of a count. Both directions of a flow share one row.
//
// A program may still hold a row that user space removes, and the kernel may then give the row's
// memory to another flow. So a verdict is one word, read once, which contains a check of its flow:
//
//   63            32 31      24 23            8 7        0
//  +----------------+----------+---------------+----------+
//  | check          | 0        | rule          | action   |
//  +----------------+----------+---------------+----------+
//
// A word with another check belongs to another flow, and counts as no verdict.
#pragma once

#include "table.h"

// `Action` in engines/offload/src/verdict.rs. A word without an action is no verdict.
enum action {
    ACTION_NONE,
    ACTION_PASS,
    ACTION_DROP,
    // On a bridge the frame goes to the other port, as with ACTION_PASS. Elsewhere it passes.
    ACTION_REDIRECT,
};
#define ACTION_MASK 0xff
#define RULE_SHIFT 8
#define RULE_MASK 0xffff
#define CHECK_SHIFT 32
// Position of the VLAN in the last word of a key: `VLAN_SHIFT` in crates/record/src/key.rs.
#define VLAN_SHIFT 48

// Minimum time between two writes of a row's time, because a row is shared by all CPUs.
#define SEEN_STEP_NS (1 << 27)
// The lowest bits of that time record which ends of the connection were seen.
#define SEEN_FIN 1
#define SEEN_REVERSE_FIN 2
#define SEEN_RST 4
#define SEEN_ENDS 7ULL

// Written before the program is loaded, and constant for the verifier.
struct offload_config {
    // Keys of two hashes over the sorted flow key: of the check, and of the set among `tap_sets`.
    __u64 check_keys[1 + 2 * KEY_WORDS];
    __u64 set_keys[1 + 2 * KEY_WORDS];
    __u32 tap_sets;
    // Bytes copied of a frame that is tapped.
    __u32 snap_bytes;
    // Maximum number of packets of a flow that are tapped.
    __u8 budget_tcp;
    __u8 budget_udp;
    __u8 budget_other;
    // Whether flows in different VLANs are different flows.
    __u8 keys_vlan;
    // After this silence, a packet of a flow that is not TCP begins a new flow. In units of 2^30
    // ns.
    __u32 idle_units;
};
_Static_assert(sizeof(struct offload_config) == 8 * (2 + 4 * KEY_WORDS) + 16, "as in src/offload_config.rs");

const volatile struct offload_config offload SEC(".rodata.offload");

struct verdict {
    // Read once by programs, and written once by user space.
    __u64 word;
    // Time of a packet of this flow, at most SEEN_STEP_NS before its last; the lowest bits are the
    // ends. A program may write it into another flow's row: at worst, that row is removed too early
    // or too late, or its flow is tapped again.
    __u64 seen_ns;
};
_Static_assert(sizeof(struct verdict) == 16, "as in src/offload/table.rs");

// The map must not be of a type that evicts rows: without its row, a flow to be dropped would pass.
// The memory is preallocated, so that only a full table refuses a row. User space sets the number
// of rows.
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1);
    __uint(key_size, 8 * KEY_WORDS_V4);
    __type(value, struct verdict);
} verdicts_v4 SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1);
    __uint(key_size, 8 * KEY_WORDS);
    __type(value, struct verdict);
} verdicts_v6 SEC(".maps");

// The counters of one CPU.
struct offload_counters {
    // Packets with a verdict.
    __u64 hits;
    // Of these: dropped, and their IP bytes.
    __u64 packets_dropped;
    __u64 bytes_dropped;
    // Packets without a verdict.
    __u64 misses;
    // Of these: copied to user space.
    __u64 taps;
    // Of these: not copied, because the ring had no room.
    __u64 taps_lost;
    // Notes about ends of connections for which the ring had no room. Those rows leave by idleness.
    __u64 ends_lost;
    __u64 padding;
};
_Static_assert(sizeof(struct offload_counters) == 64, "as in src/offload/counters.rs");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct offload_counters);
} offload_ledger SEC(".maps");

static __always_inline struct offload_counters *offload_counters_of_this_cpu(void)
{
    __u32 only = 0;
    return bpf_map_lookup_elem(&offload_ledger, &only);
}

// Counts a packet that is dropped by its verdict.
static __always_inline void count_dropped(struct offload_counters *counters, __u64 bytes)
{
    counters->packets_dropped += 1;
    counters->bytes_dropped += bytes;
}

// The key of both directions, with the smaller end first.
struct flow {
    __u64 words[KEY_WORDS];
};

// Returns whether the packet goes from the greater end to the smaller.
static __always_inline int sort_v4(const struct packet *packet, struct flow *flow)
{
    const __u64 ends = packet->key[0], transport = packet->key[1];
    const __u32 from = ends, to = ends >> 32;
    const __u16 from_port = transport, to_port = transport >> 16;
    const int is_reversed = from > to || (from == to && from_port > to_port);
    flow->words[0] = is_reversed ? ends << 32 | ends >> 32 : ends;
    flow->words[1] = is_reversed ? (transport & ~0xffffffffULL) | (__u64)from_port << 16 | to_port : transport;
    return is_reversed;
}

static __always_inline int sort_v6(const struct packet *packet, struct flow *flow)
{
    const __u64 transport = packet->key[4];
    const __u64 from = packet->key[0], to = packet->key[2];
    const __u64 from_rest = packet->key[1], to_rest = packet->key[3];
    const __u16 from_port = transport, to_port = transport >> 16;
    const int is_same_host = from == to && from_rest == to_rest;
    const int is_reversed = from > to || (from == to && from_rest > to_rest) || (is_same_host && from_port > to_port);
    flow->words[0] = is_reversed ? to : from;
    flow->words[1] = is_reversed ? to_rest : from_rest;
    flow->words[2] = is_reversed ? from : to;
    flow->words[3] = is_reversed ? from_rest : to_rest;
    flow->words[4] = is_reversed ? (transport & ~0xffffffffULL) | (__u64)from_port << 16 | to_port : transport;
    return is_reversed;
}

// The VLAN of the outermost tag, if that tag is the first header; without a tag, VLAN 0 (IEEE
// 802.1Q). Read in place, because the stack of `planned` has no room for a copy.
static __always_inline __u64 vlan_of(struct xdp_md *ctx)
{
    const __u8 *frame = (const __u8 *)(long)ctx->data;
    __u16 type;
    if ((const void *)(frame + 16) > (const void *)(long)ctx->data_end)
        return 0;
    type = bpf_ntohs(*(const __be16 *)(frame + 12));
    if (type != TYPE_VLAN && type != TYPE_SERVICE_VLAN && type != TYPE_OLD_SERVICE_VLAN)
        return 0;
    return bpf_ntohs(*(const __be16 *)(frame + 14)) & 0xfff;
}

static __always_inline int sort(struct xdp_md *ctx, const struct packet *packet, struct flow *flow, int key_words)
{
    const int is_reversed = key_words == KEY_WORDS ? sort_v6(packet, flow) : sort_v4(packet, flow);
    if (offload.keys_vlan)
        flow->words[key_words - 1] |= vlan_of(ctx) << VLAN_SHIFT;
    return is_reversed;
}

// 32 bits of a strongly universal hash, as in `slot_of`.
static __always_inline __u32 hash_of_flow(const volatile __u64 *keys, const __u64 *words, int key_words)
{
    __u64 sum = keys[0];
#pragma unroll
    for (int i = 0; i < KEY_WORDS; i++) {
        if (i < key_words)
            sum += keys[1 + 2 * i] * (words[i] & 0xffffffff) + keys[2 + 2 * i] * (words[i] >> 32);
    }
    return sum >> 32;
}

static __always_inline __u32 check_of(const __u64 *words, int key_words)
{
    return hash_of_flow(offload.check_keys, words, key_words);
}

static __always_inline struct verdict *row_of_flow(const __u64 *words, int key_words)
{
    if (key_words == KEY_WORDS)
        return bpf_map_lookup_elem(&verdicts_v6, words);
    return bpf_map_lookup_elem(&verdicts_v4, words);
}

// The word of a row, if it is of this flow; otherwise 0.
static __always_inline __u64 word_of_row(struct verdict *row, __u32 check)
{
    __u64 word = row ? *(volatile __u64 *)&row->word : 0;
    return word >> CHECK_SHIFT == check ? word : 0;
}

static __always_inline __u64 ends_of(__u16 tcp_flags, int is_reversed)
{
    __u64 ends = 0;
    if (tcp_flags & TCP_FIN)
        ends |= is_reversed ? SEEN_REVERSE_FIN : SEEN_FIN;
    if (tcp_flags & TCP_RST)
        ends |= SEEN_RST;
    return ends;
}

// Whether a connection is over: both sides sent FIN, or one sent RST.
static __always_inline int is_over(__u64 seen_ns)
{
    const __u64 both = SEEN_FIN | SEEN_REVERSE_FIN;
    return (seen_ns & SEEN_RST) || (seen_ns & both) == both;
}

static __always_inline int begins_connection(__u16 tcp_flags)
{
    return (tcp_flags & (TCP_SYN | TCP_ACK)) == TCP_SYN;
}

// Notes the packet in the row; returns whether it ends the connection.
static __always_inline int note_seen(struct verdict *row, __u64 now_ns, __u64 ends)
{
    const __u64 seen_ns = *(volatile __u64 *)&row->seen_ns;
    const __u64 with_ends = (seen_ns & SEEN_ENDS) | ends;
    if (now_ns - seen_ns >= SEEN_STEP_NS || with_ends != (seen_ns & SEEN_ENDS))
        *(volatile __u64 *)&row->seen_ns = (now_ns & ~SEEN_ENDS) | with_ends;
    return !is_over(seen_ns) && is_over(with_ends);
}
