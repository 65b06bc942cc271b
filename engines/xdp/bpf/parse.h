// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Parses a frame: plain frames here without loops or calls, as crates/packet/src/fast.rs does, all
// others by a walk.
#pragma once

#include "ip.h"

// Bytes of a transport header that are read, up to the TCP flags.
#define TRANSPORT_BYTES 14

static __always_inline __u16 u16_at(const void *at)
{
    return bpf_ntohs(*(const __be16 *)at);
}

// Minimum bytes of a datagram after its IP header for reading its transport header; for protocols
// that are not plain, more than any datagram has.
static __always_inline __u32 transport_bytes_of(__u8 protocol)
{
    if (protocol == PROTOCOL_TCP)
        return TRANSPORT_BYTES;
    return protocol == PROTOCOL_UDP ? 4 : 1 << 16;
}

static __always_inline int plain_v4(const __u8 *ip, const void *end, struct packet *packet)
{
    if ((const void *)(ip + 20 + TRANSPORT_BYTES) > end)
        return 0;
    __u16 total = u16_at(ip + 2);
    if (ip[0] != 0x45 || (u16_at(ip + 6) & 0x3fff) || total < 20 + transport_bytes_of(ip[9]))
        return 0;
    packet->key[0] = *(const __u64 *)(ip + 12);
    packet->key[1] = transport_word(*(const __u32 *)(ip + 20), ip[9], 4);
    packet->ip_length_bytes = total;
    packet->tcp_flags = ip[9] == PROTOCOL_TCP ? u16_at(ip + 32) & 0xfff : 0;
    packet->ttl = ip[8];
    packet->tos = ip[1];
    return 1;
}

static __always_inline int plain_v6(const __u8 *ip, const void *end, struct packet *packet)
{
    if ((const void *)(ip + IPV6_HEADER_BYTES + TRANSPORT_BYTES) > end)
        return 0;
    __u16 payload = u16_at(ip + 4);
    if (ip[0] >> 4 != 6 || payload < transport_bytes_of(ip[6]))
        return 0;
    packet->key[0] = *(const __u64 *)(ip + 8);
    packet->key[1] = *(const __u64 *)(ip + 16);
    packet->key[2] = *(const __u64 *)(ip + 24);
    packet->key[3] = *(const __u64 *)(ip + 32);
    packet->key[4] = transport_word(*(const __u32 *)(ip + 40), ip[6], 6);
    packet->ip_length_bytes = payload + IPV6_HEADER_BYTES;
    packet->tcp_flags = ip[6] == PROTOCOL_TCP ? u16_at(ip + 52) & 0xfff : 0;
    packet->ttl = ip[7];
    packet->tos = ip[0] << 4 | ip[1] >> 4;
    return 1;
}

// Parses Ethernet, at most one tag, IP without options or extensions, TCP or UDP. Returns the
// offset of the IP header; 0 for any other frame.
static __always_inline int plain(struct xdp_md *ctx, struct packet *packet)
{
    const __u8 *frame = (const __u8 *)(long)ctx->data;
    const void *end = (const void *)(long)ctx->data_end;
    if ((const void *)(frame + 18) > end)
        return 0;
    __u16 type = u16_at(frame + 12);
    if (type == TYPE_IPV4)
        return plain_v4(frame + 14, end, packet) ? 14 : 0;
    if (type == TYPE_IPV6)
        return plain_v6(frame + 14, end, packet) ? 14 : 0;
    if (type != TYPE_VLAN)
        return 0;
    type = u16_at(frame + 16);
    if (type == TYPE_IPV4)
        return plain_v4(frame + 18, end, packet) ? 18 : 0;
    return type == TYPE_IPV6 && plain_v6(frame + 18, end, packet) ? 18 : 0;
}

// Parses a frame that is not plain. Returns PARSED, or the reason why it is not a packet. `packet`
// and `network` must be all zero before.
static __always_inline int walk(struct xdp_md *ctx, struct packet *packet, struct network *network)
{
    int reason = walk_link(ctx, network);
    return reason == PARSED ? walk_ip(ctx, network, packet) : reason;
}

// Parses any frame.
static __always_inline int parse_frame(struct xdp_md *ctx, struct packet *packet)
{
    struct network network = {};
    return plain(ctx, packet) ? PARSED : walk(ctx, packet, &network);
}
