// SPDX-License-Identifier: Apache-2.0
// What goes between the CPU and the pipeline, over one port. ../../src/{lane,report}.rs have the
// same numbers.
//
//   to the pipeline:  outer | lane | frame            (REPLAY: a frame with its time and length)
//                     outer | lane                    (SWEEP, STATUS)
//                     outer | lane | settings         (SETTINGS)
//   to the CPU:       outer | report | record         (the first three causes), one or several of them
//                     outer | report | status         (STATUS)
//                     outer | report | [lane |] frame (PUNTED)
//
// All of it passes through the pipeline in one order. So nothing has to be locked, and whatever is
// in a report came before the answer to a later STATUS.

#ifndef LANE_P4
#define LANE_P4

// An Ethernet header, so that the CPU port can be any port. IEEE 802 reserves this type for local
// experiments.
const bit<16> LANE_ETHER_TYPE = 0x88b6;

header outer_t {
    bit<48> destination;
    bit<48> source;
    bit<16> ether_type;
}

const bit<8> KIND_REPLAY = 0;
const bit<8> KIND_SWEEP = 1;    // reports the record of a slot
const bit<8> KIND_STATUS = 2;   // comes back with the counters
const bit<8> KIND_SETTINGS = 3; // the same, after it has set the seed and the size of the table

// REPLAY: the packet is older than the cell; no packet joins it.
const bit<8> FLAG_LATE = 1;
// REPLAY: no packet joins a record that has FIN or RST. On ports without lane, this is always so.
const bit<8> FLAG_CUT_AT_ENDS = 2;
// SWEEP: a record of the current cell, too.
const bit<8> FLAG_ALL = 1;
// SWEEP: `argument` is a slot, not a place in a list.
const bit<8> FLAG_SLOT = 2;
// SWEEP, STATUS: which list: that of cells with this lowest bit.
const bit<8> FLAG_ODD = 4;
// STATUS: the list is empty from now on, if it has `argument` places in use.
const bit<8> FLAG_RESET = 8;

header lane_t {
    bit<8> kind;
    bit<8> flags;
    bit<16> captured;     // REPLAY: bytes of the frame that follow; 65,535 for any more
    bit<32> argument;     // SWEEP, STATUS
    bit<32> frame_length; // REPLAY: bytes on the wire
    bit<32> cell;         // REPLAY, SWEEP: the number of the current cell of the clock; from 1
    bit<64> time_ns;      // REPLAY: time of arrival. STATUS, SETTINGS: any number, which comes back
}

header settings_t {
    bit<64> seed;
    bit<64> more_seed;
    bit<64> time_offset_ns; // what is added to the pipeline's clock, modulo 2^64
    bit<32> slot_mask;      // slots of each table, less one
    bit<32> meters;         // whether frames of ports without lane are metered: 0 or 1
}

// Version 1. No kind of lane has this number, because a port may show what was sent over it, too.
const bit<8> REPORT_VERSION = 0xf1;

const bit<8> CAUSE_COLLISION = 1; // by a packet of another flow
const bit<8> CAUSE_CUT = 2;       // by a packet of the flow that must not join
const bit<8> CAUSE_AGED = 3;      // it was of an older cell: swept, or displaced by any packet
const bit<8> CAUSE_STATUS = 4;
const bit<8> CAUSE_PUNTED = 5;    // a frame that the parser does not understand for certain

// What follows the report is not a further report: the target cannot cut the frame behind it.
const bit<8> REPORT_HAS_TRAILER = 1;
// PUNTED: the lane header of the frame precedes it.
const bit<8> REPORT_HAS_LANE = 2;
// STATUS: `sequence` is how many copies of frames are under way to the table, or were lost.
const bit<8> REPORT_COUNTS_COPIES = 4;

header report_t {
    bit<8> version;
    bit<8> cause;
    bit<8> flags;
    bit<8> family;    // 4 or 6, where the words of records have 32 bits
    bit<32> sequence; // number of reports before this one; see REPORT_COUNTS_COPIES
    bit<64> now_ns;   // the pipeline's time, with its offset
}

// The program, and what it has counted.
header status_t {
    bit<64> token;         // `time_ns` of the lane
    bit<64> layout_id;     // of the record definition
    bit<32> slots;         // of each table, at most
    bit<16> abilities;
    bit<16> word_bits;     // of a word of a record
    bit<32> listed;        // places in use in the list
    bit<32> cell_shift;    // without lane, cells last 2 to this power in ns; 0: there are no such
    bit<64> packets;       // metered
    bit<64> bytes;         // of these, according to their IP headers
    bit<64> too_long;      // of these: longer than their frame, according to the IP header
    bit<64> frame_bytes;   // of all frames, on the wire
    bit<64> punted;
    bit<64> evicted;       // records
    bit<64> sweeps;        // commands
}

// The program lists the slots in use, so that only these have to be swept.
const bit<16> ABILITY_LISTS = 1;
// It takes frames by the lane.
const bit<16> ABILITY_REPLAY = 2;
// Its counters have 32 bits and begin anew at 2^32; those it does not keep are 0. Sums in records
// stay at 2^32 - 1 once they have reached it.
const bit<16> ABILITY_WRAPS = 4;
// It has one table: IPv6 goes to the CPU as frames.
const bit<16> ABILITY_NO_V6 = 8;

// The cell word of a slot: the number of the cell, then a bit that says that nothing may join. An
// empty slot has 0.
#define CELL_WORD(cell, closed) (((cell) << 1) | (closed))

// Bit of the word `tcp`, above the 12 TCP flags: the record began with a SYN without ACK.
#define STARTS_WITH_SYN 0x1000

#endif
