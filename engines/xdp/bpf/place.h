// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Positions of a frame's headers, and further values of them.
#pragma once

#include <linux/types.h>

// The offset of the transport header, and the end of the datagram: link-layer padding follows it.
struct transport {
    __u64 offset;
    __u64 end;
    __u8 protocol;
    __u8 is_later_fragment;
};

enum announced { BY_MPLS = 1, BY_PPP = 2, IPV4 = 4, IPV6 = 6 };

// The offset of the network header, and what announced it.
struct network {
    __u32 offset;
    __u32 announced;
    // Whether the header declares more bytes than the frame has.
    __u32 is_longer_than_frame;
    // The following fields are only used by a plan.
    __u64 frame_bytes;
    struct transport transport;
    // The last fragment header of an IPv6 packet; 0 if there is none.
    __u32 fragment_header;
    // From the fragment header.
    __u32 identification;
    // An IPv6 packet with a fragment header counts as a fragment, even if it is complete.
    __u16 fragment_offset_bytes;
    __u8 is_fragment;
    __u8 has_mpls_label;
    __u32 mpls_label;
    __u16 ether_type;
    // The two outermost tags, if present.
    __u16 tag_control;
    __u16 inner_tag_control;
    __u8 tags;
};
