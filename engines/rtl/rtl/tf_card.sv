// SPDX-License-Identifier: Apache-2.0
// The part of a card that does not depend on its shell: it parses a stream of frames, meters
// packets of both families, and sends records and the frames that the host has to look at.
//
//   beats that pass ─▶ tap ─▶ parser ─▶ dealer ─▶ meter of IPv4 ─▶ ╮
//                       │                  ├────▶ meter of IPv6 ─▶ ├─▶ merge ─▶ m_axis, to the host
//                       ╰──▶ aside ◀───────╯  frames for the host ▶ ╯
//
// s_axis is observed, not taken: a beat passes in a clock with s_axis_tvalid_i. s_axis_tpause_o
// means that a beat would be lost now. A shell that can make the stream wait obeys it, and loses
// nothing; a shell that cannot ignores it, and the frames that are left out are counted. m_axis
// carries messages of the wire form (tf_egress), and frames after a beat of their own (tf_aside);
// m_axis_tuser_o is the packet's size. s_axil has 32-bit registers: those of the meters (tf_meter)
// at 0x1000 (IPv4) and 0x2000 (IPv6), and
//
//   0x000  identity, 0x7466_0002 (read only)
//   0x008  no packet comes any more (bit 0): the last cell ends
//   0x010  when it does, ns since 1970, low word first (0x014)
//   0x100  counters of 64 bits, read only, low word first, which holds the high one: packets_received
//          (frames that passed), packets_dropped (left out by the tap), handed_dropped (frames for
//          the host that found no room), packets_longer_than_frame
//   0x140  frames for the host by reason, as reason_e numbers them; 0: packets for the meters
//
// packets_received = packets_dropped + all of 0x140 + those still in the card.
module tf_card
  import tf_frame_pkg::*;
#(
  parameter int unsigned NumStages  = 2,
  parameter int unsigned BucketBits = 4,
  parameter int unsigned TagBits    = 8,
  parameter bit          TagsApart  = 1'b0,
  parameter int unsigned CellBits   = 27,
  parameter int unsigned WaitBits   = 9,     // log2 of the beats that wait for their description
  parameter bit          TimeOfDay  = 1'b0,  // as in tf_parser
  localparam int unsigned TimeBits  = TimeOfDay ? 96 : 64
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  input  logic                s_axis_tvalid_i,
  input  logic [511:0]        s_axis_tdata_i,
  input  logic [63:0]         s_axis_tkeep_i,
  input  logic                s_axis_tlast_i,
  input  logic                s_axis_tbad_i,
  input  logic [TimeBits-1:0] s_axis_tuser_i,
  output logic                s_axis_tpause_o,
  output logic                m_axis_tvalid_o,
  input  logic                m_axis_tready_i,
  output logic [511:0]        m_axis_tdata_o,
  output logic [63:0]         m_axis_tkeep_o,
  output logic                m_axis_tlast_o,
  output logic [15:0]         m_axis_tuser_o,
  input  logic                s_axil_awvalid_i,
  output logic                s_axil_awready_o,
  input  logic [13:0]         s_axil_awaddr_i,
  input  logic                s_axil_wvalid_i,
  output logic                s_axil_wready_o,
  input  logic [31:0]         s_axil_wdata_i,
  output logic                s_axil_bvalid_o,
  input  logic                s_axil_bready_i,
  output logic [1:0]          s_axil_bresp_o,
  input  logic                s_axil_arvalid_i,
  output logic                s_axil_arready_o,
  input  logic [13:0]         s_axil_araddr_i,
  output logic                s_axil_rvalid_o,
  input  logic                s_axil_rready_i,
  output logic [31:0]         s_axil_rdata_o,
  output logic [1:0]          s_axil_rresp_o
);
  // Frames to packets -----------------------------------------------------------------------------
  logic              give, loses, parser_ready, room, parsed_valid, parsed_ready, said, said_ready;
  parsed_t           parsed;
  logic [63:0]       parsed_time, received, dropped, handed_dropped, longer;
  logic [9:0][63:0]  handed;
  logic              ends_q;
  logic [63:0]       end_q;
  logic [1:0]        meter_valid, meter_ready;
  logic [1:0][511:0] meter_data;

  assign s_axis_tpause_o = loses | ~room;
  tf_tap u_tap (
    .clk_i, .rst_ni, .valid_i(s_axis_tvalid_i), .last_i(s_axis_tlast_i), .ready_i(parser_ready),
    .give_o(give), .loses_o(loses), .received_o(received), .dropped_o(dropped)
  );
  tf_parser #(.TimeOfDay(TimeOfDay)) u_parser (
    .clk_i, .rst_ni, .s_axis_tvalid_i(give), .s_axis_tready_o(parser_ready), .s_axis_tdata_i,
    .s_axis_tkeep_i, .s_axis_tlast_i, .s_axis_tbad_i, .s_axis_tuser_i, .valid_o(parsed_valid),
    .ready_i(parsed_ready), .parsed_o(parsed), .time_o(parsed_time)
  );
  tf_dealer #(.CellBits(CellBits)) u_dealer (
    .clk_i, .rst_ni, .valid_i(parsed_valid), .ready_o(parsed_ready), .parsed_i(parsed),
    .time_i(parsed_time), .ends_i(ends_q), .end_i(end_q), .meter_valid_o(meter_valid),
    .meter_ready_i(meter_ready), .meter_data_o(meter_data), .said_o(said),
    .said_ready_i(said_ready), .handed_o(handed), .longer_o(longer)
  );

  // To the host: 0 and 1 the meters, 2 whole frames -------------------------------------------------
  logic [2:0]        out_valid, out_ready, out_last;
  logic [2:0][511:0] out_data;
  logic [2:0][63:0]  out_keep;
  logic [2:0][15:0]  out_size;
  logic [1:0][15:0]  size_q;

  tf_aside #(.DepthBits(WaitBits)) u_aside (
    .clk_i, .rst_ni, .give_i(give), .data_i(s_axis_tdata_i), .keep_i(s_axis_tkeep_i),
    .last_i(s_axis_tlast_i), .room_o(room), .said_i(said), .said_ready_o(said_ready),
    .reason_i(parsed.reason), .time_i(parsed_time), .valid_o(out_valid[2]), .ready_i(out_ready[2]),
    .data_o(out_data[2]), .keep_o(out_keep[2]), .last_o(out_last[2]), .size_o(out_size[2]),
    .dropped_o(handed_dropped)
  );
  // The header of a message contains its length; it is in the first beat.
  always_comb begin
    for (int i = 0; i < 2; i++) begin
      out_size[i] = (out_data[i][15:0] == be16(16'h7466) && !out_last[i])
                    ? be16(out_data[i][63:48]) : size_q[i];
    end
  end
  always_ff @(posedge clk_i) size_q <= out_size[1:0];
  tf_merge #(.Streams(3), .UserBits(16)) u_merge (
    .clk_i, .rst_ni, .s_axis_tvalid_i(out_valid), .s_axis_tready_o(out_ready),
    .s_axis_tdata_i(out_data), .s_axis_tkeep_i(out_keep), .s_axis_tlast_i(out_last),
    .s_axis_tuser_i(out_size), .m_axis_tvalid_o, .m_axis_tready_i, .m_axis_tdata_o,
    .m_axis_tkeep_o, .m_axis_tlast_o, .m_axis_tuser_o
  );

  // Registers: 0 and 1 the meters, 2 the card's own -------------------------------------------------
  logic [2:0]       aw_to, ar_to, awready, wready, bvalid, arready, rvalid;
  logic [2:0][31:0] rdata;

  // One access at a time, so that answers cannot meet.
  always_comb begin
    aw_to = '0;
    ar_to = '0;
    for (int i = 0; i < 3; i++) begin
      aw_to[i] = s_axil_awvalid_i && bvalid == '0 && s_axil_awaddr_i[13:12] == 2'((i + 1) % 3);
      ar_to[i] = s_axil_arvalid_i && rvalid == '0 && s_axil_araddr_i[13:12] == 2'((i + 1) % 3);
    end
    s_axil_awready_o = |awready;
    s_axil_wready_o  = |wready;
    s_axil_bvalid_o  = |bvalid;
    s_axil_arready_o = |arready;
    s_axil_rvalid_o  = |rvalid;
    s_axil_bresp_o   = 2'b00;
    s_axil_rresp_o   = 2'b00;
    s_axil_rdata_o   = '0;
    for (int i = 0; i < 3; i++) if (rvalid[i]) s_axil_rdata_o |= rdata[i];
  end
  for (genvar i = 0; i < 2; i++) begin : g_meter
    logic [1:0] bresp, rresp;   // both are always 0
    tf_meter #(
      .KeyBits((i == 0) ? 104 : 296), .NumStages(NumStages), .BucketBits(BucketBits),
      .TagBits(TagBits), .TagsApart(TagsApart)
    ) u_meter (
      .clk_i, .rst_ni, .s_axis_tvalid_i(meter_valid[i]), .s_axis_tready_o(meter_ready[i]),
      .s_axis_tdata_i(meter_data[i]), .m_axis_tvalid_o(out_valid[i]),
      .m_axis_tready_i(out_ready[i]), .m_axis_tdata_o(out_data[i]), .m_axis_tkeep_o(out_keep[i]),
      .m_axis_tlast_o(out_last[i]), .s_axil_awvalid_i(aw_to[i]), .s_axil_awready_o(awready[i]),
      .s_axil_awaddr_i(s_axil_awaddr_i[11:0]), .s_axil_wvalid_i(s_axil_wvalid_i & aw_to[i]),
      .s_axil_wready_o(wready[i]), .s_axil_wdata_i, .s_axil_bvalid_o(bvalid[i]),
      .s_axil_bready_i, .s_axil_bresp_o(bresp), .s_axil_arvalid_i(ar_to[i]),
      .s_axil_arready_o(arready[i]), .s_axil_araddr_i(s_axil_araddr_i[11:0]),
      .s_axil_rvalid_o(rvalid[i]), .s_axil_rready_i, .s_axil_rdata_o(rdata[i]),
      .s_axil_rresp_o(rresp)
    );
    logic unused_responses;
    assign unused_responses = ^{bresp, rresp};
  end
  tf_card_registers u_registers (
    .clk_i, .rst_ni, .write_i(aw_to[2] & s_axil_wvalid_i), .write_addr_i(s_axil_awaddr_i[11:0]),
    .write_data_i(s_axil_wdata_i), .bvalid_o(bvalid[2]), .bready_i(s_axil_bready_i),
    .read_i(ar_to[2]), .read_addr_i(s_axil_araddr_i[11:0]), .rvalid_o(rvalid[2]),
    .rready_i(s_axil_rready_i), .read_data_o(rdata[2]), .ends_o(ends_q), .end_o(end_q),
    .counters_i({handed, {4{64'd0}}, longer, handed_dropped, dropped, received})
  );
  assign awready[2] = aw_to[2] & s_axil_wvalid_i;
  assign wready[2]  = awready[2];
  assign arready[2] = ar_to[2];
endmodule
