// SPDX-License-Identifier: Apache-2.0
// The card in an application block of Corundum (one port): it observes the received frames, and
// sends its own messages together with the frames that go to the host.
//
// The ports have the names and meanings of the shell's application block. This block only has the
// streams that it needs; the others pass as in an empty block. Streams have 512 bits. The user part
// of a received frame is a PTP time of day above a bit that marks a bad frame. Nothing waits for
// the card: the tap only observes, and frames that begin while the card has no room are left out
// and counted. Records, and frames that the host has to look at, are sent as Ethernet frames of
// type 0x88b5 (that of the wire form) between those of the interface, for the receive queue
// HostQueue.
module tf_corundum #(
  parameter int unsigned NumStages  = 2,
  parameter int unsigned BucketBits = 4,
  parameter bit          TagsApart  = 1'b0,
  parameter int unsigned PTP_TS_WIDTH = 96,
  parameter int unsigned AXIS_RX_USER_WIDTH = PTP_TS_WIDTH + 1,
  parameter int unsigned AXIS_IF_RX_ID_WIDTH = 1,
  parameter int unsigned AXIS_IF_RX_DEST_WIDTH = 8,
  parameter logic [AXIS_IF_RX_DEST_WIDTH-1:0] HostQueue = 8'd1,
  parameter logic [47:0] HostMac = 48'h02_00_00_00_00_02,   // first wire byte in the top bits
  parameter logic [47:0] CardMac = 48'h02_00_00_00_00_01
) (
  input  logic                             clk,
  input  logic                             rst,

  input  logic [511:0]                     s_axis_sync_rx_tdata,
  input  logic [63:0]                      s_axis_sync_rx_tkeep,
  input  logic                             s_axis_sync_rx_tvalid,
  output logic                             s_axis_sync_rx_tready,
  input  logic                             s_axis_sync_rx_tlast,
  input  logic [AXIS_RX_USER_WIDTH-1:0]    s_axis_sync_rx_tuser,

  output logic [511:0]                     m_axis_sync_rx_tdata,
  output logic [63:0]                      m_axis_sync_rx_tkeep,
  output logic                             m_axis_sync_rx_tvalid,
  input  logic                             m_axis_sync_rx_tready,
  output logic                             m_axis_sync_rx_tlast,
  output logic [AXIS_RX_USER_WIDTH-1:0]    m_axis_sync_rx_tuser,

  input  logic [511:0]                     s_axis_if_rx_tdata,
  input  logic [63:0]                      s_axis_if_rx_tkeep,
  input  logic                             s_axis_if_rx_tvalid,
  output logic                             s_axis_if_rx_tready,
  input  logic                             s_axis_if_rx_tlast,
  input  logic [AXIS_IF_RX_ID_WIDTH-1:0]   s_axis_if_rx_tid,
  input  logic [AXIS_IF_RX_DEST_WIDTH-1:0] s_axis_if_rx_tdest,
  input  logic [AXIS_RX_USER_WIDTH-1:0]    s_axis_if_rx_tuser,

  output logic [511:0]                     m_axis_if_rx_tdata,
  output logic [63:0]                      m_axis_if_rx_tkeep,
  output logic                             m_axis_if_rx_tvalid,
  input  logic                             m_axis_if_rx_tready,
  output logic                             m_axis_if_rx_tlast,
  output logic [AXIS_IF_RX_ID_WIDTH-1:0]   m_axis_if_rx_tid,
  output logic [AXIS_IF_RX_DEST_WIDTH-1:0] m_axis_if_rx_tdest,
  output logic [AXIS_RX_USER_WIDTH-1:0]    m_axis_if_rx_tuser,

  input  logic [15:0]                      s_axil_app_ctrl_awaddr,
  input  logic                             s_axil_app_ctrl_awvalid,
  output logic                             s_axil_app_ctrl_awready,
  input  logic [31:0]                      s_axil_app_ctrl_wdata,
  input  logic                             s_axil_app_ctrl_wvalid,
  output logic                             s_axil_app_ctrl_wready,
  output logic [1:0]                       s_axil_app_ctrl_bresp,
  output logic                             s_axil_app_ctrl_bvalid,
  input  logic                             s_axil_app_ctrl_bready,
  input  logic [15:0]                      s_axil_app_ctrl_araddr,
  input  logic                             s_axil_app_ctrl_arvalid,
  output logic                             s_axil_app_ctrl_arready,
  output logic [31:0]                      s_axil_app_ctrl_rdata,
  output logic [1:0]                       s_axil_app_ctrl_rresp,
  output logic                             s_axil_app_ctrl_rvalid,
  input  logic                             s_axil_app_ctrl_rready
);
  typedef struct packed {
    logic [AXIS_IF_RX_ID_WIDTH-1:0]   tid;
    logic [AXIS_IF_RX_DEST_WIDTH-1:0] tdest;
    logic [AXIS_RX_USER_WIDTH-1:0]    tuser;
  } user_t;

  // Received frames pass unchanged.
  assign m_axis_sync_rx_tdata  = s_axis_sync_rx_tdata;
  assign m_axis_sync_rx_tkeep  = s_axis_sync_rx_tkeep;
  assign m_axis_sync_rx_tvalid = s_axis_sync_rx_tvalid;
  assign s_axis_sync_rx_tready = m_axis_sync_rx_tready;
  assign m_axis_sync_rx_tlast  = s_axis_sync_rx_tlast;
  assign m_axis_sync_rx_tuser  = s_axis_sync_rx_tuser;

  logic         rst_n, said_valid, said_ready, said_last, unused;
  logic [511:0] said_data;
  logic [63:0]  said_keep;
  logic [15:0]  said_size;
  logic         pause;

  assign rst_n  = !rst;
  // These streams have no field for a packet's size, and nothing here can wait.
  assign unused = ^{said_size, pause, s_axil_app_ctrl_awaddr[15:14], s_axil_app_ctrl_araddr[15:14]};
  tf_card #(
    .NumStages(NumStages), .BucketBits(BucketBits), .TagsApart(TagsApart), .TimeOfDay(1'b1)
  ) u_card (
    .clk_i(clk), .rst_ni(rst_n), .s_axis_tvalid_i(s_axis_sync_rx_tvalid & m_axis_sync_rx_tready),
    .s_axis_tdata_i(s_axis_sync_rx_tdata), .s_axis_tkeep_i(s_axis_sync_rx_tkeep),
    .s_axis_tlast_i(s_axis_sync_rx_tlast), .s_axis_tbad_i(s_axis_sync_rx_tuser[0]),
    .s_axis_tuser_i(s_axis_sync_rx_tuser[1 +: 96]), .s_axis_tpause_o(pause),
    .m_axis_tvalid_o(said_valid), .m_axis_tready_i(said_ready), .m_axis_tdata_o(said_data),
    .m_axis_tkeep_o(said_keep), .m_axis_tlast_o(said_last), .m_axis_tuser_o(said_size),
    .s_axil_awvalid_i(s_axil_app_ctrl_awvalid), .s_axil_awready_o(s_axil_app_ctrl_awready),
    .s_axil_awaddr_i(s_axil_app_ctrl_awaddr[13:0]), .s_axil_wvalid_i(s_axil_app_ctrl_wvalid),
    .s_axil_wready_o(s_axil_app_ctrl_wready), .s_axil_wdata_i(s_axil_app_ctrl_wdata),
    .s_axil_bvalid_o(s_axil_app_ctrl_bvalid), .s_axil_bready_i(s_axil_app_ctrl_bready),
    .s_axil_bresp_o(s_axil_app_ctrl_bresp), .s_axil_arvalid_i(s_axil_app_ctrl_arvalid),
    .s_axil_arready_o(s_axil_app_ctrl_arready), .s_axil_araddr_i(s_axil_app_ctrl_araddr[13:0]),
    .s_axil_rvalid_o(s_axil_app_ctrl_rvalid), .s_axil_rready_i(s_axil_app_ctrl_rready),
    .s_axil_rdata_o(s_axil_app_ctrl_rdata), .s_axil_rresp_o(s_axil_app_ctrl_rresp)
  );

  // To the host: 0 frames of the interface, 1 the card's messages -----------------------------------
  logic [1:0]        valid, ready, last;
  logic [1:0][511:0] data;
  logic [1:0][63:0]  keep;
  user_t [1:0]       user;
  user_t             user_out;
  logic [111:0]      header;

  always_comb begin
    header[111:96] = 16'hb588;
    for (int i = 0; i < 6; i++) begin
      header[8*i +: 8]      = HostMac[8*(5-i) +: 8];
      header[48 + 8*i +: 8] = CardMac[8*(5-i) +: 8];
    end
  end
  tf_ethernet u_ethernet (
    .clk_i(clk), .rst_ni(rst_n), .header_i(header), .s_axis_tvalid_i(said_valid),
    .s_axis_tready_o(said_ready), .s_axis_tdata_i(said_data), .s_axis_tkeep_i(said_keep),
    .s_axis_tlast_i(said_last), .m_axis_tvalid_o(valid[1]), .m_axis_tready_i(ready[1]),
    .m_axis_tdata_o(data[1]), .m_axis_tkeep_o(keep[1]), .m_axis_tlast_o(last[1])
  );
  assign valid[0] = s_axis_if_rx_tvalid;
  assign data[0]  = s_axis_if_rx_tdata;
  assign keep[0]  = s_axis_if_rx_tkeep;
  assign last[0]  = s_axis_if_rx_tlast;
  assign user[0]  = '{tid: s_axis_if_rx_tid, tdest: s_axis_if_rx_tdest, tuser: s_axis_if_rx_tuser};
  assign user[1]  = '{tid: '0, tdest: HostQueue, tuser: '0};
  assign s_axis_if_rx_tready = ready[0];
  tf_merge #(.Streams(2), .UserBits($bits(user_t))) u_merge (
    .clk_i(clk), .rst_ni(rst_n), .s_axis_tvalid_i(valid), .s_axis_tready_o(ready),
    .s_axis_tdata_i(data), .s_axis_tkeep_i(keep), .s_axis_tlast_i(last), .s_axis_tuser_i(user),
    .m_axis_tvalid_o(m_axis_if_rx_tvalid), .m_axis_tready_i(m_axis_if_rx_tready),
    .m_axis_tdata_o(m_axis_if_rx_tdata), .m_axis_tkeep_o(m_axis_if_rx_tkeep),
    .m_axis_tlast_o(m_axis_if_rx_tlast), .m_axis_tuser_o(user_out)
  );
  assign m_axis_if_rx_tid   = user_out.tid;
  assign m_axis_if_rx_tdest = user_out.tdest;
  assign m_axis_if_rx_tuser = user_out.tuser;
endmodule
