// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Frames that are not packets, handed up whole on request. Without a request, the verifier removes
// this code.
#pragma once

#include "table.h"

// Maximum bytes handed up of a frame; src/unparsed.rs has the same limit.
#define MAX_UNPARSED_BYTES 16384

// Written before the program is loaded, and constant for the verifier.
struct unparsed_config {
    // Bytes kept of a frame; 0: frames are not handed up.
    __u32 snap_bytes;
    __u32 padding;
};
_Static_assert(sizeof(struct unparsed_config) == 8, "as in src/unparsed.rs");

const volatile struct unparsed_config unparsed_config SEC(".rodata.unparsed");

// An item of the ring, which ends where its length says.
struct unparsed_frame {
    __u64 time_ns;
    // Length on the wire.
    __u64 frame_bytes;
    __u8 bytes[MAX_UNPARSED_BYTES];
};
#define UNPARSED_HEADER_BYTES 16
_Static_assert(sizeof(struct unparsed_frame) == UNPARSED_HEADER_BYTES + MAX_UNPARSED_BYTES, "as in src/unparsed.rs");

// A frame is assembled here, because its length is not known in advance.
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct unparsed_frame);
} unparsed_copy SEC(".maps");

// A ring of its own, so that such frames take no room from records. User space sets its size.
struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 4096);
} unparsed SEC(".maps");

// Frames for which the ring had no room.
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u64);
} unparsed_lost SEC(".maps");

static __always_inline void hand_up(struct xdp_md *ctx, __u64 frame_bytes, __u64 now_ns)
{
    __u32 only = 0, kept = unparsed_config.snap_bytes;
    struct unparsed_frame *frame;
    __u64 *lost;
    if (!kept)
        return;
    frame = bpf_map_lookup_elem(&unparsed_copy, &only);
    lost = bpf_map_lookup_elem(&unparsed_lost, &only);
    if (!frame || !lost)
        return;
    if (kept > frame_bytes)
        kept = frame_bytes;
    // In a register whose bound the verifier has seen, even if the compiler can prove the bound
    // otherwise.
    barrier_var(kept);
    if (kept == 0 || kept > MAX_UNPARSED_BYTES)
        return;
    frame->time_ns = now_ns;
    frame->frame_bytes = frame_bytes;
    if (!load_some(ctx, 0, frame->bytes, kept) ||
        bpf_ringbuf_output(&unparsed, frame, UNPARSED_HEADER_BYTES + kept, BPF_RB_NO_WAKEUP))
        *lost += 1;
}
