// SPDX-License-Identifier: Apache-2.0
// Headers and metadata.

#include "../shared/sizes.p4"
#include "../shared/lane.p4"
#include "../shared/frame.p4"
#include "record.p4" // by -I: one folder for each record definition

// A record, as words of 64 bits. IPv4 addresses are in the low words.
#define FIELD(op, name, input) bit<64> name;
#define RECORD_WORDS \
    bit<64> source_high; \
    bit<64> source_low; \
    bit<64> destination_high; \
    bit<64> destination_low; \
    bit<64> rest; /* ports, protocol, IP version: 16, 16, 8 and 8 of the low bits */ \
    bit<64> packets; \
    bit<64> bytes; \
    bit<64> first_ns; \
    bit<64> last_ns; \
    bit<64> tcp; \
    RECORD_FEATURES(FIELD)

header record_t {
    RECORD_WORDS
}

#ifdef BATCH
// Records that wait for the third: batch.p4. bmv2 aborts if a frame grows by more than 512 bytes.
#define WAITING_MOST 2
#define FOR_ALL_WAITING(DO) DO(0) DO(1)
#endif

struct headers_t {
    outer_t outer;
#ifdef BATCH
#define WAITING_HEADERS(at) report_t waiting_report_##at; record_t waiting_##at;
    FOR_ALL_WAITING(WAITING_HEADERS)
#endif
    report_t report;
    record_t record;
    status_t status;
    lane_t lane;
    settings_t settings;
    ethernet_t ethernet;
    tag_t[4] tags;
    ipv4_t ipv4;
    options_t options;
    ipv6_t ipv6;
    extension_t extension_1;
    extension_rest_t rest_1;
    extension_t extension_2;
    extension_rest_t rest_2;
    extension_t extension_3;
    extension_rest_t rest_3;
    extension_t extension_4;
    extension_rest_t rest_4;
    fragment_t fragment;
    ports_t ports;
    tcp_t tcp;
}

struct key_t {
    bit<64> source_high;
    bit<64> source_low;
    bit<64> destination_high;
    bit<64> destination_low;
    bit<64> rest;
}

struct resident_t {
    RECORD_WORDS
}

// Fields with one of these numbers go with a copy of a frame: a clone that becomes a report, or the
// copy that is metered behind the queue.
#define OF_REPORT 1
#define OF_COPY 2

struct metadata_t {
    bit<8> verdict; // UNKNOWN, METERED, COMMAND, STRANGE
    bit<8> protocol;
    bit<8> flags; // of the lane
    bit<1> joins;
    bit<32> slot;
    bit<32> word_before; // the slot's cell word
    bit<32> cell;        // the number of the current cell
    bit<64> l2_length;
    bit<64> end; // of the headers that were read
    bit<64> time_ns;
    bit<64> captured; // bytes
    bit<64> frame_length;
    key_t key;
    // Inputs of features.
    bit<64> ip_length;
    bit<64> ttl;
    bit<64> tos;
    bit<64> tcp;
    bit<64> gap; // since the flow's last packet, in ns; 0 at first
    // Those that are known behind the queue: -DBEHIND_QUEUE.
    @field_list(OF_COPY) bit<64> queue_depth; // packets in the queue when this one came to it
    @field_list(OF_COPY) bit<64> hop_latency; // in ns
    @field_list(OF_COPY) bit<64> egress_interface;
#ifdef BATCH
    bit<32> waiting; // records that go out before this one
#endif
    // The report.
    @field_list(OF_REPORT) bit<8> cause; // 0 for none
    @field_list(OF_REPORT) bit<32> sequence;
    @field_list(OF_REPORT, OF_COPY) bit<64> now_ns;
    @field_list(OF_REPORT) resident_t resident; // of the slot
}

const bit<8> UNKNOWN = 0;
const bit<8> METERED = 1;
const bit<8> COMMAND = 2;
const bit<8> STRANGE = 3; // from the CPU, and no command; or not to be metered
