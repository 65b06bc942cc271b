// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Records for which the ring had no room: the sums of their packets and bytes, and the flows they
// belong to, so that these can be reported as short. Records that find room do not take this path.
#pragma once

#include "layout.h"

// Maximum number of flows that are listed. The list takes at most 3 MiB, and is longer than a
// person reads. Dropped records of further flows are only counted together.
#define SHORT_FLOWS 16384
#define SHORT_KEY_WORDS 16

// The missing part of a flow. src/short.rs mirrors it.
struct short_flow {
    __u64 microflows;
    __u64 packets;
    __u64 bytes;
};
_Static_assert(sizeof(struct short_flow) == 24, "as in src/short.rs");

// Keyed by the flow key, whose length user space sets. The memory is preallocated, so that an
// insertion fails only if the map is full.
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, SHORT_FLOWS);
    __uint(key_size, 8 * KEY_WORDS);
    __type(value, struct short_flow);
} short_flows SEC(".maps");

// A dropped record, kept until its row's lock is released: helpers must not be called under a lock.
struct dropped {
    __u64 packets;
    __u64 bytes;
    __u64 key[SHORT_KEY_WORDS];
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct dropped);
} dropped_records SEC(".maps");

static __always_inline struct dropped *dropped_of_this_cpu(void)
{
    __u32 only = 0;
    return bpf_map_lookup_elem(&dropped_records, &only);
}

static __always_inline void keep_amounts(struct dropped *dropped, __u64 packets, __u64 bytes, const __u64 *key, __u32 key_words)
{
    dropped->packets = packets;
    dropped->bytes = bytes;
#pragma unroll
    for (__u32 i = 0; i < SHORT_KEY_WORDS; i++)
        dropped->key[i] = i < key_words ? key[i] : 0;
}

static __always_inline void keep_dropped(struct dropped *dropped, const struct base *row, const __u64 *key, __u32 key_words)
{
    keep_amounts(dropped, row->packets, row->bytes, key, key_words);
}

// After a failed insertion no other is tried, so that dropping records stays cheap.
static __always_inline struct short_flow *short_flow_of(struct counters *counters, const struct dropped *dropped)
{
    struct short_flow *flow = bpf_map_lookup_elem(&short_flows, dropped->key);
    struct short_flow none = {};
    if (flow || counters->microflows_unnamed)
        return flow;
    bpf_map_update_elem(&short_flows, dropped->key, &none, BPF_NOEXIST);
    return bpf_map_lookup_elem(&short_flows, dropped->key);
}

static __noinline void count_drop(struct counters *counters, const struct dropped *dropped)
{
    struct short_flow *flow;
    counters->microflows_dropped += 1;
    counters->packets_dropped += dropped->packets;
    counters->bytes_dropped += dropped->bytes;
    flow = short_flow_of(counters, dropped);
    if (!flow) {
        counters->microflows_unnamed += 1;
        return;
    }
    // Other CPUs may drop records of this flow.
    __sync_fetch_and_add(&flow->microflows, 1);
    __sync_fetch_and_add(&flow->packets, dropped->packets);
    __sync_fetch_and_add(&flow->bytes, dropped->bytes);
}

// Drops the record of a packet on a CPU without a table, because it was added after the start.
// Inlined, because a packet whose address is passed does not stay in registers.
static __always_inline void drop_packet(struct counters *counters, const struct packet *packet, const __u64 *key, __u32 key_words)
{
    struct dropped *dropped = dropped_of_this_cpu();
    if (!dropped)
        return;
    keep_amounts(dropped, 1, packet->ip_length_bytes, key, key_words);
    counters->evicted_collision += 1;
    count_drop(counters, dropped);
}
