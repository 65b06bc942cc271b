// SPDX-License-Identifier: Apache-2.0
// Bounded proof for the records of a stage: packets in = packets in records + resident.
//
// The bench keeps the key and the packets of each slot, in the order of ops. A record that leaves
// has the key and the packets of its slot; a packet that joins adds one to the packets of its own
// key. So no packet is lost, invented, or given to another flow. The search is free except for its
// promises: a slot was in use if it was kept and not freed since, and a match needs a resident
// record. A sweep frees a slot, whatever key comes with it, and a sweep that finds nothing goes on.
module tf_records_proof
  import tf_pkg::*;
  import tf_record_pkg::*;
(
  input logic        clk_i,
  input logic        act_i,
  input logic        keep_i,
  input logic        matched_i,
  input logic        sweep_i,
  input logic        stale_i,
  input logic        addr_i,
  input logic [3:0]  key_i,
  input logic [73:0] packet_i,
  input logic        epoch_i,
  input logic        ends_cut_i
);
  localparam int unsigned KeyBits = 4;
  localparam int unsigned Depth   = 5;  // from the op to its token

  logic [1:0] reset_q;
  logic       rst_n;
  initial reset_q = '0;
  assign rst_n = &reset_q;

  logic [1:0]         used_q;     // slots in use, in the order of the search
  logic               act, keep, matched, sweep;
  kind_e              kind_in, kind;
  why_e               why;
  place_t             place;
  logic [KeyBits-1:0] key;
  body_t              body;

  assign act     = act_i & rst_n & (keep_i | used_q[addr_i]);
  assign keep    = keep_i;
  assign sweep   = sweep_i & ~keep_i;
  assign matched = matched_i & used_q[addr_i] & ~sweep;
  assign kind_in = sweep ? KindSweep : !act ? KindIdle : keep ? KindPacket : KindFlush;
  always_comb begin
    place       = '0;
    place.epoch = epoch_i;
  end
  always_ff @(posedge clk_i) begin
    if (!rst_n) reset_q <= reset_q + 2'd1;
    if (act) used_q[addr_i] <= keep;
    if (!rst_n) used_q <= '0;
  end

  tf_stage_records #(.KeyBits(KeyBits), .AddrBits(1)) u_records (
    .clk_i, .rst_ni(rst_n), .ends_cut_i, .act_i(act), .keep_i(keep), .matched_i(matched),
    .was_valid_i(used_q[addr_i]), .was_stale_i(stale_i), .sweep_i(sweep), .addr_i(addr_i),
    .kind_i(kind_in), .why_i(WhyCut), .key_i(key_i),
    .body_i(body_of_packet(place, packet_t'(packet_i))),
    .kind_o(kind), .why_o(why), .key_o(key), .body_o(body)
  );

  typedef struct packed {
    logic               act;
    logic               keep;
    logic               used;
    logic               sweep;
    logic               addr;
    logic [KeyBits-1:0] key;
  } op_t;
  op_t                op_q [Depth];
  op_t                op;
  logic [KeyBits-1:0] held_q    [2];
  logic [27:0]        packets_q [2];
  state_t             state;

  assign op    = op_q[Depth-1];
  assign state = state_t'(body);
  always_ff @(posedge clk_i) begin
    op_q[0] <= '{act: act, keep: keep, used: used_q[addr_i], sweep: sweep, addr: addr_i,
                 key: key_i};
    for (int i = 1; i < Depth; i++) op_q[i] <= op_q[i-1];
    if (!rst_n) for (int i = 0; i < Depth; i++) op_q[i].act <= 1'b0;
    if (rst_n && op.act) begin
      if (op.keep) held_q[op.addr] <= op.key;
      packets_q[op.addr] <= (op.used && kind != KindRecord) ? packets_q[op.addr] + 28'd1 : 28'd1;
      if (kind == KindRecord) begin
        OnlyAResidentLeaves:    assert (op.used);
        ItHasItsKey:            assert (key == held_q[op.addr]);
        ItHasItsPackets:        assert (state.packets == packets_q[op.addr]);
      end else begin
        OnlyItsOwnFlowIsJoined: assert (!op.used || (op.keep && op.key == held_q[op.addr]));
        NothingElseLeaves:      assert (kind == KindIdle);
        ASweepLeavesNothing:    assert (!op.sweep);
      end
    end
    if (rst_n && !op.act) NothingLeavesWithoutAnOp: assert (kind inside {KindIdle, KindSweep});
  end
endmodule
