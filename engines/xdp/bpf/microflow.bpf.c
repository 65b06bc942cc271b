// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The XDP program: every packet goes into the microflow table, every other frame into a counter.
// Then all frames are passed on, or all are dropped.

#ifdef BOUND
#include "bound.h"
#endif
#include "parse.h"
#include "planned.h"
#include "spread.h"
#include "table.h"
#include "ticks.h"
#include "unparsed.h"
#ifdef OFFLOAD
#include "orders.h"
#endif
#ifdef BRIDGE
#include "bridge.h"
#endif

#if defined(BOUND) || defined(BRIDGE)
// Only programs under the GPL may use driver metadata, or read the kernel's structures
// (docs/decisions/0004-licence-of-the-program.md).
char LICENSE[] SEC("license") = "GPL and additional rights";
#else
char LICENSE[] SEC("license") = "Apache-2.0";
#endif

// The index of the interface that received the frame.
static __always_inline __u32 interface_of(struct xdp_md *ctx)
{
    __u32 place = 0;
    if (config.interface_count < 2)
        return place;
#pragma unroll
    for (__u32 i = 1; i < INTERFACES; i++) {
        if (i < config.interface_count && ctx->ingress_ifindex == config.interfaces[i])
            place = i;
    }
    return place;
}

static __always_inline void count_received(struct xdp_md *ctx, struct counters *counters, __u64 bytes)
{
    __u32 place = interface_of(ctx);
    counters->packets_received[place] += 1;
    counters->bytes_received[place] += bytes;
    if (bytes > config.longest_frame_bytes)
        counters->packets_merged[place] += 1;
}

static __always_inline void count_rejected(struct counters *counters, __u32 reason, __u64 bytes)
{
    if (reason < REASON_COUNT) {
        counters->rejected_packets[reason] += 1;
        counters->rejected_bytes[reason] += bytes;
    }
}

#ifndef BOUND
static __always_inline int take(struct xdp_md *ctx)
{
    struct moment moment = this_moment();
    struct counters *counters = counters_of_this_cpu();
    struct packet packet = {};
    __u64 bytes;
    __u32 reason = PARSED, offset;
    int is_longer;
    if (!counters)
        return XDP_PASS;
#ifdef BRIDGE
    struct bridging *bridging = bridging_of_this_cpu();
    if (!bridging)
        return XDP_PASS;
    moment.judgement = &bridging->now;
#endif
    offset = plain(ctx, &packet);
    bytes = offset ? frame_bytes_with(ctx, offset + packet.ip_length_bytes) : frame_bytes(ctx);
    count_received(ctx, counters, bytes);
    if (offset) {
        is_longer = offset + packet.ip_length_bytes > bytes;
    } else {
        // Not earlier: clearing a structure of this size would slow down every plain frame.
        struct network network = {};
        reason = walk(ctx, &packet, &network);
        is_longer = network.is_longer_than_frame;
    }
    if (reason == (__u32)PARSED) {
        if (is_longer)
            counters->packets_longer_than_frame += 1;
#ifdef BRIDGE
        // Judged before it is metered, because its record contains the decision.
        judge_bridged(ctx, bridging, &packet, moment.now_ns, bytes);
#endif
        meter_packet(counters, &packet, moment);
#if defined(OFFLOAD) && !defined(BRIDGE)
        return judge(ctx, &packet, moment.now_ns, bytes);
#endif
    } else {
        count_rejected(counters, reason, bytes);
        hand_up(ctx, bytes, moment.now_ns);
#ifdef BRIDGE
        judge_other(ctx, bridging);
#endif
    }
#ifdef BRIDGE
    return leave(ctx, bridging);
#else
    return config.drops ? XDP_DROP : XDP_PASS;
#endif
}
#endif

// `take` for records of a plan: a separate function, so that `take` stays small. If the program is
// bound to a device, it also asks the driver.
static __always_inline int take_planned(struct xdp_md *ctx)
{
    struct moment moment = this_moment();
    struct counters *counters = counters_of_this_cpu();
    struct sample *sample = sample_of_this_cpu();
    struct packet packet = {};
    struct network network = {};
    __u64 bytes = frame_bytes(ctx);
    __u32 reason;
    if (!counters || !sample)
        return XDP_PASS;
#ifdef BRIDGE
    struct bridging *bridging = bridging_of_this_cpu();
    if (!bridging)
        return XDP_PASS;
    moment.judgement = &bridging->now;
#endif
    network.frame_bytes = bytes;
    reason = parse_placed(ctx, &packet, &network);
#ifdef BOUND
    bytes += put_tag_back(ctx, &network);
#endif
    count_received(ctx, counters, bytes);
    if (reason == (__u32)PARSED) {
        counters->packets_longer_than_frame += network.is_longer_than_frame;
        take_sample(ctx, &network, &packet, sample);
#ifdef BOUND
        sample->values[FRAME_LENGTH] = bytes;
        note_hardware_timestamp(ctx, sample);
#endif
#ifdef OFFLOAD
        sample->values[TIMESTAMP] = moment.now_ns;
#endif
#ifdef BRIDGE
        judge_bridged_planned(ctx, &packet);
#endif
        meter_planned(counters, &packet, sample, moment);
#if defined(OFFLOAD) && !defined(BRIDGE)
        return judge_planned(ctx, &packet);
#endif
    } else {
        count_rejected(counters, reason, bytes);
        hand_up(ctx, network.frame_bytes, moment.now_ns);
#ifdef BRIDGE
        judge_other(ctx, bridging);
#endif
    }
#ifdef BRIDGE
    return leave(ctx, bridging);
#else
    return config.drops ? XDP_DROP : XDP_PASS;
#endif
}

#ifdef BOUND

SEC("xdp.frags")
int bound(struct xdp_md *ctx)
{
    return take_planned(ctx);
}

#else

SEC("xdp.frags")
int microflows(struct xdp_md *ctx)
{
    return take(ctx);
}

SEC("xdp.frags")
int planned(struct xdp_md *ctx)
{
    // Not in a separate program such as `fire`, because this one is long.
    spread(ctx);
    return take_planned(ctx);
}

#include "tested.h"
#ifdef OFFLOAD
#include "returned.h"
#endif

#endif
