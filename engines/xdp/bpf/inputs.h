// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Reads the values of a packet that a plan needs: crates/packet/src/inputs.rs.
#pragma once

#include "ip.h"
#include "plan.h"
#include "row.h"

#define PROTOCOL_ICMP 1
#define PROTOCOL_ICMPV6 58
#define TCP_HEADER_BYTES 20
#define MAX_OPTION_BYTES 40
// Smaller offsets are read in place. Data that is farther away, or in another buffer, is copied by
// the kernel.
#define NEAR_BYTES 0x4000

// Reads a number in network order at `offset` if all of it lies before `end`; returns whether it
// did.
#define READS(NAME, TYPE, SWAP)                                                                                                    \
    static __always_inline int NAME(struct xdp_md *ctx, __u64 end, __u64 offset, __u64 *to)                                       \
    {                                                                                                                              \
        TYPE field;                                                                                                                \
        if (offset + sizeof(TYPE) > end)                                                                                           \
            return 0;                                                                                                              \
        if (offset < NEAR_BYTES) {                                                                                                 \
            const __u8 *at = (const __u8 *)(long)ctx->data + offset;                                                               \
            if ((const void *)(at + sizeof(TYPE)) <= (const void *)(long)ctx->data_end) {                                          \
                *to = SWAP(*(const TYPE *)at);                                                                                     \
                return 1;                                                                                                          \
            }                                                                                                                      \
        }                                                                                                                          \
        if (!load(ctx, offset, &field, sizeof(field)))                                                                             \
            return 0;                                                                                                              \
        *to = SWAP(field);                                                                                                         \
        return 1;                                                                                                                  \
    }

READS(read_u8, __u8, )
READS(read_u16, __be16, bpf_ntohs)
READS(read_u32, __be32, bpf_ntohl)

static __always_inline int read_u48(struct xdp_md *ctx, __u64 end, __u64 offset, __u64 *to)
{
    __u64 high = 0, low = 0;
    if (!read_u16(ctx, end, offset, &high) || !read_u32(ctx, end, offset + 2, &low))
        return 0;
    *to = high << 32 | low;
    return 1;
}

// Stores a value, and notes in `present` whether the packet has it.
static __always_inline void note(struct sample *sample, struct value_set *present, enum value of, int is_there, __u64 value)
{
    sample->values[of] = value;
    add(present, of, is_there);
}

// The kinds of options (kind, length, value) as a bit set: RFC 791, section 3.1, and RFC 9293,
// section 3.1. Kinds that do not fit in the set are ignored. Not static, for the reason given at
// `walk_link`.
__attribute__((noinline)) __u64 option_bits(struct xdp_md *ctx, __u32 offset, __u32 end, __u8 kinds)
{
    __u8 options[64] = {};
    __u64 bits = 0;
    __u32 bytes, at = 0;
    if (offset >= end)
        return 0;
    bytes = smaller(end - offset, MAX_OPTION_BYTES);
    // Clang knows that this holds and would remove the check, which the verifier needs.
    asm volatile("" : "+r"(bytes));
    if (bytes < 1 || bytes > MAX_OPTION_BYTES || !load_some(ctx, offset, options, bytes))
        return 0;
    // Every option has at least one byte.
    for (int i = 0; i < MAX_OPTION_BYTES; i++) {
        __u8 kind = options[at & 63], length = 1;
        if ((kind & kinds) < 64)
            bits |= 1ULL << (kind & kinds);
        if (kind == 0)
            break;
        if (kind != 1) {
            if (at + 1 >= bytes)
                break;
            length = options[(at + 1) & 63];
            if (length < 2)
                break;
        }
        at += length;
        if (at >= bytes)
            break;
        // Changes nothing, but gives the verifier an equal range on all paths.
        asm volatile("" : "+r"(at));
        at &= 63;
    }
    return bits;
}

static __always_inline void note_tcp(struct xdp_md *ctx, const struct transport *transport, struct sample *sample,
                                     struct value_set *present)
{
    const __u64 at = transport->offset;
    // For other protocols the end is 0, so no value is found.
    const __u64 end = transport->protocol == PROTOCOL_TCP && !transport->is_later_fragment ? transport->end : 0;
    __u64 value = 0, flags = 0, header = 0;
    int has_flags = 0;
    if (wants(TCP_FLAGS) || wants(TCP_ACKNOWLEDGEMENT)) {
        has_flags = read_u16(ctx, end, at + 12, &flags);
        flags &= 0xfff;
        note(sample, present, TCP_FLAGS, has_flags, flags);
    }
    if (wants(TCP_WINDOW))
        note(sample, present, TCP_WINDOW, read_u16(ctx, end, at + 14, &value), value);
    if (wants(TCP_SEQUENCE))
        note(sample, present, TCP_SEQUENCE, read_u32(ctx, end, at + 4, &value), value);
    if (wants(TCP_ACKNOWLEDGEMENT)) {
        int acknowledges = has_flags && (flags & TCP_ACK);
        note(sample, present, TCP_ACKNOWLEDGEMENT, read_u32(ctx, end, at + 8, &value) && acknowledges, value);
    }
    if (wants(TCP_OPTIONS)) {
        int is_there = read_u8(ctx, end, at + 12, &header) && header >= TCP_HEADER_BYTES << 2;
        __u64 options_end = at + (header >> 4) * 4;
        value = is_there ? option_bits(ctx, at + TCP_HEADER_BYTES, smaller(options_end, end), 0xff) : 0;
        note(sample, present, TCP_OPTIONS, is_there, value);
    }
}

// The length of the transport header according to its own field: `header_bytes` in
// crates/packet/src/transport.rs. Returns whether there is one.
static __always_inline int transport_header_bytes(struct xdp_md *ctx, const struct transport *transport, __u64 *bytes)
{
    const __u64 at = transport->offset, end = transport->end;
    __u64 field = 0;
    switch (transport->protocol) {
    case PROTOCOL_TCP:
        if (!read_u8(ctx, end, at + 12, &field))
            return 0;
        *bytes = (field >> 4) * 4;
        return *bytes >= TCP_HEADER_BYTES;
    case PROTOCOL_DCCP:
        if (!read_u8(ctx, end, at + 4, &field))
            return 0;
        *bytes = field * 4;
        return *bytes >= 12;
    case PROTOCOL_UDP:
    case PROTOCOL_UDP_LITE:
    case PROTOCOL_ICMP:
    case PROTOCOL_ICMPV6:
        *bytes = 8;
        return 1;
    case PROTOCOL_SCTP:
        *bytes = 12;
        return 1;
    }
    *bytes = 0;
    return 1;
}

static __always_inline __u64 less_at_least_0(__u64 a, __u64 b)
{
    return a > b ? a - b : 0;
}

static __always_inline void note_payload_length(struct xdp_md *ctx, const struct network *network, const struct packet *packet,
                                                struct sample *sample, struct value_set *present)
{
    const struct transport *transport = &network->transport;
    __u64 declared = less_at_least_0(packet->ip_length_bytes, transport->offset - network->offset);
    __u64 header = 0;
    // A later fragment consists of payload only.
    int is_there = transport->is_later_fragment || transport_header_bytes(ctx, transport, &header);
    note(sample, present, PAYLOAD_LENGTH, is_there, less_at_least_0(declared, header));
}

static __always_inline void note_ip(struct xdp_md *ctx, const struct network *network, const struct packet *packet,
                                    struct sample *sample, struct value_set *present)
{
    const struct transport *transport = &network->transport;
    const int is_v6 = network->announced == IPV6;
    const __u64 end = network->frame_bytes;
    __u64 value = 0;
    if (wants(FLOW_LABEL)) {
        int is_there = is_v6 && read_u32(ctx, end, network->offset, &value);
        note(sample, present, FLOW_LABEL, is_there, value & 0xfffff);
    }
    if (wants(IDENTIFICATION)) {
        int is_there = network->is_fragment;
        value = network->identification;
        if (!is_v6)
            is_there = read_u16(ctx, end, network->offset + 4, &value);
        note(sample, present, IDENTIFICATION, is_there, value);
    }
    if (wants(FRAGMENT_OFFSET))
        note(sample, present, FRAGMENT_OFFSET, network->is_fragment, network->fragment_offset_bytes);
    if (wants(IP_OPTIONS)) {
        value = is_v6 ? 0 : option_bits(ctx, network->offset + 20, transport->offset, 0x1f);
        note(sample, present, IP_OPTIONS, !is_v6, value);
    }
    if (wants(PAYLOAD_LENGTH))
        note_payload_length(ctx, network, packet, sample, present);
    if (wants(ICMP_TYPE) || wants(ICMP_CODE)) {
        int is_icmp = transport->protocol == PROTOCOL_ICMP || transport->protocol == PROTOCOL_ICMPV6;
        __u64 icmp_end = is_icmp && !transport->is_later_fragment ? transport->end : 0;
        note(sample, present, ICMP_TYPE, read_u8(ctx, icmp_end, transport->offset, &value), value);
        note(sample, present, ICMP_CODE, read_u8(ctx, icmp_end, transport->offset + 1, &value), value);
    }
}

static __always_inline void note_link(struct xdp_md *ctx, const struct network *network, struct sample *sample,
                                     struct value_set *present)
{
    const __u64 end = network->frame_bytes;
    __u64 value = 0;
    note(sample, present, VLAN, network->tags > 0, network->tag_control & 0xfff);
    note(sample, present, INNER_VLAN, network->tags > 1, network->inner_tag_control & 0xfff);
    note(sample, present, VLAN_PRIORITY, network->tags > 0, network->tag_control >> 13);
    note(sample, present, MPLS_LABEL, network->has_mpls_label, network->mpls_label);
    note(sample, present, ETHER_TYPE, 1, network->ether_type);
    if (wants(SOURCE_MAC))
        note(sample, present, SOURCE_MAC, read_u48(ctx, end, 6, &value), value);
    if (wants(DESTINATION_MAC))
        note(sample, present, DESTINATION_MAC, read_u48(ctx, end, 0, &value), value);
}

#define OF_TCP(WORD)                                                                                                               \
    (BIT_OF(TCP_FLAGS, WORD) | BIT_OF(TCP_WINDOW, WORD) | BIT_OF(TCP_SEQUENCE, WORD) | BIT_OF(TCP_ACKNOWLEDGEMENT, WORD) |         \
     BIT_OF(TCP_OPTIONS, WORD))
#define OF_IP(WORD)                                                                                                                \
    (BIT_OF(FLOW_LABEL, WORD) | BIT_OF(IDENTIFICATION, WORD) | BIT_OF(FRAGMENT_OFFSET, WORD) | BIT_OF(IP_OPTIONS, WORD) |          \
     BIT_OF(PAYLOAD_LENGTH, WORD) | BIT_OF(ICMP_TYPE, WORD) | BIT_OF(ICMP_CODE, WORD))
#define OF_LINK(WORD)                                                                                                              \
    (BIT_OF(VLAN, WORD) | BIT_OF(INNER_VLAN, WORD) | BIT_OF(VLAN_PRIORITY, WORD) | BIT_OF(MPLS_LABEL, WORD) |                      \
     BIT_OF(ETHER_TYPE, WORD) | BIT_OF(SOURCE_MAC, WORD) | BIT_OF(DESTINATION_MAC, WORD))
#define OF_ALL(WORD)                                                                                                               \
    (BIT_OF(IP_LENGTH, WORD) | BIT_OF(FRAME_LENGTH, WORD) | BIT_OF(TIMESTAMP, WORD) | BIT_OF(TTL, WORD) | BIT_OF(TOS, WORD) |      \
     BIT_OF(INGRESS_INTERFACE, WORD) | BIT_OF(RECEIVE_QUEUE, WORD))

static __always_inline void note_key_fields(const struct packet *packet, int is_v6, struct sample *sample)
{
    const __u64 *key = packet->key;
    __u64 transport = is_v6 ? key[4] : key[1];
    sample->values[SOURCE_PORT] = bpf_ntohs((__be16)transport);
    sample->values[DESTINATION_PORT] = bpf_ntohs((__be16)(transport >> 16));
    sample->values[PROTOCOL] = transport >> 32 & 0xff;
    sample->values[FAMILY] = is_v6 ? 6 : 4;
    sample->values[SOURCE_ADDRESS] = is_v6 ? key[0] : key[0] & 0xffffffff;
    sample->values[SOURCE_ADDRESS + 1] = is_v6 ? key[1] : 0;
    sample->values[DESTINATION_ADDRESS] = is_v6 ? key[2] : key[0] >> 32;
    sample->values[DESTINATION_ADDRESS + 1] = is_v6 ? key[3] : 0;
}

// Fills in all values except the time. Not static, for the reason given at `walk_link`.
__attribute__((noinline)) int take_sample(struct xdp_md *ctx, const struct network *network, const struct packet *packet,
                                          struct sample *sample)
{
    struct value_set present;
    if (!network || !packet || !sample)
        return 0;
#pragma unroll
    for (int word = 0; word < SET_WORDS; word++)
        present.words[word] = OF_ALL(word);
    sample->values[IP_LENGTH] = packet->ip_length_bytes;
    sample->values[FRAME_LENGTH] = network->frame_bytes;
    sample->values[TTL] = packet->ttl;
    sample->values[TOS] = packet->tos;
    if (wants(INGRESS_INTERFACE))
        sample->values[INGRESS_INTERFACE] = ctx->ingress_ifindex;
    if (wants(RECEIVE_QUEUE))
        sample->values[RECEIVE_QUEUE] = ctx->rx_queue_index;
    if (WANTS_ANY(OF_TCP))
        note_tcp(ctx, &network->transport, sample, &present);
    if (WANTS_ANY(OF_IP))
        note_ip(ctx, network, packet, sample, &present);
    if (WANTS_ANY(OF_LINK))
        note_link(ctx, network, sample, &present);
    if (plan.key_words)
        note_key_fields(packet, network->announced == IPV6, sample);
    sample->present = present;
    return 0;
}
