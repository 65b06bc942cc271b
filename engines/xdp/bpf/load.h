// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Reads bytes of a frame at any offset, also from a frame with several buffers.
#pragma once

#include <linux/bpf.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "layout.h"

// In its own section, so that its map contains nothing else.
const volatile struct config config SEC(".rodata.config");

static __always_inline __u64 frame_bytes(struct xdp_md *ctx)
{
    return bpf_xdp_get_buff_len(ctx);
}

// Length of the shortest frame on links that pad frames.
#define PADDED_BYTES 60
// Drivers that fill one buffer before they use the next have buffers of at least this size.
#define SMALLEST_BUFFER_BYTES 1024

// The length of a frame whose datagram ends at `datagram_end`, usually without calling the kernel.
// If the first buffer holds that end and is not full, it also holds the frame's end. But some
// drivers leave the first buffer empty, and some split headers and data: padding and link trailers
// after a datagram without data may then be in another buffer.
static __always_inline __u64 frame_bytes_with(struct xdp_md *ctx, __u64 datagram_end)
{
    const void *end = (const void *)(long)ctx->data_end;
    const __u64 bytes = end - (const void *)(long)ctx->data;
    if (!config.splits_headers && bytes >= PADDED_BYTES && bytes < SMALLEST_BUFFER_BYTES && bytes >= datagram_end)
        return bytes;
    return frame_bytes(ctx);
}

// Reads `length` bytes at `offset`; returns whether they were there.
static __always_inline int load(struct xdp_md *ctx, __u32 offset, void *to, __u32 length)
{
    return bpf_xdp_load_bytes(ctx, offset, to, length) == 0;
}

// Reads a variable number of bytes, at least one. Verifiers of older kernels (6.1) do not learn
// this bound from a comparison with 0.
static __always_inline int load_some(struct xdp_md *ctx, __u32 offset, void *to, __u32 length)
{
    asm volatile("if %0 > 0 goto +1\n\t%0 = 1" : "+r"(length));
    return load(ctx, offset, to, length);
}

// Reads bytes if all of them lie before `end`.
static __always_inline int load_before(struct xdp_md *ctx, __u64 end, __u64 offset, void *to, __u32 length)
{
    return offset + length <= end && load(ctx, offset, to, length);
}
