// SPDX-License-Identifier: Apache-2.0
// Programs that do nothing: what a link of this machine carries at most, whatever meters it.
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
