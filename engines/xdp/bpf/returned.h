// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// For tests: what the program returned for each of many packets, which a test run does not tell.
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

// `fire`, counted.
SEC("xdp.frags")
int fire_counted(struct xdp_md *ctx)
{
    spread(ctx);
    return count_returned(take(ctx));
}
