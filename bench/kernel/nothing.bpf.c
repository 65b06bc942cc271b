// SPDX-License-Identifier: Apache-2.0
// XDP programs that do nothing. They show the most that a link of this machine can carry, however it is metered.
#include <linux/bpf.h>

#define PROGRAM(name) __attribute__((section(name), used))

PROGRAM("xdp_pass") int pass(struct xdp_md *ctx)
{
    (void)ctx;
    return XDP_PASS;
}

PROGRAM("xdp_drop") int drop(struct xdp_md *ctx)
{
    (void)ctx;
    return XDP_DROP;
}
