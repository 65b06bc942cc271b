// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// For tests: counts what the program returned over many packets. A test run reports only the last
// value.
#pragma once

#define RETURNED 8

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, RETURNED);
    __type(key, __u32);
    __type(value, __u64);
} returned SEC(".maps");

static __always_inline int count_returned(__u32 action)
{
    __u64 *count = bpf_map_lookup_elem(&returned, &action);
    if (count)
        *count += 1;
    return action;
}

// `fire`, with its return values counted.
SEC("xdp.frags")
int fire_counted(struct xdp_md *ctx)
{
    spread(ctx);
    return count_returned(take(ctx));
}

// Counts and drops the frames that arrive at the far end of a bridge.
SEC("xdp.frags")
int sink(struct xdp_md *ctx __attribute__((unused)))
{
    return count_returned(XDP_DROP);
}

#ifdef BRIDGE
// For measurements: a bridge that only redirects.
SEC("xdp.frags")
int redirect_alone(struct xdp_md *ctx)
{
    return bpf_redirect_map(&bridge_ports, port_of(ctx), 0);
}
#endif
