// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Parses an Ethernet frame up to its first IP header, as crates/packet/src/link.rs does.
#pragma once

#include "load.h"
#include "place.h"
#include "reasons.h"

// `MAX_LINK_HEADERS` of crates/packet.
#define MAX_LINK_HEADERS 256

#define TYPE_IPV4 0x0800
#define TYPE_ARP 0x0806
#define TYPE_RARP 0x8035
#define TYPE_VLAN 0x8100
#define TYPE_IPV6 0x86dd
#define TYPE_SLOW 0x8809
#define TYPE_MPLS 0x8847
#define TYPE_MPLS_UPSTREAM 0x8848
#define EXPLICIT_NULL_V4 0
#define EXPLICIT_NULL_V6 2
#define TYPE_PPPOE_DISCOVERY 0x8863
#define TYPE_PPPOE_SESSION 0x8864
#define TYPE_EAPOL 0x888e
#define TYPE_SERVICE_VLAN 0x88a8
#define TYPE_LLDP 0x88cc
#define TYPE_LOOPBACK 0x9000
#define TYPE_OLD_SERVICE_VLAN 0x9100
#define TYPE_CISCO_METADATA 0x8909
#define TYPE_VN_TAG 0x8926
#define TYPE_TTAG 0x8988
#define TYPE_ARISTA 0xd28b
// The largest value that is an 802.3 length rather than a type.
#define MAX_LENGTH 1500

static __always_inline int unknown_ether_type(__u16 type)
{
    switch (type) {
    case TYPE_ARP:
    case TYPE_RARP:
        return ARP;
    case TYPE_EAPOL:
        return EAPOL;
    case TYPE_LLDP:
        return LLDP;
    case TYPE_LOOPBACK:
        return ETHERNET_LOOPBACK;
    case TYPE_PPPOE_DISCOVERY:
        return PPPOE_DISCOVERY;
    case TYPE_SLOW:
        return SLOW_PROTOCOL;
    }
    return OTHER_ETHER_TYPE;
}

// The type after an 802.2 LLC header, and its offset; 0 if it does not lead to IP, or the frame is
// too short.
static __always_inline int behind_llc(struct xdp_md *ctx, __u32 *offset, __u16 *type)
{
    __u8 llc[3], snap[5];
    if (!load(ctx, *offset, llc, sizeof(llc)))
        return LINK_HEADER_NOT_CAPTURED;
    if (llc[0] == 0x06 && llc[1] == 0x06 && llc[2] == 0x03) {
        *offset += 3;
        *type = TYPE_IPV4;
        return PARSED;
    }
    if (llc[0] != 0xaa || llc[1] != 0xaa || llc[2] != 0x03)
        return LLC;
    if (!load(ctx, *offset + 3, snap, sizeof(snap)))
        return LINK_HEADER_NOT_CAPTURED;
    if (snap[0] || snap[1] || (snap[2] != 0x00 && snap[2] != 0xf8))
        return LLC;
    *offset += 8;
    *type = (__u16)snap[3] << 8 | snap[4];
    return *type > MAX_LENGTH ? PARSED : LLC;
}

// Notes the tag at `offset`; the two outermost tags are inputs. Returns whether the tag was
// complete.
static __always_inline int note_tag(struct xdp_md *ctx, __u32 offset, struct network *network)
{
    __be16 control;
    if (!config.has_plan)
        return 1;
    if (!load(ctx, offset, &control, sizeof(control)))
        return 0;
    if (network->tags == 0)
        network->tag_control = bpf_ntohs(control);
    else if (network->tags == 1)
        network->inner_tag_control = bpf_ntohs(control);
    if (network->tags < 2)
        network->tags += 1;
    return 1;
}

// Bytes from the type field that announced a header to the next type field. 0 if the type or the
// format is unknown, negative if the header was not captured.
static __always_inline int shim_bytes(struct xdp_md *ctx, __u32 offset, __u16 type)
{
    __u8 field[4];
    switch (type) {
    case TYPE_VN_TAG:
        return 4;
    case TYPE_TTAG:
        return 6;
    case TYPE_CISCO_METADATA:
        if (!load(ctx, offset, field, 2))
            return -1;
        return field[0] == 1 && field[1] ? 2 + 4 * field[1] : 0;
    case TYPE_ARISTA:
        if (!load(ctx, offset, field, 4))
            return -1;
        // A timestamp, TAI (0) or UTC (1), of 64 bits or 48.
        if (field[0] || field[1] != 1 || field[2] > 1)
            return 0;
        return field[3] == 0x10 ? 12 : field[3] == 0x20 ? 10 : 0;
    }
    return 0;
}

static __always_inline int is_shim(__u16 type)
{
    return type == TYPE_CISCO_METADATA || type == TYPE_VN_TAG || type == TYPE_TTAG || type == TYPE_ARISTA;
}

static __always_inline int is_tag(__u16 type)
{
    return type == TYPE_VLAN || type == TYPE_SERVICE_VLAN || type == TYPE_OLD_SERVICE_VLAN;
}

// Walks tags of any depth, up to another header.
static __always_inline int walk_tags(struct xdp_md *ctx, struct network *network)
{
    __u32 offset = 14;
    __be16 field;
    __u16 type;
    if (!load(ctx, 12, &field, sizeof(field)))
        return LINK_HEADER_NOT_CAPTURED;
    type = bpf_ntohs(field);
    for (int i = 0; i < MAX_LINK_HEADERS; i++) {
        if (is_tag(type)) {
            if (!note_tag(ctx, offset, network) || !load(ctx, offset + 2, &field, sizeof(field)))
                return LINK_HEADER_NOT_CAPTURED;
            type = bpf_ntohs(field);
            offset += 4;
        } else if (is_shim(type)) {
            int bytes = shim_bytes(ctx, offset, type);
            if (bytes == 0)
                return OTHER_ETHER_TYPE;
            if (bytes < 0 || !load(ctx, offset + bytes, &field, sizeof(field)))
                return LINK_HEADER_NOT_CAPTURED;
            type = bpf_ntohs(field);
            offset += bytes + 2;
        } else if (type <= MAX_LENGTH) {
            int reason = behind_llc(ctx, &offset, &type);
            if (reason != PARSED)
                return reason;
        } else {
            network->offset = offset;
            if (config.has_plan)
                network->ether_type = type;
            switch (type) {
            case TYPE_IPV4:
                network->announced = IPV4;
                return PARSED;
            case TYPE_IPV6:
                network->announced = IPV6;
                return PARSED;
            case TYPE_MPLS:
            case TYPE_MPLS_UPSTREAM:
                network->announced = BY_MPLS;
                return PARSED;
            case TYPE_PPPOE_SESSION:
                network->offset = offset + 6;
                network->announced = BY_PPP;
                return PARSED;
            }
            return unknown_ether_type(type);
        }
    }
    return TAG_DEPTH_EXCEEDED;
}

// A PPP protocol field of one or two bytes (RFC 1661, sections 2 and 6.5).
static __always_inline int walk_ppp(struct xdp_md *ctx, struct network *network)
{
    __u8 field[2];
    __u16 protocol;
    if (!load(ctx, network->offset, field, 1))
        return LINK_HEADER_NOT_CAPTURED;
    protocol = field[0];
    if (field[0] & 1) {
        network->offset += 1;
    } else {
        if (!load(ctx, network->offset, field, 2))
            return LINK_HEADER_NOT_CAPTURED;
        protocol = (__u16)field[0] << 8 | field[1];
        network->offset += 2;
    }
    switch (protocol) {
    case 0x0021:
        network->announced = IPV4;
        return PARSED;
    case 0x0057:
        network->announced = IPV6;
        return PARSED;
    case 0x0281:
    case 0x0283:
        network->announced = BY_MPLS;
        return PARSED;
    }
    return OTHER_PPP_PROTOCOL;
}

// Whether a header that starts with the nibble 4 can be an IPv4 header, by its length and checksum
// (RFC 1071). True if the header was not captured completely.
static __always_inline int can_be_v4(struct xdp_md *ctx, __u32 offset)
{
    __u8 header[60] = {};
    __u32 header_bytes, total, sum = 0;
    if (!load(ctx, offset, header, 1))
        return 1;
    header_bytes = (header[0] & 0xf) * 4;
    if (header[0] >> 4 != 4 || header_bytes < 20)
        return 0;
    if (!load_some(ctx, offset, header, header_bytes))
        return 1;
    for (int i = 0; i < 60; i += 2)
        sum += (__u32)header[i] << 8 | header[i + 1];
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    total = (__u32)header[2] << 8 | header[3];
    return sum == 0xffff && (total == 0 || total >= header_bytes);
}

// Whether a header with the nibble of IPv6 can be one, by its length.
static __always_inline int can_be_v6(struct xdp_md *ctx, __u32 offset)
{
    __u8 header[6];
    if (!load(ctx, offset, header, 1))
        return 1;
    if (header[0] >> 4 != 6)
        return 0;
    if (!load(ctx, offset, header, sizeof(header)))
        return 1;
    return offset + 40 + ((__u32)header[4] << 8 | header[5]) <= frame_bytes(ctx);
}

// Whether bytes that could begin an IPv6 header are an Ethernet frame with a plausible IP header:
// `is_ethernet` of crates/packet/src/mpls.rs.
static __always_inline int is_ethernet(struct xdp_md *ctx, __u32 offset)
{
    __be16 type;
    offset += 12;
    for (int i = 0; i <= 2; i++) {
        if (!load(ctx, offset, &type, sizeof(type)))
            return 0;
        if (bpf_ntohs(type) == TYPE_IPV4)
            return can_be_v4(ctx, offset + 2);
        if (bpf_ntohs(type) == TYPE_IPV6)
            return can_be_v6(ctx, offset + 2);
        if (!is_tag(bpf_ntohs(type)))
            return 0;
        offset += 4;
    }
    return 0;
}

// A label stack (RFC 3032, section 2.1). No field announces the type of the header after it, unless
// the last label is an explicit null. If that header cannot be IP, it is a pseudowire or a control
// channel.
static __always_inline int walk_mpls(struct xdp_md *ctx, struct network *network)
{
    __u32 offset = network->offset;
    for (int i = 0; i < MAX_LINK_HEADERS; i++) {
        __u8 entry[4], first;
        __u32 label;
        if (!load(ctx, offset, entry, sizeof(entry)))
            return LINK_HEADER_NOT_CAPTURED;
        offset += 4;
        if (config.has_plan && !network->has_mpls_label) {
            network->has_mpls_label = 1;
            network->mpls_label = (__u32)entry[0] << 12 | (__u32)entry[1] << 4 | entry[2] >> 4;
        }
        if (!(entry[2] & 1))
            continue;
        if (!load(ctx, offset, &first, 1))
            return LINK_HEADER_NOT_CAPTURED;
        network->offset = offset;
        network->announced = first >> 4;
        label = (__u32)entry[0] << 12 | (__u32)entry[1] << 4 | entry[2] >> 4;
        if ((label == EXPLICIT_NULL_V4 && first >> 4 == 4) || (label == EXPLICIT_NULL_V6 && first >> 4 == 6))
            return PARSED;
        if (first >> 4 == 4)
            return can_be_v4(ctx, offset) ? PARSED : MPLS_NOT_IP;
        if (first >> 4 == 6)
            return can_be_v6(ctx, offset) && !is_ethernet(ctx, offset) ? PARSED : MPLS_NOT_IP;
        return MPLS_NOT_IP;
    }
    return TAG_DEPTH_EXCEEDED;
}

// Not static, so that the verifier checks it once, and not in every state of its callers.
__attribute__((noinline)) int walk_link(struct xdp_md *ctx, struct network *network)
{
    int reason;
    if (!network)
        return LINK_HEADER_NOT_CAPTURED;
    reason = walk_tags(ctx, network);
    if (reason == PARSED && network->announced == BY_PPP)
        reason = walk_ppp(ctx, network);
    if (reason == PARSED && network->announced == BY_MPLS)
        reason = walk_mpls(ctx, network);
    return reason;
}
