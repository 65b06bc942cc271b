// SPDX-License-Identifier: Apache-2.0
// Spreads keys over stages: a table before the line, addressed by the hash, without keys.
//
//   stage of an entry = the one it has, if one of its packets came in this cell or the previous one
//                       else the next stage in turn that does not have too many entries
//
// Too many entries are more than the mean of all stages in this cell, plus one. So new entries take
// stages in turn, and even out the differences between entries that keep their stages.
//
// With the hash alone, the numbers of flows per stage are binomially distributed; the table evens
// them out (docs/decisions/0008-both-buckets-in-one-stage.md).
//
// A cell does not begin until the records of the one before the last have left the stages. So a
// record in a stage belongs to this cell or to the previous one, and its entry had a packet then.
// An entry therefore changes its stage only when none of its records is left, and at most one slot
// of all stages holds a key. Cells are numbered from 1 to 2**CellBits - 1, and then again from 1; 0
// means that no packet came to the entry. An entry older than one round of numbers looks young and
// keeps its stage, which is always correct. So nothing has to be cleared, not even after reset,
// when no stage holds a record.
//
// The choice depends only on the order of packets, not on the clocks between them: all registers of
// the choice advance with the first packet of an entry in a cell. Flushes look up their stage and
// change nothing.
//
// Latency tf_pkg::SpreadLatency clocks, one key in every clock, no handshake:
//
//   t0 entry addressed   t1 entry read   t2 compared, with what the ops two to four ahead decided
//   t3 decided (loop of one clock)       t4 out; entry written
module tf_spread
  import tf_pkg::*;
#(
  parameter int unsigned NumStages = 4,  // a power of two, at least 2
  parameter int unsigned EntryBits = 4,
  parameter int unsigned CellBits  = 3   // bits of a cell number; at least 2
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,
  input  logic [MaxStageBits-1:0] stage_mask_i,  // of a line smaller than the one built
  input  kind_e                   kind_i,        // at t0
  input  logic [EntryBits-1:0]    entry_i,       // at t0
  output logic [MaxStageBits-1:0] stage_o        // at t4
);
  localparam int unsigned SelectBits = $clog2(NumStages);

  typedef logic [SelectBits-1:0] stage_t;
  typedef logic [CellBits-1:0]   number_t;
  typedef logic [EntryBits:0]    count_t;
  typedef struct packed {
    number_t number;  // of the cell of its last packet
    stage_t  stage;
  } entry_t;

`include "tf_fault.svh"

  stage_t mask;
  assign mask = stage_mask_i[SelectBits-1:0];

  // t0 to t4: ops on their way, and the entries ---------------------------------------------------
  kind_e                kind1_q, kind2_q, kind3_q, kind4_q, kind5_q;
  logic [EntryBits-1:0] index1_q, index2_q, index3_q, index4_q, index5_q;
  entry_t               read1, read2_q, written4;
  logic                 takes4;
  stage_t               stage3, stage4_q, stage5_q, stage6_q;
  number_t              number_q, last_q, number3_q, number4_q;

  assign takes4   = kind4_q == KindPacket;
  assign written4 = '{number: number4_q, stage: stage4_q};
  tf_ram #(.Lanes(1), .LaneBits($bits(entry_t)), .AddrBits(EntryBits)) u_entries (
    .clk_i, .write_i(takes4), .write_addr_i(index4_q), .write_data_i(written4),
    .read_addr_i(entry_i), .read_data_o(read1)
  );

  // t1: which packets ahead have the same entry -------------------------------------------------
  // same2_q[n]: the one that is n + 1 ahead.
  logic [3:0] same2_q;
  logic       same3_q;
  always_ff @(posedge clk_i) begin
    same2_q <= {fault != 28 && kind5_q == KindPacket && index5_q == index1_q,
                fault != 27 && kind4_q == KindPacket && index4_q == index1_q,
                fault != 26 && kind3_q == KindPacket && index3_q == index1_q,
                fault != 25 && kind2_q == KindPacket && index2_q == index1_q};
    same3_q <= same2_q[0];
  end

  // t2: compared ---------------------------------------------------------------------------------
  logic   is_ahead2, is_this2, is_known2, is_this3_q, is_known3_q;
  stage_t stage2, stage3_q;

  always_comb begin
    is_ahead2 = |same2_q[3:1];
    is_this2  = is_ahead2 || read2_q.number == number_q;
    is_known2 = is_this2 || (fault != 29 && read2_q.number == last_q);
    stage2    = read2_q.stage & mask;
    if (same2_q[3]) stage2 = stage6_q;
    if (same2_q[2]) stage2 = stage5_q;
    if (same2_q[1]) stage2 = stage4_q;
  end

  // t3: decided ----------------------------------------------------------------------------------
  logic   is_first3, is_new3;
  stage_t next_q;

  always_comb begin
    stage3    = same3_q ? stage4_q : is_known3_q ? stage3_q : next_q;
    is_first3 = kind3_q == KindPacket && !same3_q && !is_this3_q;
    is_new3   = is_first3 && !is_known3_q;
  end

  // The choice of the next stage: the number of entries of each stage in this cell, and which
  // stages have too many. This is known one step late, so that no sum delays a choice.
  stage_t               turn_d, turn_q, left_q;
  count_t               most_q;    // the mean plus one
  count_t [NumStages-1:0] count_q;
  logic   [NumStages-1:0] full_q;

  // The first stage after `turn` that is not full; the one right after it if all are full.
  function automatic stage_t following(stage_t turn, logic [NumStages-1:0] full, stage_t used);
    following = (turn + 1'b1) & used;
    for (int i = NumStages; i >= 1; i--) begin
      if (!full[(turn + stage_t'(i)) & used]) following = (turn + stage_t'(i)) & used;
    end
  endfunction

  assign turn_d = is_new3 ? next_q : turn_q;
  always_ff @(posedge clk_i) begin
    if (is_first3) begin
      turn_q <= turn_d;
      next_q <= following(turn_d, full_q, mask);
      left_q <= (left_q == mask) ? '0 : left_q + 1'b1;
      if (left_q == mask) most_q <= most_q + 1'b1;
      for (int s = 0; s < NumStages; s++) begin
        full_q[s] <= count_q[s] > most_q;
        if (stage3 == stage_t'(s)) count_q[s] <= count_q[s] + 1'b1;
      end
    end
    if (kind3_q == KindEpoch || !rst_ni) begin
      left_q  <= '0;
      most_q  <= (EntryBits+1)'(1);
      count_q <= '0;
      full_q <= '0;
    end
    if (!rst_ni) begin
      turn_q <= '0;
      next_q <= '0;
    end
  end

  always_ff @(posedge clk_i) begin
    kind1_q  <= kind_i;
    kind2_q  <= kind1_q;
    kind3_q  <= kind2_q;
    kind4_q  <= kind3_q;
    kind5_q  <= kind4_q;
    index1_q <= entry_i;
    index2_q <= index1_q;
    index3_q <= index2_q;
    index4_q <= index3_q;
    index5_q <= index4_q;
    read2_q  <= read1;
    is_this3_q  <= is_this2;
    is_known3_q <= is_known2;
    stage3_q  <= stage2;
    stage4_q  <= stage3;
    stage5_q  <= stage4_q;
    stage6_q  <= stage5_q;
    number3_q <= number_q;
    number4_q <= number3_q;
    // Ops after the token are compared with the new cell.
    if (kind2_q == KindEpoch) begin
      last_q   <= number_q;
      number_q <= (&number_q) ? CellBits'(1) : number_q + 1'b1;
    end
    if (!rst_ni) begin
      kind1_q  <= KindIdle;
      kind2_q  <= KindIdle;
      kind3_q  <= KindIdle;
      kind4_q  <= KindIdle;
      kind5_q  <= KindIdle;
      number_q <= '1;
      last_q   <= '1;
    end
  end
  assign stage_o = MaxStageBits'(stage4_q);

`ifdef VERILATOR
  initial assert (NumStages == 2**SelectBits && SelectBits inside {[1:MaxStageBits]}
                  && CellBits >= 2);
  // After the last write, an entry at t4 is the result of all ops ahead. So it shows what is known
  // of the entry without forwarding.
  number_t last3_q, last4_q;
  entry_t  held4;
  always_ff @(posedge clk_i) begin
    last3_q <= last_q;
    last4_q <= last3_q;
  end
  assign held4 = u_entries.mem[index4_q];
  AnEntryKeepsItsStageForTwoCells: assert property (@(posedge clk_i) disable iff (!rst_ni)
    (kind4_q inside {KindPacket, KindFlush}
     && (held4.number == number4_q || held4.number == last4_q)) |-> stage4_q == (held4.stage & mask));
  EveryStageIsInUse: assert property (@(posedge clk_i) disable iff (!rst_ni)
    kind4_q == KindPacket |-> (stage4_q & ~mask) == '0);
`endif
endmodule
