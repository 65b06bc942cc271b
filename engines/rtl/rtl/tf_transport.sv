// SPDX-License-Identifier: Apache-2.0
// Extension headers of IPv6, and the ports and flags after them.
//
// The 64 bytes after the fixed header are eight blocks, each of which may be an extension header.
// All are read in advance (next header, length, whether it is of a later fragment), so that a step
// of the chain selects one of eight. If the packet ends within the chain, the last value present
// counts, without ports. A chain that continues beyond the eight blocks is for the host.
//
// Latency 2 * ExtensionSteps + 3 clocks, one frame in every clock, no handshake. Each step:
//
//   a the block is chosen; does the header end within the packet, and within what is seen?
//   b the next header, and where it is
//
// and at the end: t0 as a, for the transport header; t1 and t2 its words are chosen.
module tf_transport
  import tf_frame_pkg::*;
(
  input  logic                   clk_i,
  input  logic                   rst_ni,
  // One clock before the first step; rest_i two clocks before.
  input  logic [8*RestBytes-1:0] rest_i,
  input  logic                   done_i,
  input  logic                   is_v6_i,
  input  logic [7:0]             protocol_i,
  input  logic                   is_later_i,
  input  logic [3:0]             words_i,
  input  logic [15:0]            rest_end_i,
  input  reason_e                reason_i,
  output logic                   done_o,
  output logic                   is_v6_o,
  output logic [7:0]             protocol_o,
  output logic [31:0]            ports_o,      // as on the wire
  output logic [11:0]            tcp_flags_o,
  output reason_e                reason_o
);
`include "tf_fault.svh"

  localparam int unsigned Steps  = ExtensionSteps;
  localparam int unsigned Blocks = RestBytes / 8;
  // Words of 4 bytes: enough for what the steps may skip, 2,048 bytes each.
  localparam int unsigned AtBits = 12;

  typedef struct packed {
    logic [7:0] next;
    logic [7:0] length;    // in blocks, less one
    logic       is_later;
  } block_t;
  typedef struct packed {
    logic              done;
    logic              is_v6;
    logic              ended;      // no extension header follows
    logic              is_later;   // no transport header follows
    logic [7:0]        protocol;
    logic [AtBits-1:0] at;         // words after the fixed header
    logic [15:0]       rest_end;
    reason_e           reason;
  } chain_t;
  localparam logic [16:0] Seen = 17'(RestBytes);

  // Whether this many bytes from a word on are in the packet, and whether they are visible.
  function automatic logic is_within(logic [AtBits-1:0] at, logic [4:0] bytes, logic [15:0] rest_end);
    return 17'({at, 2'b00}) + 17'(bytes) <= 17'(rest_end);
  endfunction
  function automatic logic is_seen(logic [AtBits-1:0] at, logic [4:0] bytes);
    return 17'({at, 2'b00}) + 17'(bytes) <= Seen;
  endfunction

  // The chain ------------------------------------------------------------------------------------
  chain_t              start, chain [Steps+1];
  block_t [Blocks-1:0] blocks [Steps+1];
  logic   [8*RestBytes-1:0] rest_q;

  always_ff @(posedge clk_i) rest_q <= rest_i;
  always_comb begin
    for (int i = 0; i < Blocks; i++) begin
      blocks[0][i] = '{next: rest_q[64*i +: 8], length: rest_q[64*i+8 +: 8],
                       is_later: (be16(rest_q[64*i+16 +: 16]) & 16'hfff8) != '0};
    end
    start = '{done: done_i, is_v6: is_v6_i, ended: !is_v6_i, is_later: is_later_i,
              protocol: protocol_i, at: AtBits'(words_i), rest_end: rest_end_i, reason: reason_i};
  end
  assign chain[0] = start;

  for (genvar s = 0; s < Steps; s++) begin : g_step
    chain_t a_q, b_d, b_q;
    block_t found_q;
    logic   is_fragment_q, is_other_q, follows_q, within_q, seen_q, is_fragment;

    assign is_fragment = chain[s].protocol == ProtocolFragment;
    always_ff @(posedge clk_i) begin
      a_q           <= chain[s];
      found_q       <= blocks[s][chain[s].at[3:1]];
      is_fragment_q <= is_fragment;
      is_other_q    <= chain[s].protocol == ProtocolAuthentication;
      follows_q     <= is_extension(chain[s].protocol);
      within_q      <= is_within(chain[s].at, is_fragment ? 5'd8 : 5'd2, chain[s].rest_end);
      seen_q        <= is_seen(chain[s].at, is_fragment ? 5'd8 : 5'd2);
      b_q           <= b_d;
      if (!rst_ni) begin
        a_q.done <= 1'b0;
        b_q.done <= 1'b0;
      end
    end
    always_comb begin
      b_d = a_q;
      if (!a_q.ended) begin
        // The last value in the packet stays valid.
        if (!follows_q || (!within_q && fault != 33)) b_d.ended = 1'b1;
        if (is_other_q) begin
          b_d.ended = 1'b1;
          if (a_q.reason == ReasonNone) b_d.reason = ReasonExtension;
        end
        if (follows_q && (within_q || fault == 33)) begin
          b_d.protocol = found_q.next;
          b_d.at       = a_q.at + ((is_fragment_q && fault != 31) ? AtBits'(2)
                                                 : AtBits'({found_q.length, 1'b0}) + AtBits'(2));
          if (is_fragment_q && found_q.is_later && fault != 32) begin
            b_d.is_later = 1'b1;
            b_d.ended    = 1'b1;
          end
          if (!seen_q && fault != 34) begin
            b_d.ended = 1'b1;
            if (a_q.reason == ReasonNone) b_d.reason = ReasonDeep;
          end
        end
      end
    end
    assign chain[s+1] = b_q;
    tf_delay #(.Bits($bits(blocks[0])), .Clocks(2)) u_blocks (
      .clk_i, .d_i(blocks[s]), .q_o(blocks[s+1])
    );
  end

  // t0: the place of the transport header, and how much of it there is ----------------------------
  chain_t              last;
  logic                ports_within, flags_within, hidden;
  logic                done1_q, is_v6_1_q, has_ports1_q, has_flags1_q;
  logic [7:0]          protocol1_q;
  logic [3:0]          at1_q, flags_at1_q;
  reason_e             reason1_q;
  logic [8*RestBytes-1:0] rest1;

  assign last = chain[Steps];
  always_comb begin
    ports_within = !last.is_later && has_ports(last.protocol)
                   && is_within(last.at, 5'd4, last.rest_end);
    flags_within = !last.is_later && last.protocol == ProtocolTcp
                   && is_within(last.at, 5'd14, last.rest_end);
    // Bytes in the packet are not visible, or extension headers continue after the last step.
    hidden = (fault != 35) && ((ports_within && !is_seen(last.at, 5'd4)) || (flags_within && !is_seen(last.at, 5'd14))
             || (!last.ended && last.protocol == ProtocolAuthentication)
             || (!last.ended && is_extension(last.protocol)
                 && is_within(last.at, (last.protocol == ProtocolFragment) ? 5'd8 : 5'd2,
                              last.rest_end)));
  end
  always_ff @(posedge clk_i) begin
    done1_q      <= last.done;
    is_v6_1_q    <= last.is_v6;
    protocol1_q  <= last.protocol;
    has_ports1_q <= ports_within;
    has_flags1_q <= flags_within;
    at1_q        <= last.at[3:0];
    flags_at1_q  <= last.at[3:0] + 4'd3;
    reason1_q    <= last.reason;
    if (last.reason == ReasonNone && hidden) reason1_q <= ReasonDeep;
    if (!rst_ni) done1_q <= 1'b0;
  end
  // From the input of rest_i to t1.
  tf_delay #(.Bits(8*RestBytes), .Clocks(2*Steps + 2)) u_rest (
    .clk_i, .d_i(rest_i), .q_o(rest1)
  );

  // t1, t2: one of 16 words, selected in two steps of one in four ---------------------------------
  logic             done2_q, is_v6_2_q, has_ports2_q, has_flags2_q;
  logic [7:0]       protocol2_q;
  logic [3:0][31:0] ports2_q;
  logic [3:0][15:0] flags2_q;
  logic [1:0]       at2_q, flags_at2_q;
  reason_e          reason2_q;

  always_ff @(posedge clk_i) begin
    for (int i = 0; i < 4; i++) begin
      ports2_q[i] <= rest1[128*i + 32*at1_q[1:0] +: 32];
      flags2_q[i] <= rest1[128*i + 32*flags_at1_q[1:0] +: 16];
    end
    done2_q      <= done1_q;
    is_v6_2_q    <= is_v6_1_q;
    protocol2_q  <= protocol1_q;
    has_ports2_q <= has_ports1_q;
    has_flags2_q <= has_flags1_q;
    at2_q        <= at1_q[3:2];
    flags_at2_q  <= flags_at1_q[3:2];
    reason2_q    <= reason1_q;
    done_o       <= done2_q;
    is_v6_o      <= is_v6_2_q;
    protocol_o   <= protocol2_q;
    ports_o      <= has_ports2_q ? ports2_q[at2_q] : '0;
    tcp_flags_o  <= has_flags2_q ? 12'(be16(flags2_q[flags_at2_q])) : '0;
    reason_o     <= reason2_q;
    if (!rst_ni) begin
      done2_q <= 1'b0;
      done_o  <= 1'b0;
    end
  end
endmodule
