// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The times of the kernel's ticks on its monotonic clock, for user space, which can only read that
// clock.
#pragma once

#include "load.h"

volatile struct tick tick SEC(".data.tick");

// Run by user space before packets arrive.
SEC("xdp")
int read_tick(struct xdp_md *ctx __attribute__((unused)))
{
    tick.number = bpf_jiffies64();
    tick.read_ns = bpf_ktime_get_ns();
    return XDP_PASS;
}
