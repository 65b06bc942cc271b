// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Copies of the first packets of flows without a verdict, from which user space decides. Meanwhile
// the frame goes on, and it is metered in any case: a reader that is slow, that falls behind or
// that has ended costs decisions, never packets or counts.
//
// The number of tapped packets of each flow is kept in a separate table, in sets of four rows:
//
//   63            32 31          16  15     14       8 7       0
//  +----------------+--------------+-------+----------+---------+
//  | check          | last seen    | ended | 0        | spent   |
//  +----------------+--------------+-------+----------+---------+
//
// So a flow whose verdict found no room, or about which nothing can be said, is not tapped forever.
// A flow that finds no row of its own takes the row of the flow that was silent longest. Rows are
// written without a lock: concurrent writers lose at most single packets of a budget.
#pragma once

#include "plan.h"
#include "verdict.h"

// Maximum bytes of a frame that is tapped; src/offload_config.rs has the same limit.
#define MAX_TAP_BYTES 2048
#define TAP_WAYS 4
#define SPENT_MASK 0xff
// Marks a flow that is not tapped again.
#define ALL_SPENT 0xff
#define TAP_ENDED (1 << 15)
#define LAST_SEEN_SHIFT 16

struct tap_set {
    __u64 rows[TAP_WAYS];
};

// User space sets the number of sets.
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct tap_set);
} tap_sets SEC(".maps");

enum tap_kind {
    // A packet of a flow without a verdict.
    TAP_PACKET,
    // A packet that begins a new connection with the key of a finished one that has a verdict.
    TAP_ANEW,
    // The packet that ends the connection of a flow with a verdict. Copied without its frame.
    TAP_END,
};

// An item of the ring, which ends where its length says.
struct tapped {
    __u64 time_ns;
    struct flow flow;
    // Length on the wire.
    __u32 frame_bytes;
    __u32 interface;
    __u16 tcp_flags;
    __u8 is_reversed;
    __u8 kind;
    __u32 padding;
    __u8 bytes[MAX_TAP_BYTES];
};
#define TAP_HEADER_BYTES 64
_Static_assert(sizeof(struct tapped) == TAP_HEADER_BYTES + MAX_TAP_BYTES, "as in src/offload/taps.rs");

// A copy is assembled here, because its length is not known in advance.
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct tapped);
} tap_copy SEC(".maps");

// User space sets its size.
struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 4096);
} taps SEC(".maps");

// `kept` is the number of bytes of the frame to copy. Returns whether the ring had room.
static __always_inline int put_tap(struct xdp_md *ctx, const struct packet *packet, const struct flow *flow, __u64 now_ns,
                                   __u64 frame_bytes, int is_reversed, enum tap_kind kind, __u32 kept)
{
    __u32 only = 0;
    struct tapped *tapped = bpf_map_lookup_elem(&tap_copy, &only);
    if (!tapped)
        return 0;
    tapped->time_ns = now_ns;
    tapped->flow = *flow;
    tapped->frame_bytes = frame_bytes;
    tapped->interface = ctx->ingress_ifindex;
    tapped->tcp_flags = packet->tcp_flags;
    tapped->is_reversed = is_reversed;
    tapped->kind = kind;
    if (kept > frame_bytes)
        kept = frame_bytes;
    // In a register whose bound the verifier has seen, even if the compiler can prove the bound
    // otherwise.
    barrier_var(kept);
    if (kept > MAX_TAP_BYTES)
        return 0;
    if (kept && !load_some(ctx, 0, tapped->bytes, kept))
        return 0;
    // Wakes the reader if it waits.
    return bpf_ringbuf_output(&taps, tapped, TAP_HEADER_BYTES + kept, 0) == 0;
}

static __always_inline __u16 units_of(__u64 now_ns)
{
    return now_ns >> 30;
}

static __always_inline __u16 silence_of(__u64 row, __u16 now)
{
    return now - (__u16)(row >> LAST_SEEN_SHIFT);
}

// Finds the place of a flow in a set, or else that of the flow that was silent longest. Returns the
// flow's row, or an empty row with its check.
static __always_inline __u64 tap_row_of(const struct tap_set *set, __u32 check, __u16 now, __u32 *place)
{
    __u64 row = (__u64)check << CHECK_SHIFT | (__u64)now << LAST_SEEN_SHIFT;
    __u32 longest = 0;
    *place = 0;
#pragma unroll
    for (__u32 i = 0; i < TAP_WAYS; i++) {
        const __u64 other = *(const volatile __u64 *)&set->rows[i];
        // An empty row counts as silent longer than any other.
        const __u32 silence = other ? silence_of(other, now) : 1 << 16;
        if (other && other >> CHECK_SHIFT == check) {
            *place = i;
            return other;
        }
        if (silence > longest) {
            longest = silence;
            *place = i;
        }
    }
    return row;
}

static __always_inline __u32 budget_of(__u8 protocol)
{
    if (protocol == PROTOCOL_TCP)
        return offload.budget_tcp;
    return protocol == PROTOCOL_UDP ? offload.budget_udp : offload.budget_other;
}

// Whether a packet begins a new flow with the key of an earlier one: `begins_anew` in
// crates/inspect.
static __always_inline int begins_anew(__u64 row, __u8 protocol, __u16 tcp_flags, __u16 now)
{
    const int was_silent = silence_of(row, now) > offload.idle_units;
    if (protocol != PROTOCOL_TCP)
        return was_silent;
    return begins_connection(tcp_flags) && ((row & TAP_ENDED) || was_silent);
}

static __always_inline struct tap_set *tap_set_of(const __u64 *words, int key_words)
{
    __u32 index = (__u64)hash_of_flow(offload.set_keys, words, key_words) * offload.tap_sets >> 32;
    return bpf_map_lookup_elem(&tap_sets, &index);
}

// Taps a packet without a verdict if the budget of its flow is not spent.
static __always_inline void tap(struct xdp_md *ctx, struct offload_counters *counters, const struct packet *packet,
                                const struct flow *flow, int key_words, __u32 check, __u64 now_ns, __u64 frame_bytes,
                                int is_reversed, enum tap_kind kind)
{
    const __u8 protocol = flow->words[key_words - 1] >> 32;
    const __u16 now = units_of(now_ns);
    struct tap_set *set = tap_set_of(flow->words, key_words);
    __u64 row, before;
    __u32 place;
    if (!set)
        return;
    before = row = tap_row_of(set, check, now, &place);
    if (kind == TAP_ANEW || begins_anew(row, protocol, packet->tcp_flags, now))
        row = (__u64)check << CHECK_SHIFT;
    row = (row & ~(0xffffULL << LAST_SEEN_SHIFT)) | (__u64)now << LAST_SEEN_SHIFT;
    if (packet->tcp_flags & (TCP_FIN | TCP_RST))
        row |= TAP_ENDED;
    if ((row & SPENT_MASK) < budget_of(protocol)) {
        if (put_tap(ctx, packet, flow, now_ns, frame_bytes, is_reversed, kind, offload.snap_bytes)) {
            row += 1;
            counters->taps += 1;
        } else {
            counters->taps_lost += 1;
        }
    }
    if (row != before)
        *(volatile __u64 *)&set->rows[place % TAP_WAYS] = row;
}

// The word of the verdict about a packet, or 0 if there is none. Then the packet is tapped.
static __always_inline __u64 verdict_of_packet(struct xdp_md *ctx, struct offload_counters *counters, const struct packet *packet,
                                               __u64 now_ns, __u64 frame_bytes, int key_words)
{
    struct flow flow = {};
    const int is_reversed = sort(ctx, packet, &flow, key_words);
    const __u32 check = check_of(flow.words, key_words);
    struct verdict *row = row_of_flow(flow.words, key_words);
    const __u64 word = word_of_row(row, check);
    enum tap_kind kind = TAP_PACKET;
    if (row && word & ACTION_MASK) {
        // A new connection with the key of a finished one may belong to another application.
        if (!begins_connection(packet->tcp_flags) || !is_over(*(volatile __u64 *)&row->seen_ns)) {
            counters->hits += 1;
            if (note_seen(row, now_ns, ends_of(packet->tcp_flags, is_reversed)) &&
                !put_tap(ctx, packet, &flow, now_ns, frame_bytes, is_reversed, TAP_END, 0))
                counters->ends_lost += 1;
            return word;
        }
        kind = TAP_ANEW;
    }
    counters->misses += 1;
    tap(ctx, counters, packet, &flow, key_words, check, now_ns, frame_bytes, is_reversed, kind);
    return 0;
}

static __always_inline int judge_flow(struct xdp_md *ctx, struct offload_counters *counters, const struct packet *packet,
                                      __u64 now_ns, __u64 frame_bytes, int key_words)
{
    const __u64 word = verdict_of_packet(ctx, counters, packet, now_ns, frame_bytes, key_words);
    if ((word & ACTION_MASK) == ACTION_DROP) {
        count_dropped(counters, packet->ip_length_bytes);
        return XDP_DROP;
    }
    return config.drops ? XDP_DROP : XDP_PASS;
}

// Decides what happens to a metered packet.
static __always_inline int judge(struct xdp_md *ctx, const struct packet *packet, __u64 now_ns, __u64 frame_bytes)
{
    struct offload_counters *counters = offload_counters_of_this_cpu();
    if (!counters)
        return XDP_PASS;
    if (packet->key[KEY_WORDS - 1])
        return judge_flow(ctx, counters, packet, now_ns, frame_bytes, KEY_WORDS);
    return judge_flow(ctx, counters, packet, now_ns, frame_bytes, KEY_WORDS_V4);
}

#ifndef BRIDGE
// `judge` for a program whose own stack is full: a program and the functions that it calls share
// 512 bytes. So the time is passed in the sample.
static __noinline int judge_planned(struct xdp_md *ctx, const struct packet *packet)
{
    const struct sample *sample = sample_of_this_cpu();
    if (!sample)
        return XDP_PASS;
    return judge(ctx, packet, sample->values[TIMESTAMP], frame_bytes(ctx));
}
#endif
