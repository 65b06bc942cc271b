// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// A bridge with two ports: a frame is forwarded to the other port, or dropped because of the
// verdict on its flow. No frame waits for user space.
//
//  frame ─▶ verdict? ─ drop ─▶ metered, dropped
//              │ pass, or none yet (a copy goes to user space: tap.h)
//              ▼
//           metered ─▶ redirected to the other port ─▶ sent │ refused │ dropped by its driver
//
// A redirect that the program requests may still fail, and only the kernel's tracepoints report
// that. So every frame is counted by its final fate:
//   received = redirected + dropped, by the cause
//   redirected = sent + too long + refused + dropped by the driver
#pragma once

#include "echo.h"

#define PORTS 2
// From asm-generic/errno.h.
#define TOO_LONG (-90)

// Why a frame is dropped.
enum drop_cause {
    // A verdict on its flow.
    BY_VERDICT,
    // Its flow is TCP or UDP and has no verdict yet.
    BY_DOUBT,
    // It is neither TCP nor UDP and has no verdict, or it belongs to no flow.
    BY_OTHERNESS,
    DROP_CAUSES,
};

// Counters of the frames received on one port.
struct bridge_port {
    __u64 redirected;
    __u64 dropped[DROP_CAUSES];
    // Redirected frames that would have been dropped without the dry run.
    __u64 would_drop;
    // Redirected frames that the table of ports refused.
    __u64 portless;
    // Redirected frames that had come in at the other port shortly before.
    __u64 came_back;
};

// Counters of one CPU, and the decision on the packet that it is processing.
struct bridging {
    struct bridge_port ports[PORTS];
    struct judgement now;
};
_Static_assert(sizeof(struct bridging) == 8 * (7 * PORTS + 4), "as in src/bridge/counters.rs");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct bridging);
} bridge_ledger SEC(".maps");

// Redirected frames by their fate, and by the port on which they were received.
struct fates {
    __u64 sent[PORTS];
    __u64 dropped_by_driver[PORTS];
    __u64 too_long[PORTS];
    __u64 refused[PORTS];
};
_Static_assert(sizeof(struct fates) == 8 * 4 * PORTS, "as in src/bridge/counters.rs");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct fates);
} bridge_fates SEC(".maps");

// Packets and IP bytes with a verdict, by the number of the rule that gave it. A dry run counts
// those that would have been dropped as dropped.
struct rule_count {
    __u64 packets_passed;
    __u64 bytes_passed;
    __u64 packets_dropped;
    __u64 bytes_dropped;
};
_Static_assert(sizeof(struct rule_count) == 32, "as in src/bridge/counters.rs");

// User space sets the number of rules.
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct rule_count);
} rule_counts SEC(".maps");

// The output port, by the index of the input port.
struct {
    __uint(type, BPF_MAP_TYPE_DEVMAP);
    __uint(max_entries, PORTS);
    __type(key, __u32);
    __type(value, __u32);
} bridge_ports SEC(".maps");

// The actions for packets without a verdict: each an `enum action`. Written by user space while the
// program runs.
struct bridge_actions {
    __u64 undecided;
    __u64 other;
};
_Static_assert(sizeof(struct bridge_actions) == 16, "as in src/bridge/mod.rs");

volatile struct bridge_actions bridge_actions SEC(".data.bridge");

static __always_inline struct bridging *bridging_of_this_cpu(void)
{
    __u32 only = 0;
    return bpf_map_lookup_elem(&bridge_ledger, &only);
}

static __always_inline __u32 port_of(struct xdp_md *ctx)
{
    return ctx->ingress_ifindex == config.interfaces[1];
}

static __always_inline void count_rule(__u32 rule, int drops, __u64 bytes)
{
    struct rule_count *count = bpf_map_lookup_elem(&rule_counts, &rule);
    if (!count)
        return;
    if (drops) {
        count->packets_dropped += 1;
        count->bytes_dropped += bytes;
    } else {
        count->packets_passed += 1;
        count->bytes_passed += bytes;
    }
}

// Counts a dropped frame, or in a dry run one that would be dropped. Returns whether to drop it.
static __always_inline int count_drop_at(struct xdp_md *ctx, struct bridging *bridging, enum drop_cause cause)
{
    struct bridge_port *port = &bridging->ports[port_of(ctx)];
    if (bridge.is_dry_run) {
        port->would_drop += 1;
        return 0;
    }
    port->dropped[cause] += 1;
    return 1;
}

// Decides about a frame that belongs to no flow.
static __always_inline void judge_other(struct xdp_md *ctx, struct bridging *bridging)
{
    bridging->now.is_dropped = bridge_actions.other == ACTION_DROP && count_drop_at(ctx, bridging, BY_OTHERNESS);
}

// Decides about a packet of a flow.
static __always_inline void judge_packet(struct xdp_md *ctx, struct bridging *bridging, struct offload_counters *counters,
                                         const struct packet *packet, __u64 now_ns, __u64 frame_bytes, int key_words)
{
    const __u64 word = verdict_of_packet(ctx, counters, packet, now_ns, frame_bytes, key_words);
    const __u64 action = word & ACTION_MASK;
    const __u8 protocol = packet->key[key_words - 1] >> 32;
    const __u64 bytes = packet->ip_length_bytes;
    struct judgement *now = &bridging->now;
    enum drop_cause cause = BY_VERDICT;
    int drops;
    now->rule = word >> RULE_SHIFT & RULE_MASK;
    if (action) {
        drops = action == ACTION_DROP;
        now->verdict = !drops ? PASSED : bridge.is_dry_run ? WOULD_DROP : DROPPED;
        count_rule(now->rule, drops, bytes);
    } else {
        const int is_other = protocol != PROTOCOL_TCP && protocol != PROTOCOL_UDP;
        drops = (is_other ? bridge_actions.other : bridge_actions.undecided) == ACTION_DROP;
        cause = is_other ? BY_OTHERNESS : BY_DOUBT;
        now->verdict = UNDECIDED;
    }
    now->is_dropped = drops && count_drop_at(ctx, bridging, cause);
    now->dropped_bytes = now->is_dropped ? bytes : 0;
    if (now->is_dropped && cause == BY_VERDICT)
        count_dropped(counters, bytes);
}

static __always_inline void judge_bridged(struct xdp_md *ctx, struct bridging *bridging, const struct packet *packet, __u64 now_ns,
                                          __u64 frame_bytes)
{
    struct offload_counters *counters = offload_counters_of_this_cpu();
    if (!counters)
        return;
    if (packet->key[KEY_WORDS - 1])
        judge_packet(ctx, bridging, counters, packet, now_ns, frame_bytes, KEY_WORDS);
    else
        judge_packet(ctx, bridging, counters, packet, now_ns, frame_bytes, KEY_WORDS_V4);
}

// `judge_bridged` for the program of plans. Not inlined: that program's own stack is full (see
// `judge_planned`).
static __noinline int judge_bridged_planned(struct xdp_md *ctx, const struct packet *packet)
{
    struct sample *sample = sample_of_this_cpu();
    struct bridging *bridging = bridging_of_this_cpu();
    if (!sample || !bridging)
        return 0;
    judge_bridged(ctx, bridging, packet, sample->values[TIMESTAMP], frame_bytes(ctx));
    note(sample, &sample->present, VERDICT, 1, bridging->now.verdict);
    note(sample, &sample->present, RULE, 1, bridging->now.rule);
    note(sample, &sample->present, PACKET_DROPPED, 1, bridging->now.is_dropped);
    note(sample, &sample->present, BYTES_DROPPED, 1, bridging->now.dropped_bytes);
    return 0;
}

// The last step for every frame, after its decision and, if it is a packet, after metering.
static __always_inline int leave(struct xdp_md *ctx, struct bridging *bridging)
{
    const __u32 place = port_of(ctx);
    struct bridge_port *port = &bridging->ports[place];
    long action;
    if (bridging->now.is_dropped)
        return XDP_DROP;
    port->redirected += 1;
    if (is_to_group(ctx) && comes_back(ctx, place))
        port->came_back += 1;
    action = bpf_redirect_map(&bridge_ports, place, 0);
    if (action != XDP_REDIRECT)
        port->portless += 1;
    return action;
}

// The parts of the kernel's types that are read below.
struct net {
    __u64 net_cookie;
} __attribute__((preserve_access_index));

struct net_device {
    int ifindex;
    struct {
        struct net *net;
    } nd_net;
} __attribute__((preserve_access_index));

// The index of a port in the counters; PORTS if the device is not one of the bridge's ports.
static __always_inline __u32 place_of_device(const struct net_device *device)
{
    const __u32 index = device->ifindex;
    if (device->nd_net.net->net_cookie != bridge.network)
        return PORTS;
    if (index == config.interfaces[0])
        return 0;
    return index == config.interfaces[1] ? 1 : PORTS;
}

static __always_inline struct fates *fates_of_this_cpu(void)
{
    __u32 only = 0;
    return bpf_map_lookup_elem(&bridge_fates, &only);
}

// Redirected frames of a port whose fate this CPU has not counted yet. The kernel hands over a bulk
// in the poll that redirected its frames. So any excess over this number was redirected by the
// program that was attached before this one.
static __always_inline __u64 outstanding(const struct bridging *bridging, const struct fates *fates, __u32 place)
{
    const struct bridge_port *port = &bridging->ports[place];
    return port->redirected - port->portless - fates->sent[place] - fates->dropped_by_driver[place] - fates->too_long[place] -
           fates->refused[place];
}

// Arguments: (from, to, sent, dropped, error). A bulk of redirected frames was handed to the driver
// of the other port.
SEC("tp_btf/xdp_devmap_xmit")
int note_sent(__u64 *ctx)
{
    const __u32 place = place_of_device((const struct net_device *)ctx[0]);
    struct fates *fates = fates_of_this_cpu();
    const struct bridging *bridging = bridging_of_this_cpu();
    __u64 left, sent = (__u32)ctx[2], dropped = (__u32)ctx[3];
    if (!fates || !bridging || place >= PORTS)
        return 0;
    left = outstanding(bridging, fates, place);
    sent = sent < left ? sent : left;
    dropped = dropped < left - sent ? dropped : left - sent;
    fates->sent[place] += sent;
    fates->dropped_by_driver[place] += dropped;
    return 0;
}

// Arguments: (from, program, target, error, ...). A redirect was refused, and the frame dropped.
// The kernel compares a frame's length with the MTU of the output port.
SEC("tp_btf/xdp_redirect_err")
int note_refused(__u64 *ctx)
{
    const __u32 place = place_of_device((const struct net_device *)ctx[0]);
    struct fates *fates = fates_of_this_cpu();
    const struct bridging *bridging = bridging_of_this_cpu();
    if (!fates || !bridging || place >= PORTS || !outstanding(bridging, fates, place))
        return 0;
    if ((__s32)ctx[3] == TOO_LONG)
        fates->too_long[place] += 1;
    else
        fates->refused[place] += 1;
    return 0;
}
