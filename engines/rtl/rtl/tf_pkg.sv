// SPDX-License-Identifier: Apache-2.0
// Tokens of the line, and widths that do not depend on the record definition.
package tf_pkg;
  parameter int unsigned MaxStageBits  = 6;   // a line has at most 64 stages
  parameter int unsigned MaxBucketBits = 12;  // a subtable has at most 4,096 buckets in a stage
  parameter int unsigned MaxTagBits    = 16;
  parameter int unsigned AgeBits       = 2;   // coarse time of the last use of a slot
  // Packets from the first one written with a new period to the first one compared with it. This is
  // more than the ops between the search for a slot and its writing.
  parameter int unsigned TurningPackets = 8;
  parameter int unsigned SeedBits      = 512; // of the hash; as many as the longest key needs
  parameter int unsigned StageLatency  = 13;  // clocks that any token spends in a stage
  parameter int unsigned HashLatency   = 4;
  parameter int unsigned SpreadLatency = 4;   // of the table that gives the stage
  // Places without a packet after a token that empties slots or begins a cell. Ops within this
  // distance forward their decisions, and rely on each other to take slots and never free them.
  parameter int unsigned SpecialGap    = 3;

  // log2 of the entries of the table that gives the stage: a quarter of the slots of all stages; 0
  // if there is only one stage.
  function automatic int unsigned entry_bits_of(int unsigned stages, int unsigned addr_bits);
    return (stages == 1) ? 0 : $clog2(stages) + addr_bits - 2;
  endfunction
  // Clocks between the sequencer and the first stage.
  function automatic int unsigned head_latency_of(int unsigned entry_bits);
    return HashLatency + ((entry_bits == 0) ? 0 : SpreadLatency);
  endfunction

  // Places that may be taken before the head notices that a credit was spent.
  parameter int unsigned CreditLatency = 6;
  // log2 of the entries of the egress's queue: more than the places in transit, and at least 128,
  // so that a short wait of the receiver makes no packet wait.
  function automatic int unsigned depth_bits_of(int unsigned line_latency);
    return (line_latency + CreditLatency < 128) ? 7 : $clog2(line_latency + CreditLatency + 1);
  endfunction

  // What a place of the line carries. A stage that consumes a token leaves its place to the record
  // that the token displaced.
  typedef enum logic [2:0] {
    KindIdle   = 3'd0,
    KindPacket = 3'd1,
    KindRecord = 3'd2,  // an evicted record on its way out
    KindSweep  = 3'd3,  // an empty place that a stage may fill with a record of an ended cell
    KindEpoch  = 3'd4,  // a cell begins
    KindFlush  = 3'd5,  // evict the record of this key
    KindAlone  = 3'd6   // a packet for which no record has room, on its way out
  } kind_e;

  // Why a record left, in the terms of the ledger.
  typedef enum logic [1:0] {
    WhyCollision = 2'd0,
    WhyAge       = 2'd1,
    WhyCut       = 2'd2
  } why_e;

  // What the input brings.
  typedef enum logic [1:0] {
    InputNone   = 2'd0,
    InputPacket = 2'd1,
    InputCell   = 2'd2  // a cell begins; everything of the cell before it leaves
  } input_e;

  // The place of a key, and the time of its packet.
  typedef struct packed {
    logic [MaxStageBits-1:0]       stage;
    logic [1:0][MaxBucketBits-1:0] bucket;
    logic [MaxTagBits-1:0]         tag;
    logic                          epoch;
    logic [AgeBits-1:0]            age;
    logic                          turning;  // the next period has begun for slots being written
  } place_t;
endpackage
