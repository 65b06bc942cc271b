// SPDX-License-Identifier: Apache-2.0
// The XDP program: every packet into the microflow table, every other frame into a counter, all of them passed on, or all dropped.

#include "parse.h"
#include "unparsed.h"

char LICENSE[] SEC("license") = "Apache-2.0";

// The place of the interface that the frame came in by. Where there is one, nothing is left of this.
static __always_inline __u32 interface_of(struct xdp_md *ctx)
{
    __u32 place = 0;
#pragma unroll
    for (__u32 i = 1; i < INTERFACES; i++) {
        if (i < config.interface_count && ctx->ingress_ifindex == config.interfaces[i])
            place = i;
    }
    return place;
}

static __always_inline int take(struct xdp_md *ctx)
{
    struct counters *counters = counters_of_this_cpu();
    struct packet packet = {};
    __u64 bytes = frame_bytes(ctx);
    __u32 place = interface_of(ctx);
    __u32 reason;
    if (!counters)
        return XDP_PASS;
    counters->packets_received[place] += 1;
    counters->bytes_received[place] += bytes;
    reason = parse_frame(ctx, &packet);
    if (reason == (__u32)PARSED) {
        counters->frame_bytes_metered += bytes;
        meter_packet(counters, &packet);
    } else if (reason < REASON_COUNT) {
        counters->rejected_packets[reason] += 1;
        counters->rejected_bytes[reason] += bytes;
        hand_up(ctx, bytes);
    }
    return config.drops ? XDP_DROP : XDP_PASS;
}

SEC("xdp.frags")
int microflows(struct xdp_md *ctx)
{
    return take(ctx);
}

#include "tested.h"
