// SPDX-License-Identifier: Apache-2.0
// The XDP program: every packet into the microflow table, every other frame into a counter, all of them passed on.

#include "parse.h"
#include "table.h"

char LICENSE[] SEC("license") = "Apache-2.0";

static __always_inline int take(struct xdp_md *ctx)
{
    struct counters *counters = counters_of_this_cpu();
    struct packet packet = {};
    __u64 bytes = frame_bytes(ctx);
    __u32 reason;
    if (!counters)
        return XDP_PASS;
    counters->packets_received += 1;
    reason = parse_frame(ctx, &packet);
    if (reason == (__u32)PARSED) {
        counters->frame_bytes_metered += bytes;
        meter_packet(counters, &packet);
    } else if (reason < REASON_COUNT) {
        counters->rejected_packets[reason] += 1;
        counters->rejected_bytes[reason] += bytes;
    }
    return XDP_PASS;
}

SEC("xdp.frags")
int microflows(struct xdp_md *ctx)
{
    return take(ctx);
}

#include "tested.h"
