// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Where the headers of a frame are, and what they say beyond what every packet has.
#pragma once

#include <linux/types.h>

// Where the transport header is, and where the datagram's bytes end: link-layer padding lies behind.
struct transport {
    __u64 offset;
    __u64 end;
    __u8 protocol;
    __u8 is_later_fragment;
};

enum announced { BY_MPLS = 1, BY_PPP = 2, IPV4 = 4, IPV6 = 6 };

// Where the network header is, and what announced it.
struct network {
    __u32 offset;
    __u32 announced;
    // From here on only for a plan.
    __u64 frame_bytes;
    struct transport transport;
    // The last fragment header of an IPv6 packet; 0 where there is none.
    __u32 fragment_header;
    // Of a fragment header.
    __u32 identification;
    // An IPv6 packet with a fragment header is a fragment, however whole it is.
    __u16 fragment_offset_bytes;
    __u8 is_fragment;
    __u8 has_mpls_label;
    __u32 mpls_label;
    __u16 ether_type;
    // Of the two outermost tags, as far as there are so many.
    __u16 tag_control;
    __u16 inner_tag_control;
    __u8 tags;
};
