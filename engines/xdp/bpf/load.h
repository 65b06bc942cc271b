// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Bytes of a frame at any place, also of a frame in several buffers.
#pragma once

#include <linux/bpf.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "layout.h"

// In a section of its own, so that its map holds nothing else.
const volatile struct config config SEC(".rodata.config");

static __always_inline __u64 frame_bytes(struct xdp_md *ctx)
{
    return bpf_xdp_get_buff_len(ctx);
}

// What the shortest frame has where links pad them.
#define PADDED_BYTES 60
// Drivers that fill one buffer before the next have larger ones.
#define SMALLEST_BUFFER_BYTES 1024

// The same, mostly without calling the kernel, of a frame whose datagram ends `datagram_end` bytes from its start. Where that is in a
// first buffer that is not full, so is the frame's end. Some drivers leave the first one empty, and some part headers and data: of a
// datagram without data, padding and what links append may lie elsewhere then.
static __always_inline __u64 frame_bytes_with(struct xdp_md *ctx, __u64 datagram_end)
{
    const void *end = (const void *)(long)ctx->data_end;
    const __u64 bytes = end - (const void *)(long)ctx->data;
    if (!config.splits_headers && bytes >= PADDED_BYTES && bytes < SMALLEST_BUFFER_BYTES && bytes >= datagram_end)
        return bytes;
    return frame_bytes(ctx);
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
