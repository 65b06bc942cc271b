// SPDX-License-Identifier: Apache-2.0
// Headers and metadata. DPDK's pipeline (22.11) addresses the first 256 bytes of each, and says
// nothing about more: the key is a header that is never emitted.

#include "../shared/sizes.p4"
#include "../shared/lane.p4"
#include "../shared/frame.p4"
#include "record.p4" // by -I: one folder for each record definition

// A record, as words of 64 bits. IPv4 addresses are in the low words.
header record_t {
    bit<64> source_high;
    bit<64> source_low;
    bit<64> destination_high;
    bit<64> destination_low;
    bit<64> rest; // ports, protocol, IP version: 16, 16, 8 and 8 of the low bits
    bit<64> packets;
    bit<64> bytes;
    bit<64> first_ns;
    bit<64> last_ns;
    bit<64> tcp;
#define FIELD(op, name, input) bit<64> name;
    RECORD_FEATURES(FIELD)
}

header key_t {
    bit<64> source_high;
    bit<64> source_low;
    bit<64> destination_high;
    bit<64> destination_low;
    bit<64> rest;
}

struct headers_t {
    outer_t outer;
    report_t report;
    record_t record;
    status_t status;
    lane_t lane;
    settings_t settings;
    ethernet_t ethernet;
    tag_t tag_1;
    tag_t tag_2;
    tag_t tag_3;
    tag_t tag_4;
    ipv4_t ipv4;
    options_t options;
    ipv6_t ipv6;
    extension_t extension_1;
    extension_rest_t rest_1;
    extension_t extension_2;
    extension_rest_t rest_2;
    fragment_t fragment;
    ports_t ports;
    tcp_t tcp;
    key_t key;
}

struct metadata_t {
    bit<8> verdict; // UNKNOWN, METERED, COMMAND
    bit<8> cause;   // of the report; 0 for none
    bit<8> joins;
    bit<8> protocol;
    bit<32> slot;
    bit<32> word_before; // the slot's cell word, and its cell
    bit<32> cell_before;
    bit<32> cell;        // the new cell word
    bit<32> count;
    bit<32> index;
    bit<64> l2_length;
    bit<64> end; // of the headers that were read
    // Inputs of features.
    bit<64> ip_length;
    bit<64> ttl;
    bit<64> tos;
    bit<64> tcp;
    // Intermediate results.
    bit<64> word;
    bit<64> more;
    bit<32> bits;
}

const bit<8> UNKNOWN = 0;
const bit<8> METERED = 1;
const bit<8> COMMAND = 2;
