// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// For tests and measurements: spreads packets of one frame over flows. Compiles to nothing if no
// flows are configured.
#pragma once

#include "load.h"

// Number of interleaved packet trains.
#define TRAINS 32
// Mean number of packets in a train.
#define TRAIN_PACKETS 5

struct trains {
    __u32 flow[TRAINS];
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct trains);
} trains SEC(".maps");

// The rank of a flow by Zipf's law with exponent 1: log-uniform, by octaves.
static __always_inline __u32 zipf(__u32 random)
{
    __u64 at = (__u64)random * config.fire_octaves;
    __u32 octave = at >> 32;
    __u64 rank = (1ULL << octave) + ((at & 0xffffffff) << octave >> 32);
    return rank >= config.fire_flows ? rank % config.fire_flows : rank;
}

static __always_inline __u32 next_flow(void)
{
    __u32 only = 0, random = bpf_get_prandom_u32();
    struct trains *under_way = bpf_map_lookup_elem(&trains, &only);
    if (!config.fire_octaves || !under_way)
        return (__u64)random * config.fire_flows >> 32;
    __u32 *train = &under_way->flow[random % TRAINS];
    if (random / TRAINS % TRAIN_PACKETS == 0)
        *train = zipf(bpf_get_prandom_u32());
    return *train;
}

// Gives an IPv4 frame one of `fire_flows` random source addresses.
static __always_inline void spread(struct xdp_md *ctx)
{
    __u8 *frame = (__u8 *)(long)ctx->data;
    if (!config.fire_flows || (void *)(frame + 34) > (void *)(long)ctx->data_end)
        return;
    *(__u32 *)(frame + 26) = next_flow();
}
