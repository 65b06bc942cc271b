// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Bytes of a frame at any place, also of a frame in several buffers.
#pragma once

#include <linux/bpf.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "layout.h"

// In a section of its own, so that its map holds nothing else.
const volatile struct config config SEC(".rodata.config");

// No driver goes on to a second buffer of a frame before its first one holds as much, unless it splits headers off.
#define FIRST_BUFFER_BYTES 1024

static __always_inline __u64 frame_bytes(struct xdp_md *ctx)
{
    const void *end = (const void *)(long)ctx->data_end;
    const __u64 bytes = end - (const void *)(long)ctx->data;
    // Most frames end in it, and the kernel need not be called.
    if (!config.splits_headers && bytes < FIRST_BUFFER_BYTES)
        return bytes;
    return bpf_xdp_get_buff_len(ctx);
}

// Whether `length` bytes at `offset` were there.
static __always_inline int load(struct xdp_md *ctx, __u32 offset, void *to, __u32 length)
{
    return bpf_xdp_load_bytes(ctx, offset, to, length) == 0;
}

// The same of as many bytes as are found out while it runs, which are at least one. A comparison with 0 does not say so to verifiers of
// older kernels (6.1).
static __always_inline int load_some(struct xdp_md *ctx, __u32 offset, void *to, __u32 length)
{
    asm volatile("if %0 > 0 goto +1\n\t%0 = 1" : "+r"(length));
    return load(ctx, offset, to, length);
}

// The same of bytes that lie before `end` wholly.
static __always_inline int load_before(struct xdp_md *ctx, __u64 end, __u64 offset, void *to, __u32 length)
{
    return offset + length <= end && load(ctx, offset, to, length);
}
