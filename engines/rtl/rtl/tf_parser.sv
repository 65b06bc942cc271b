// SPDX-License-Identifier: Apache-2.0
// Takes frames in a stream of 512 bits, and gives a description of each, in order: a packet for the
// meter, or the reason why the host gets the frame whole.
//
// It reads Ethernet, up to two VLAN tags, IPv4 with options, IPv6 with up to four extension headers
// (hop-by-hop, routing, destination, fragment), and the ports and flags after them. It describes a
// packet as crates/packet does (engines/rtl/tests/frames/parser.rs).
//
// Input: AXI-Stream, packed as in tf_window. s_axis_tuser_i is the time of a frame, valid with its
// first beat; s_axis_tbad_i is valid with the last. Output: valid_o does not wait for ready_i.
// Latency 18 clocks from the last beat. A beat in every clock, so a frame in every clock: the
// parser itself never stalls. s_axis_tready_o only falls if the output is not taken, and never
// within a frame. Credits, as in tf_egress: the last beat of a frame costs one, which comes back
// when its entry leaves the queue.
module tf_parser
  import tf_frame_pkg::*;
#(
  // A time is in ns since 1970, or a PTP time of day: 48 bits of seconds, 32 of ns, 16 of
  // fractions.
  parameter bit          TimeOfDay = 1'b0,
  localparam int unsigned UserBits = TimeOfDay ? 96 : 64
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  input  logic                s_axis_tvalid_i,
  output logic                s_axis_tready_o,
  input  logic [511:0]        s_axis_tdata_i,
  input  logic [63:0]         s_axis_tkeep_i,
  input  logic                s_axis_tlast_i,
  input  logic                s_axis_tbad_i,
  input  logic [UserBits-1:0] s_axis_tuser_i,
  output logic                valid_o,
  input  logic                ready_i,
  output parsed_t             parsed_o,
  output logic [63:0]         time_o         // ns since 1970
);
  // More than the frames in transit, so that no frame waits for a credit to come back.
  localparam int unsigned DepthBits = 5;
  localparam int unsigned Depth     = 2**DepthBits;
  localparam int unsigned InTransit = 3;   // frames that may end before a missing credit is noticed

  logic                   given, first, done, damaged;
  logic [8*HeadBytes-1:0] head;
  logic [63:0]            last_keep;
  logic [9:0]             beats;
  logic                   room_q;
  logic [UserBits-1:0]    user_q;
  logic [63:0]            time_end;

  assign given           = s_axis_tvalid_i & s_axis_tready_o;
  assign s_axis_tready_o = room_q | ~first;
  tf_window u_window (
    .clk_i, .rst_ni, .valid_i(given), .data_i(s_axis_tdata_i), .keep_i(s_axis_tkeep_i),
    .last_i(s_axis_tlast_i), .bad_i(s_axis_tbad_i), .first_o(first), .done_o(done), .head_o(head),
    .last_keep_o(last_keep), .beats_o(beats), .damaged_o(damaged)
  );
  always_ff @(posedge clk_i) if (given && first) user_q <= s_axis_tuser_i;

  logic [255:0]           addresses, addresses_end;
  logic [7:0]             tos, ttl, tos_end, ttl_end, protocol, protocol_end;
  logic [8*RestBytes-1:0] rest;
  logic                   headed, is_v6, is_v6_end, is_later, is_longer, is_longer_end, ended;
  logic [3:0]             words;
  logic [15:0]            rest_end, last_byte, last_byte_end;
  logic [16:0]            length, length_end;
  logic [31:0]            ports;
  logic [11:0]            tcp_flags;
  reason_e                reason, reason_end;

  tf_headers u_headers (
    .clk_i, .rst_ni, .done_i(done), .head_i(head), .last_keep_i(last_keep), .beats_i(beats),
    .damaged_i(damaged), .addresses_o(addresses), .tos_o(tos), .ttl_o(ttl), .rest_o(rest),
    .done_o(headed), .is_v6_o(is_v6), .protocol_o(protocol), .is_later_o(is_later), .words_o(words),
    .rest_end_o(rest_end), .length_o(length), .is_longer_o(is_longer), .last_byte_o(last_byte),
    .reason_o(reason)
  );
  tf_transport u_transport (
    .clk_i, .rst_ni, .rest_i(rest), .done_i(headed), .is_v6_i(is_v6), .protocol_i(protocol),
    .is_later_i(is_later), .words_i(words), .rest_end_i(rest_end), .reason_i(reason),
    .done_o(ended), .is_v6_o(is_v6_end), .protocol_o(protocol_end), .ports_o(ports),
    .tcp_flags_o(tcp_flags), .reason_o(reason_end)
  );
  // Values that are not needed on the way wait beside it.
  localparam int unsigned WholeLatency = HeadersLatency + TransportLatency;
  if (TimeOfDay) begin : g_time_of_day
    localparam int unsigned TodLatency = 7;
    logic [63:0] time_ns;
    tf_time_of_day u_time (.clk_i, .time_of_day_i(user_q), .time_o(time_ns));
    tf_delay #(.Bits(64), .Clocks(WholeLatency - TodLatency)) u_user (
      .clk_i, .d_i(time_ns), .q_o(time_end)
    );
  end else begin : g_ns
    tf_delay #(.Bits(64), .Clocks(WholeLatency)) u_user (.clk_i, .d_i(user_q), .q_o(time_end));
  end
  tf_delay #(.Bits(256 + 16), .Clocks(TransportLatency + 1)) u_addresses (
    .clk_i, .d_i({addresses, tos, ttl}), .q_o({addresses_end, tos_end, ttl_end})
  );
  tf_delay #(.Bits(17 + 1 + 16), .Clocks(TransportLatency)) u_lengths (
    .clk_i, .d_i({length, is_longer, last_byte}), .q_o({length_end, is_longer_end, last_byte_end})
  );

  parsed_t parsed;
  always_comb begin
    parsed = '{key: {protocol_end, ports, addresses_end}, tos: tos_end, ttl: ttl_end,
               tcp_flags: tcp_flags, length: length_end, is_v6: is_v6_end, is_longer: is_longer_end,
               last_byte: last_byte_end, reason: reason_end};
    if (!is_v6_end) parsed.key = KeyBits6'({protocol_end, ports, addresses_end[63:0]});
  end
  tf_queue #(.Bits($bits(parsed_t) + 64), .DepthBits(DepthBits)) u_queue (
    .clk_i, .rst_ni, .put_i(ended), .data_i({parsed, time_end}), .valid_o, .ready_i,
    .data_o({parsed_o, time_o})
  );

  logic [DepthBits:0] credits_q;
  logic               spent, returned;
  assign spent    = given & s_axis_tlast_i;
  assign returned = valid_o & ready_i;
  always_ff @(posedge clk_i) begin
    credits_q <= credits_q - (DepthBits+1)'(spent) + (DepthBits+1)'(returned);
    room_q    <= credits_q >= (DepthBits+1)'(InTransit);
    if (!rst_ni) begin
      credits_q <= (DepthBits+1)'(Depth);
      room_q    <= 1'b0;
    end
  end

`ifdef VERILATOR
  // While entries are taken, beats are taken.
  logic [5:0] taken_for_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || (valid_o && !ready_i)) taken_for_q <= '0;
    else if (taken_for_q != '1) taken_for_q <= taken_for_q + 6'd1;
  end
  ABeatInEveryClock: assert property (@(posedge clk_i) disable iff (!rst_ni)
    (taken_for_q == '1) |-> s_axis_tready_o);
  CreditsAreNeverShort: assert property (@(posedge clk_i) disable iff (!rst_ni)
    spent |-> credits_q != '0);
`endif
endmodule
