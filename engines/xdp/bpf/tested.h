// SPDX-License-Identifier: Apache-2.0
// Programs that only tests and measurements load.
#pragma once

// What the last frame was to `parse`.
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct outcome);
} parsed SEC(".maps");

// For tests and measurements: reads the frame and says what it is.
SEC("xdp.frags")
int parse(struct xdp_md *ctx)
{
    __u32 only = 0;
    struct packet packet = {};
    struct outcome *outcome = bpf_map_lookup_elem(&parsed, &only);
    if (!outcome)
        return XDP_PASS;
    outcome->reason = parse_frame(ctx, &packet);
    outcome->packet = packet;
    return XDP_PASS;
}

// Flows of which a train of packets is under way.
#define TRAINS 32
// Packets of a train, on average.
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

// Gives an IPv4 frame one of `fire_flows` source addresses by chance.
static __always_inline void spread(struct xdp_md *ctx)
{
    __u8 *frame = (__u8 *)(long)ctx->data;
    if ((void *)(frame + 34) > (void *)(long)ctx->data_end || !config.fire_flows)
        return;
    *(__u32 *)(frame + 26) = next_flow();
}

// For measurements: what spreading costs.
SEC("xdp.frags")
int spread_only(struct xdp_md *ctx)
{
    spread(ctx);
    return XDP_PASS;
}

// For tests and measurements: the engine on as many flows as are wanted, without a network.
SEC("xdp.frags")
int fire(struct xdp_md *ctx)
{
    spread(ctx);
    return take(ctx);
}

// The same packets, sent from an interface.
SEC("xdp")
int send(struct xdp_md *ctx)
{
    spread(ctx);
    return bpf_redirect(config.fire_interface, 0);
}

// For measurements: what a test run costs without any work.
SEC("xdp.frags")
int pass(struct xdp_md *ctx __attribute__((unused)))
{
    return XDP_PASS;
}
