// SPDX-License-Identifier: Apache-2.0
// Headers and metadata. The chip computes in words of 32 bits, so a record has such words; its
// family stands in the report.

#include "../shared/sizes.p4"
#include "../shared/lane.p4"
#include "../shared/frame.p4"
#include "record.p4" // by -I: one folder for each record definition

// A slot of either table has a number of 16 bits, as the packet generator counts.
#ifdef WITH_V6
#if SLOT_BITS > 15
#error "two tables of at most 2^15 slots: compile with -DSLOT_BITS=15"
#endif
#define ALL_SLOTS (2 * SLOTS)
#else
#if SLOT_BITS > 16
#error "at most 2^16 slots"
#endif
#define ALL_SLOTS SLOTS
#endif
typedef bit<16> slot_t;

// The CPU's port, as the switch counts ports: Ethernet or PCIe.
#ifndef CPU_PORT
#if __TARGET_TOFINO__ == 1
#define CPU_PORT 192
#else
#define CPU_PORT 2
#endif
#endif

// The packet generator's port of each pipe, by its lower 7 bits.
#ifndef GENERATOR_PORT
#if __TARGET_TOFINO__ == 1
#define GENERATOR_PORT 68
#else
#define GENERATOR_PORT 6
#endif
#endif

// The first byte of whatever enters egress.
const bit<8> KIND_FRAME = 0;
#ifdef QUEUE_FEATURES
const bit<8> KIND_TIMER = 2;  // a packet of the generator
const bit<8> KIND_LANE = 3;   // a command
const bit<8> KIND_AGAIN = 4;  // a copy of a frame that did not join
const bit<8> KIND_PUNTED = 5; // a copy of a frame that is to go to the CPU
#else
// A report that has been cut: its own first byte. No kind stands before it.
const bit<8> KIND_CUT = REPORT_VERSION;
const bit<8> KIND_RECORD_4 = 2; // report and record, then a frame
const bit<8> KIND_RECORD_6 = 3;
const bit<8> KIND_ANSWER = 4;   // report and status, then the rest of the command
const bit<8> KIND_PUNTED = 5;   // report, then a frame
// Several reports in one packet: the first byte of the 16 that the coalescing session puts before
// them, which its owner sets.
const bit<8> KIND_COALESCED = 6;
#endif

header kind_t {
    bit<8> kind;
#ifdef QUEUE_FEATURES
    bit<32> arrived; // the lower bits of the clock
#endif
}

// How many bits of a word an input needs. The rest of the word is 0 and has no memory.
#define WIDTH(op, input) WIDTH_##op(input)
#define WIDTH_first(input) WIDTH_OF_##input
#define WIDTH_last(input) WIDTH_OF_##input
#define WIDTH_min(input) WIDTH_OF_##input
#define WIDTH_max(input) WIDTH_OF_##input
#define WIDTH_bit_or(input) WIDTH_OF_##input
#define WIDTH_sum(input) 32
#define WIDTH_OF_ttl 8
#define WIDTH_OF_tos 8
#define WIDTH_OF_gap 32
#define WIDTH_OF_queue_depth 32
#define WIDTH_OF_hop_latency 32
#define WIDTH_OF_ip_length 16

// A record is the headers from here on that are valid, one behind the other.
header high_source_t {
    bit<32> source_0;
    bit<32> source_1;
    bit<32> source_2;
}

header source_t {
    bit<32> source;
}

header high_destination_t {
    bit<32> destination_0;
    bit<32> destination_1;
    bit<32> destination_2;
}

header record_t {
    bit<32> destination;
    bit<32> ports; // the source's in the high half
    bit<8> protocol;
    bit<24> reserved;
    bit<32> packets;
    bit<32> bytes;
    bit<32> first;
    bit<32> last;
    bit<16> no_tcp;
    bit<16> tcp;
#define FIELD(op, name, input) WIDE_FIELD(WIDTH(op, input), name)
#define WIDE_FIELD(width, name) NAMED_FIELD(width, name)
#define NAMED_FIELD(width, name) FIELD_##width(name)
#define FIELD_8(name) bit<24> no_##name; bit<8> name;
#define FIELD_16(name) bit<16> no_##name; bit<16> name;
#define FIELD_32(name) bit<32> name;
    RECORD_FEATURES(FIELD)
}

// Words of which only a part has memory are 0 otherwise.
#define PAD(op, name, input) WIDE_PAD(WIDTH(op, input), name)
#define WIDE_PAD(width, name) NAMED_PAD(width, name)
#define NAMED_PAD(width, name) PAD_##width(name)
#define PAD_8(name) hdr.record.no_##name = 0;
#define PAD_16(name) hdr.record.no_##name = 0;
#define PAD_32(name)

#define WORD_BYTES(op, name, input) + 4
#define RECORD_BYTES_4 (36 RECORD_FEATURES(WORD_BYTES))
#define RECORD_BYTES_6 (RECORD_BYTES_4 + 24)
#define REPORT_BYTES 16

// IPv4 options, a word each.
header option_t {
    bit<32> word;
}

#ifdef QUEUE_FEATURES
// Before the copy of a frame that is to go to the CPU.
header copy_t {
    bit<8> kind;
}

// Before the copy of a frame that did not join.
header again_t {
    bit<8> kind;
    bit<48> clock;
    bit<32> queue_depth;
    bit<32> hop_latency;
}
#endif

struct headers_t {
    kind_t kind;
#ifdef QUEUE_FEATURES
    again_t again;
    outer_t outer;
#endif
    report_t report;
    status_t status;
    high_source_t high_source;
    source_t source;
    high_destination_t high_destination;
    record_t record;
    pktgen_timer_header_t timer;
    lane_t lane;
    settings_t settings;
    ethernet_t ethernet;
    tag_t tag_1;
    tag_t tag_2;
    tag_t tag_3;
    tag_t tag_4;
    ipv4_t ipv4;
    option_t option_10;
    option_t option_9;
    option_t option_8;
    option_t option_7;
    option_t option_6;
    option_t option_5;
    option_t option_4;
    option_t option_3;
    option_t option_2;
    option_t option_1;
    ipv6_t ipv6;
    extension_t extension_1;
    extension_t extension_2;
    fragment_t fragment;
    ports_t ports;
    tcp_t tcp;
}

// The words of a key that registers compare; the protocol is in the cell word.
struct key_t {
#ifdef WITH_V6
    bit<32> source_0;
    bit<32> source_1;
    bit<32> source_2;
    bit<32> destination_0;
    bit<32> destination_1;
    bit<32> destination_2;
#endif
    bit<32> source;
    bit<32> destination;
    bit<32> ports;
}

struct metadata_t {
    bit<8> verdict;
    bit<8> step;
    bit<8> cause;     // of the record that leaves, or 0
    bit<8> protocol;
    slot_t slot;
    bit<32> low;      // the cell word to write; of SWEEP, the lowest of the current cell
    bit<32> high;     // of SWEEP, the highest
    bit<32> before;   // the cell word that was there
    key_t key;
    bit<32> seed;
#ifdef WITH_V6
    bit<32> more_seed;
#endif
    // Inputs of features.
    bit<16> ip_length;
    bit<8> ttl;
    bit<8> tos;
    bit<16> tcp;
    bit<32> gap;
#ifdef QUEUE_FEATURES
    bit<48> clock;
    bit<32> queue_depth;
    bit<32> hop_latency;
    bit<32> copies;   // 1 if this is one
    bit<8> known;     // the verdict, if the frame is known
    MirrorId_t session;
    bit<8> again;     // the kind of the copy
#endif
}

// Verdicts.
const bit<8> UNKNOWN = 0;
const bit<8> METERED = 1;
const bit<8> SWEEP = 2;
const bit<8> SWEEP_ALL = 3; // a record of the current cell, too
const bit<8> STATUS = 4;
const bit<8> SETTINGS = 5;
const bit<8> IGNORED = 6;
#ifdef QUEUE_FEATURES
const bit<8> PROBE = 7;  // the frame may join, but nothing else
const bit<8> PUNTED = 8; // its copy, on the CPU's port
#define SEEN PROBE       // of a frame that comes for the first time
#else
#define SEEN METERED
#endif

#ifdef QUEUE_FEATURES
const bit<8> COMES_AGAIN = 0xff; // instead of a cause
#endif

// What happens to the record of the slot.
const bit<8> STEP_NONE = 0;
const bit<8> STEP_JOIN = 1;
const bit<8> STEP_OPEN = 2; // or it was swept: then whatever is written counts for nothing

// A cell word: the cell's number (16 bits), its state, the protocol. An empty slot has 0.
const bit<8> STATE_OPEN = 1;
const bit<8> STATE_CLOSED = 3;
const bit<4> TCP_STARTS = STARTS_WITH_SYN >> 12; // bits 15 to 12 of the word `tcp`
#define WORD_IN_USE 8:8
#define WORD_CLOSED 9:9
#define WORD_OF_CELL 0xffff0000
#define WORD_ALIKE 0xfffffdff // its state may differ
