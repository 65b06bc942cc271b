// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Where the kernel's ticks lie on its monotonic clock, for user space, which can read the clock alone.
#pragma once

#include "load.h"

volatile struct tick tick SEC(".data.tick");

// Run by user space, before packets come.
SEC("xdp")
int read_tick(struct xdp_md *ctx __attribute__((unused)))
{
    tick.number = bpf_jiffies64();
    tick.read_ns = bpf_ktime_get_ns();
    return XDP_PASS;
}
