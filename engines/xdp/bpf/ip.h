// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// IPv4 and IPv6 headers with extension headers, and the first bytes after them:
// crates/packet/src/ip.rs, transport.rs.
#pragma once

#include "layout.h"
#include "link.h"

// `MAX_EXTENSION_HEADERS` of crates/packet.
#define MAX_EXTENSION_HEADERS 256
// The maximum number in the longest hop-by-hop header.
#define MAX_HOP_BY_HOP_OPTIONS 2046
#define IPV6_HEADER_BYTES 40

#define PROTOCOL_HOP_BY_HOP 0
#define PROTOCOL_TCP 6
#define PROTOCOL_UDP 17
#define PROTOCOL_DCCP 33
#define PROTOCOL_ROUTING 43
#define PROTOCOL_FRAGMENT 44
#define PROTOCOL_AUTHENTICATION 51
#define PROTOCOL_NONE 59
#define PROTOCOL_DESTINATION 60
#define PROTOCOL_SCTP 132
#define PROTOCOL_UDP_LITE 136

static __always_inline __u64 smaller(__u64 a, __u64 b)
{
    return a < b ? a : b;
}

static __always_inline __u64 transport_word(__u32 ports, __u8 protocol, __u8 family)
{
    return ports | (__u64)protocol << 32 | (__u64)family << 40;
}

static __always_inline int has_ports(__u8 protocol)
{
    return protocol == PROTOCOL_TCP || protocol == PROTOCOL_UDP || protocol == PROTOCOL_DCCP ||
           protocol == PROTOCOL_SCTP || protocol == PROTOCOL_UDP_LITE;
}

// RFC 791, section 3.1.
static __always_inline int read_v4(struct xdp_md *ctx, struct network *network, struct packet *packet, struct transport *transport)
{
    const __u32 offset = network->offset;
    __u8 header[20];
    __u64 captured = frame_bytes(ctx);
    __u32 header_bytes, total;
    if (!load(ctx, offset, header, 1))
        return IPV4_HEADER_NOT_CAPTURED;
    if (header[0] >> 4 != 4)
        return VERSION_MISMATCH;
    if (!load(ctx, offset, header, sizeof(header)))
        return IPV4_HEADER_NOT_CAPTURED;
    header_bytes = (header[0] & 0xf) * 4;
    if (header_bytes < 20)
        return HEADER_LENGTH_TOO_SMALL;
    total = (__u32)header[2] << 8 | header[3];
    if (total < header_bytes && total != 0)
        return TOTAL_LENGTH_TOO_SMALL;
    transport->offset = offset + header_bytes;
    if (captured < transport->offset)
        return IPV4_HEADER_NOT_CAPTURED;
    // A length of 0 means segmentation offload: the packet extends to the end of the frame.
    packet->ip_length_bytes = total ? total : captured - offset;
    network->is_longer_than_frame = packet->ip_length_bytes > captured - offset;
    transport->end = smaller(captured, offset + (__u64)packet->ip_length_bytes);
    transport->protocol = header[9];
    transport->is_later_fragment = (header[6] & 0x1f) || header[7];
    if (config.has_plan && ((header[6] & 0x3f) || header[7])) {
        network->is_fragment = 1;
        network->fragment_offset_bytes = (__u16)((header[6] & 0x1f) << 8 | header[7]) << 3;
    }
    packet->ttl = header[8];
    packet->tos = header[1];
    __builtin_memcpy(&packet->key[0], header + 12, 8);
    return PARSED;
}

// The jumbo payload option of a hop-by-hop header (RFC 2675, section 2); 0 if there is none.
static __always_inline __u32 jumbo_length(struct xdp_md *ctx, __u32 offset)
{
    __u32 option = offset + 2, end;
    __u8 field[2];
    __be32 length;
    if (!load(ctx, offset + 1, field, 1))
        return 0;
    end = offset + 8 + field[0] * 8;
    for (int i = 0; i < MAX_HOP_BY_HOP_OPTIONS && option < end; i++) {
        if (!load(ctx, option, field, 1))
            return 0;
        if (field[0] == 0) {
            option += 1;
            continue;
        }
        if (!load(ctx, option, field, 2))
            return 0;
        if (field[0] == 0xc2)
            return field[1] == 4 && load(ctx, option + 2, &length, 4) ? bpf_ntohl(length) : 0;
        option += 2 + field[1];
    }
    return 0;
}

// Walks extension headers up to another protocol, a later fragment, or the end of the captured
// bytes.
static __always_inline void walk_extensions(struct xdp_md *ctx, struct network *network, struct transport *transport)
{
    __u64 offset = transport->offset, end = transport->end;
    __u8 protocol = transport->protocol;
    for (int i = 0; i < MAX_EXTENSION_HEADERS; i++) {
        __u8 header[8];
        if (protocol == PROTOCOL_FRAGMENT) {
            if (!load_before(ctx, end, offset, header, 8))
                break;
            protocol = header[0];
            // Stored in memory whose content the verifier does not track: a local variable would
            // give it a state per offset.
            if (config.has_plan)
                network->fragment_header = offset;
            offset += 8;
            if (header[2] || header[3] & 0xf8) {
                transport->is_later_fragment = 1;
                break;
            }
        } else if (protocol == PROTOCOL_HOP_BY_HOP || protocol == PROTOCOL_ROUTING ||
                   protocol == PROTOCOL_AUTHENTICATION || protocol == PROTOCOL_DESTINATION) {
            if (!load_before(ctx, end, offset, header, 2))
                break;
            offset += protocol == PROTOCOL_AUTHENTICATION ? (header[1] + 2) * 4 : (header[1] + 1) * 8;
            protocol = header[0];
        } else {
            break;
        }
    }
    transport->offset = offset;
    transport->protocol = protocol;
}

// RFC 8200, section 3.
static __always_inline int read_v6(struct xdp_md *ctx, struct network *network, struct packet *packet, struct transport *transport)
{
    const __u32 offset = network->offset;
    __u8 header[8];
    __u64 payload, room;
    if (!load(ctx, offset, header, 1))
        return IPV6_HEADER_NOT_CAPTURED;
    if (header[0] >> 4 != 6)
        return NOT_IPV6;
    if (!load(ctx, offset, header, sizeof(header)) || !load(ctx, offset + 8, packet->key, 32))
        return IPV6_HEADER_NOT_CAPTURED;
    transport->offset = offset + IPV6_HEADER_BYTES;
    transport->protocol = header[6];
    payload = (__u32)header[4] << 8 | header[5];
    if (payload == 0 && header[6] == PROTOCOL_HOP_BY_HOP)
        payload = jumbo_length(ctx, transport->offset);
    room = frame_bytes(ctx) - transport->offset;
    network->is_longer_than_frame = payload > room;
    // A length of 0 means segmentation offload: the packet extends to the end of the frame. A jumbo
    // length beyond the end of the frame is treated in this way too.
    if ((payload == 0 && header[6] != PROTOCOL_NONE) || (payload > 0xffff && payload > room))
        payload = room;
    transport->end = smaller(frame_bytes(ctx), transport->offset + payload);
    packet->ip_length_bytes = payload + IPV6_HEADER_BYTES;
    packet->ttl = header[7];
    packet->tos = header[0] << 4 | header[1] >> 4;
    walk_extensions(ctx, network, transport);
    return PARSED;
}

// Notes the last fragment header (RFC 8200, section 4.5).
static __always_inline void note_fragment(struct xdp_md *ctx, struct network *network)
{
    __be16 place = 0;
    __be32 identification = 0;
    if (!network->fragment_header)
        return;
    load(ctx, network->fragment_header + 2, &place, sizeof(place));
    load(ctx, network->fragment_header + 4, &identification, sizeof(identification));
    network->is_fragment = 1;
    network->fragment_offset_bytes = bpf_ntohs(place) & 0xfff8;
    network->identification = bpf_ntohl(identification);
}

// Parses a packet whose IP header was announced. Not static, for the reason given at `walk_link`.
__attribute__((noinline)) int walk_ip(struct xdp_md *ctx, struct network *network, struct packet *packet)
{
    struct transport transport = {};
    __u32 ports = 0;
    __be16 flags = 0;
    int reason, is_v6;
    if (!network || !packet)
        return LINK_HEADER_NOT_CAPTURED;
    is_v6 = network->announced == IPV6;
    if (is_v6)
        reason = read_v6(ctx, network, packet, &transport);
    else
        reason = read_v4(ctx, network, packet, &transport);
    if (reason != PARSED)
        return reason;
    if (!transport.is_later_fragment && has_ports(transport.protocol) &&
        !load_before(ctx, transport.end, transport.offset, &ports, sizeof(ports)))
        ports = 0;
    if (!transport.is_later_fragment && transport.protocol == PROTOCOL_TCP &&
        !load_before(ctx, transport.end, transport.offset + 12, &flags, sizeof(flags)))
        flags = 0;
    packet->tcp_flags = bpf_ntohs(flags) & 0xfff;
    if (config.has_plan) {
        network->transport = transport;
        note_fragment(ctx, network);
    }
    if (is_v6)
        packet->key[4] = transport_word(ports, transport.protocol, 6);
    else
        packet->key[1] = transport_word(ports, transport.protocol, 4);
    return PARSED;
}
