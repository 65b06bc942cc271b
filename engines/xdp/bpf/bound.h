// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Metadata from the driver that the frame does not contain: the card's receive time, and a tag that
// the card removed. The kernel only provides it to programs that are bound to a device when they
// are loaded (Linux, Documentation/networking/xdp-rx-metadata.rst).
#pragma once

#include "inputs.h"
#include "place.h"

// Both return 0 if the driver has the value. Kernels before 6.3 lack the first, kernels before 6.8
// the second.
extern int bpf_xdp_metadata_rx_timestamp(const struct xdp_md *ctx, __u64 *timestamp_ns) __ksym __weak;
extern int bpf_xdp_metadata_rx_vlan_tag(const struct xdp_md *ctx, __be16 *protocol, __u16 *control) __ksym __weak;

#define TAG_BYTES 4

// Puts the tag that the driver removed before those of the frame. Returns the number of its bytes.
static __always_inline __u64 put_tag_back(struct xdp_md *ctx, struct network *network)
{
    __be16 protocol;
    __u16 control;
    if (!bpf_ksym_exists(bpf_xdp_metadata_rx_vlan_tag) || bpf_xdp_metadata_rx_vlan_tag(ctx, &protocol, &control))
        return 0;
    network->inner_tag_control = network->tag_control;
    network->tag_control = control;
    if (network->tags < 2)
        network->tags += 1;
    return TAG_BYTES;
}

// Drivers return a time of 0 if they have none for this frame.
static __always_inline void note_hardware_timestamp(struct xdp_md *ctx, struct sample *sample)
{
    __u64 timestamp_ns = 0;
    int is_there;
    if (!wants(HARDWARE_TIMESTAMP) || !bpf_ksym_exists(bpf_xdp_metadata_rx_timestamp))
        return;
    is_there = !bpf_xdp_metadata_rx_timestamp(ctx, &timestamp_ns) && timestamp_ns;
    note(sample, &sample->present, HARDWARE_TIMESTAMP, is_there, timestamp_ns);
}
