// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Why a frame is not a packet: `Rejected` in crates/packet/src/rejected.rs, with its names and
// order (tests/reasons.rs).
#pragma once

enum reason {
    ARP,
    ETHERNET_LOOPBACK,
    EAPOL,
    LLC,
    LLDP,
    MPLS_NOT_IP,
    OTHER_ADDRESS_FAMILY,
    OTHER_COOKED_PROTOCOL,
    OTHER_ETHER_TYPE,
    OTHER_PPP_PROTOCOL,
    PPPOE_DISCOVERY,
    NOT_IPV6,
    RAW_NOT_IP,
    SLOW_PROTOCOL,
    TAG_DEPTH_EXCEEDED,
    HEADER_LENGTH_TOO_SMALL,
    IPV4_HEADER_NOT_CAPTURED,
    IPV6_HEADER_NOT_CAPTURED,
    TOTAL_LENGTH_TOO_SMALL,
    VERSION_MISMATCH,
    LINK_HEADER_NOT_CAPTURED,
    HELD,
    REASON_COUNT,
};

// The frame is a packet.
#define PARSED (-1)
