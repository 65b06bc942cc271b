// SPDX-License-Identifier: Apache-2.0
// The second half of a stage: merges a packet into the record of its slot, or displaces that
// record.
//
//   record = slot
//   if record belongs to the packet's flow and cell: slot = record + packet
//   else: slot = packet; the record leaves in the packet's place
//
// Latency 6 clocks, one op in every clock, no handshake:
//
//   r0 slot addressed               r3 may it join? if the op ahead joins, and if it displaces
//   r1 slot read, key written       r4 join or displace (loop of one clock)
//   r2 key compared in groups       r5 state written, token out
//
// A slot holds the key of the last op on it, whatever that op did. So keys are written before they
// are compared, and only the op directly ahead is forwarded. States are read at r0 and written at
// r5: ops in between watch the one at r5 and take what it writes. Whether a packet may join depends
// on what the op directly ahead does at r4. So this is computed for both cases at r3, and the loop
// only selects one of two bits.
module tf_stage_records
  import tf_pkg::*;
  import tf_record_pkg::*;
#(
  parameter int unsigned KeyBits  = 104,
  parameter int unsigned AddrBits = 10
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  input  logic                ends_cut_i,   // no packet joins a record with FIN or RST
  // At r0: the decision of the search, and the token.
  input  logic                act_i,
  input  logic                keep_i,
  input  logic                matched_i,
  input  logic                was_valid_i,
  input  logic                was_stale_i,
  input  logic                sweep_i,
  input  logic [AddrBits-1:0] addr_i,
  input  kind_e               kind_i,
  input  why_e                why_i,
  input  logic [KeyBits-1:0]  key_i,
  input  body_t               body_i,
  // At r5.
  output kind_e               kind_o,
  output why_e                why_o,
  output logic [KeyBits-1:0]  key_o,
  output body_t               body_o
);
  // Groups of key bits that are compared separately.
  localparam int unsigned Groups    = 8;
  localparam int unsigned GroupBits = (KeyBits + Groups - 1) / Groups;

  typedef struct packed {
    logic                act;        // the op accesses the slot
    logic                keep;       // it holds the packet afterwards
    logic                matched;
    logic                was_valid;
    logic                was_stale;
    logic                sweep;
    logic [AddrBits-1:0] addr;
  } use_t;

`include "tf_fault.svh"

  // The op and its token on the way --------------------------------------------------------------
  use_t               use0, use1_q, use2_q, use3_q, use4_q, use5_q;
  packet_body_t       in0, in1_q, in2_q, in3_q, in4_q;
  logic [KeyBits-1:0] key1_q, key2_q, key3_q;
  kind_e              kind1_q, kind2_q, kind3_q, kind4_q, kind5_q;
  logic [KeyBits-1:0] passing_key5;
  body_t              passing_body5;
  why_e               passing_why5;

  assign use0 = '{act: act_i, keep: keep_i, matched: matched_i, was_valid: was_valid_i,
                  was_stale: was_stale_i, sweep: sweep_i, addr: addr_i};
  assign in0  = packet_of_body(body_i);

  // Tokens that only pass through.
  tf_delay #(.Bits(KeyBits + BodyBits + 2), .Clocks(5)) u_passing (
    .clk_i, .d_i({why_i, key_i, body_i}), .q_o({passing_why5, passing_key5, passing_body5})
  );

  // Whether an op finds in its slot what an op ahead puts there.
  function automatic logic sees(use_t later, use_t ahead);
    return ahead.act & ahead.keep & (ahead.addr == later.addr);
  endfunction

  // Keys: read at r0, written at r1 ---------------------------------------------------------------
  logic [KeyBits-1:0] key_read1, key_read2_q, resident_key2;
  logic [KeyBits-1:0] resident_key3_q, resident_key4_q, resident_key5_q;
  logic               key_ahead2_q;
  logic [Groups-1:0]  same_groups3_d, same_groups3_q;
  logic [Groups*GroupBits-1:0] wide_resident2, wide_key2;

  tf_ram #(.Lanes(1), .LaneBits(KeyBits), .AddrBits(AddrBits)) u_keys (
    .clk_i, .write_i(use1_q.act & use1_q.keep), .write_addr_i(use1_q.addr),
    .write_data_i(key1_q), .read_addr_i(use0.addr), .read_data_o(key_read1)
  );

  always_comb begin
    resident_key2  = key_ahead2_q ? key3_q : key_read2_q;
    wide_resident2 = (Groups*GroupBits)'(resident_key2);
    wide_key2      = (Groups*GroupBits)'(key2_q);
    for (int g = 0; g < Groups; g++) begin
      same_groups3_d[g] = wide_resident2[g*GroupBits +: GroupBits]
                          == wide_key2[g*GroupBits +: GroupBits];
    end
  end

  // States: read at r0, written at r5 -------------------------------------------------------------
  state_t state_read1, state_read2_q, state3_q, state4_q, seen1_q, seen2_q, seen3;
  state_t old4, new4, old5_q, new5_q;
  logic   sees1_q, sees2_q, sees3_q, ahead3_q, ahead4_q;
  logic   has1_q, has2_q;

  tf_ram #(.Lanes(1), .LaneBits(StateBits), .AddrBits(AddrBits)) u_states (
    .clk_i, .write_i(use5_q.act & use5_q.keep), .write_addr_i(use5_q.addr),
    .write_data_i(new5_q), .read_addr_i(use0.addr), .read_data_o(state_read1)
  );

  // seesN_q: the op at rN sees what the op at r5 writes. Addresses are known one clock earlier.
  always_ff @(posedge clk_i) begin
    has1_q   <= (fault != 22) & sees(use0, use5_q);
    seen1_q  <= new5_q;
    sees1_q  <= (fault != 21) & sees(use0, use4_q);
    sees2_q  <= (fault != 20) & sees(use1_q, use4_q);
    sees3_q  <= (fault != 19) & sees(use2_q, use4_q);
    ahead3_q <= sees(use2_q, use3_q);
    ahead4_q <= (fault != 18) & ahead3_q;
    has2_q   <= has1_q | sees1_q;
    seen2_q  <= sees1_q ? new5_q : seen1_q;
    state3_q <= sees2_q ? new5_q : has2_q ? seen2_q : state_read2_q;
    state4_q <= seen3;
  end
  assign seen3 = sees3_q ? new5_q : state3_q;

  // r3: may the packet join? ----------------------------------------------------------------------
  logic may3, if_joins3, if_displaces3, same_key3, same_key4_q;
  logic if_joins4_q, if_displaces4_q, joins4, joins5_q;

  always_comb begin
    same_key3 = &same_groups3_q;
    may3      = use3_q.act & use3_q.matched & use3_q.was_valid & use3_q.keep & same_key3;
    if_joins3 = may_join(in3_q, seen3, ends_cut_i);
    if_displaces3 = if_joins3;
    if (fault != 33 && ahead3_q) begin
      if_joins3     = may_join_after(in3_q, old4, in4_q, ends_cut_i);
      if_displaces3 = may_join(in3_q, state_of_packet(in4_q), ends_cut_i);
    end
  end

  // r4: join or displace --------------------------------------------------------------------------
  logic displaces4, displaces5_q;
  why_e why4, why5_q;

  always_comb begin
    old4       = ahead4_q ? new5_q : state4_q;
    joins4     = (joins5_q | (fault == 23)) ? if_joins4_q : if_displaces4_q;
    new4       = joins4 ? merged(old4, in4_q) : state_of_packet(in4_q);
    displaces4 = use4_q.act & use4_q.was_valid & ~joins4;
    why4       = (use4_q.sweep | use4_q.was_stale) ? WhyAge : same_key4_q ? WhyCut : WhyCollision;
  end

  always_ff @(posedge clk_i) begin
    use1_q <= use0;
    use2_q <= use1_q;
    use3_q <= use2_q;
    use4_q <= use3_q;
    use5_q <= use4_q;
    in1_q  <= in0;
    in2_q  <= in1_q;
    in3_q  <= in2_q;
    in4_q  <= in3_q;
    key1_q <= key_i;
    key2_q <= key1_q;
    key3_q <= key2_q;
    key_read2_q     <= key_read1;
    key_ahead2_q    <= (fault != 17) & sees(use1_q, use2_q);
    same_groups3_q  <= same_groups3_d;
    same_key4_q     <= same_key3;
    resident_key3_q <= resident_key2;
    resident_key4_q <= resident_key3_q;
    resident_key5_q <= resident_key4_q;
    state_read2_q   <= state_read1;
    if_joins4_q     <= may3 & if_joins3;
    if_displaces4_q <= may3 & if_displaces3;
    joins5_q        <= joins4;
    new5_q          <= new4;
    old5_q          <= old4;
    displaces5_q    <= displaces4;
    why5_q          <= why4;
    kind1_q <= kind_i;
    kind2_q <= kind1_q;
    kind3_q <= kind2_q;
    kind4_q <= kind3_q;
    // The token's place: the displaced record, or nothing. A sweep that found nothing goes on.
    kind5_q <= displaces4 ? KindRecord : (use4_q.act & ~use4_q.sweep) ? KindIdle : kind4_q;
    if (!rst_ni) begin
      use1_q.act <= 1'b0;
      use2_q.act <= 1'b0;
      use3_q.act <= 1'b0;
      use4_q.act <= 1'b0;
      use5_q.act <= 1'b0;
      displaces5_q <= 1'b0;
      kind1_q <= KindIdle;
      kind2_q <= KindIdle;
      kind3_q <= KindIdle;
      kind4_q <= KindIdle;
      kind5_q <= KindIdle;
    end
  end

  assign kind_o = kind5_q;
  assign why_o  = displaces5_q ? why5_q : passing_why5;
  assign key_o  = displaces5_q ? resident_key5_q : passing_key5;
  assign body_o = displaces5_q ? body_of_state(old5_q) : passing_body5;

`ifdef VERILATOR
  // A join adds one packet to the content of the slot, and only a packet that the search matched
  // joins.
  OnlyMatchedPacketsJoin: assert property (@(posedge clk_i) disable iff (!rst_ni)
    joins4 |-> (use4_q.act && use4_q.matched && kind4_q == KindPacket));
  ADisplacedRecordHasPackets: assert property (@(posedge clk_i) disable iff (!rst_ni)
    displaces5_q |-> (old5_q.packets != '0));
`endif
endmodule
