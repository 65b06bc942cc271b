// SPDX-License-Identifier: Apache-2.0
// Bounded proof for the table before the line: a key keeps its stage while a record of it may be in
// a stage, so at most one slot of all stages holds it.
//
// For each entry, the bench keeps the last stage that was given, and whether a packet came in this
// cell or in the previous one. No stage holds a record of any other cell, because tf_sequencer
// begins no cell until the records of the one before the last have left
// (NothingIsStaleWhenACellBegins in tf_stage_tags). The table must return this stage, for packets
// and for flushes. Inputs are free, except for the promises of tf_sequencer: SpecialGap places
// without a packet after a cell begins and after a flush. There are three cell numbers, so that
// numbers repeat. Two of four stages are in use, and the initial content of the memory is free.
module tf_spread_proof
  import tf_pkg::*;
(
  input logic       clk_i,
  input logic [1:0] kind_i,
  input logic       entry_i
);
  localparam int unsigned Depth = SpreadLatency;  // from an op to its result

  logic [1:0] reset_q;
  logic       rst_n;
  initial reset_q = '0;
  assign rst_n = &reset_q;

  kind_e      kind;
  logic [1:0] gap_q;
  logic [MaxStageBits-1:0] stage;

  // The inputs that tf_sequencer allows.
  always_comb begin
    unique case (kind_i)
      2'd0: kind = KindIdle;
      2'd1: kind = KindPacket;
      2'd2: kind = KindEpoch;
      2'd3: kind = KindFlush;
    endcase
    if (!rst_n || gap_q != '0) kind = KindIdle;
  end
  always_ff @(posedge clk_i) begin
    if (!rst_n) reset_q <= reset_q + 2'd1;
    gap_q <= (gap_q == '0) ? '0 : gap_q - 2'd1;
    if (kind inside {KindEpoch, KindFlush}) gap_q <= 2'(SpecialGap);
    if (!rst_n) gap_q <= '0;
  end

  tf_spread #(.NumStages(4), .EntryBits(1), .CellBits(2)) u_spread (
    .clk_i, .rst_ni(rst_n), .stage_mask_i(MaxStageBits'(1)), .kind_i(kind), .entry_i(entry_i),
    .stage_o(stage)
  );

  kind_e      kind_q  [Depth];
  logic       entry_q [Depth];
  kind_e      said;
  logic       entry;
  logic [1:0] this_q, last_q;      // whether a packet of the entry came
  logic [1:0][MaxStageBits-1:0] stage_q;

  assign said  = kind_q[Depth-1];
  assign entry = entry_q[Depth-1];
  always_ff @(posedge clk_i) begin
    kind_q[0]  <= kind;
    entry_q[0] <= entry_i;
    for (int i = 1; i < Depth; i++) begin
      kind_q[i]  <= kind_q[i-1];
      entry_q[i] <= entry_q[i-1];
    end
    if (said == KindPacket) begin
      this_q[entry]  <= 1'b1;
      stage_q[entry] <= stage;
    end
    if (said == KindEpoch) begin
      last_q <= this_q;
      this_q <= '0;
    end
    if (!rst_n) begin
      for (int i = 0; i < Depth; i++) kind_q[i] <= KindIdle;
      this_q <= '0;
      last_q <= '0;
    end
    if (rst_n && said inside {KindPacket, KindFlush} && (this_q[entry] || last_q[entry])) begin
      AKeyKeepsItsStage: assert (stage == stage_q[entry]);
    end
    if (rst_n && said == KindPacket) ItIsAStageInUse: assert (stage <= MaxStageBits'(1));
  end
endmodule
