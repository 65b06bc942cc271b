// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Detects frames that come back: a group-addressed (multicast or broadcast) frame that came in at
// one port of a bridge and then, byte for byte the same, at the other. In that case a second path
// connects both sides, and such frames circulate forever. Only group-addressed frames are examined,
// because switches flood them. So a unicast frame costs one comparison.
#pragma once

#include "tap.h"

// Number of frames that are remembered.
#define ECHOES 1024
// Number of leading bytes that are hashed: they contain addresses, identification and checksum.
#define ECHO_BYTES 64
// How long a frame is remembered.
#define ECHO_NS (1ULL << 30)

struct echo {
    __u64 hash;
    // Time of arrival; the lowest bit is the port.
    __u64 seen;
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, ECHOES);
    __type(key, __u32);
    __type(value, struct echo);
} bridge_echoes SEC(".maps");

// Whether a frame is group-addressed: the lowest bit of its first byte (IEEE 802).
static __always_inline int is_to_group(struct xdp_md *ctx)
{
    const __u8 *frame = (const __u8 *)(long)ctx->data;
    if ((const void *)(frame + 1) > (const void *)(long)ctx->data_end)
        return 0;
    return *frame & 1;
}

// Returns whether the frame came in at the other port within the last ECHO_NS. Not inlined, so that
// other frames do not pay for its registers. CPUs that write one entry at the same time lose at
// most one of the two frames.
static __noinline int comes_back(struct xdp_md *ctx, __u32 port)
{
    __u32 place = 0;
    struct tapped *copy = bpf_map_lookup_elem(&tap_copy, &place);
    const __u64 now = bpf_ktime_get_coarse_ns() & ~1ULL;
    __u64 bytes = frame_bytes(ctx), hash;
    struct echo *echo;
    if (!copy)
        return 0;
    hash = bytes;
    if (bytes > ECHO_BYTES)
        bytes = ECHO_BYTES;
    __builtin_memset(copy->bytes, 0, ECHO_BYTES);
    if (!load_some(ctx, 0, copy->bytes, bytes))
        return 0;
    for (int i = 0; i < ECHO_BYTES / 8; i++) {
        hash = (hash ^ *(const __u64 *)(copy->bytes + 8 * i)) * 0x9e3779b97f4a7c15;
        hash ^= hash >> 32;
    }
    place = hash % ECHOES;
    echo = bpf_map_lookup_elem(&bridge_echoes, &place);
    if (!echo)
        return 0;
    if (echo->hash == hash && now - (echo->seen & ~1ULL) < ECHO_NS)
        return (echo->seen & 1) != port;
    echo->hash = hash;
    echo->seen = now | port;
    return 0;
}
