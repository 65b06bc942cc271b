// SPDX-License-Identifier: Apache-2.0
// The XDP program: every packet into the microflow table, every other frame into a counter, all of them passed on.

#include "parse.h"
#include "table.h"

char LICENSE[] SEC("license") = "Apache-2.0";

// What the last frame was to `parse`.
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct outcome);
} parsed SEC(".maps");

SEC("xdp.frags")
int microflows(struct xdp_md *ctx)
{
    struct counters *counters = counters_of_this_cpu();
    struct packet packet = {};
    __u64 bytes = frame_bytes(ctx);
    __u32 reason;
    if (!counters)
        return XDP_PASS;
    counters->packets_received += 1;
    counters->bytes_received += bytes;
    reason = parse_frame(ctx, &packet);
    if (reason == (__u32)PARSED) {
        meter(counters, &packet);
    } else if (reason < REASON_COUNT) {
        counters->rejected_packets[reason] += 1;
        counters->rejected_bytes[reason] += bytes;
    }
    return XDP_PASS;
}

// For tests and measurements: reads the frame and says what it is.
SEC("xdp.frags")
int parse(struct xdp_md *ctx)
{
    __u32 only = 0;
    struct packet packet = {};
    struct outcome *outcome = bpf_map_lookup_elem(&parsed, &only);
    if (!outcome)
        return XDP_PASS;
    outcome->reason = parse_frame(ctx, &packet);
    outcome->packet = packet;
    return XDP_PASS;
}

// For measurements: what a test run costs without any work.
SEC("xdp.frags")
int pass(struct xdp_md *ctx __attribute__((unused)))
{
    return XDP_PASS;
}
