// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Programs that only tests and measurements load.
#pragma once

// The result of `parse` for the last frame.
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct outcome);
} parsed SEC(".maps");

// For tests and measurements: parses the frame and stores the result.
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

// For measurements: the cost of spreading.
SEC("xdp.frags")
int spread_only(struct xdp_md *ctx)
{
    spread(ctx);
    return XDP_PASS;
}

// For tests and measurements: the engine with a given number of flows, without a network.
SEC("xdp.frags")
int fire(struct xdp_md *ctx)
{
    spread(ctx);
    return take(ctx);
}

// Sends packets spread over flows from an interface.
SEC("xdp")
int send(struct xdp_md *ctx)
{
    spread(ctx);
    return bpf_redirect(config.fire_interface, 0);
}

// For measurements: the cost of the clock.
SEC("xdp.frags")
int clock_only(struct xdp_md *ctx __attribute__((unused)))
{
    return read_clock() ? XDP_PASS : XDP_DROP;
}

// For measurements: the cost of a test run without work.
SEC("xdp.frags")
int pass(struct xdp_md *ctx __attribute__((unused)))
{
    return XDP_PASS;
}
