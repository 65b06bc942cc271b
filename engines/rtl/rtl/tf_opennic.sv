// SPDX-License-Identifier: Apache-2.0
// The card in a user box of OpenNIC (250 MHz, one port): frames from the port go on to the host,
// and are parsed and metered on the way. Frames to the port pass.
//
// The ports have the names and meanings of the shell's box. Streams have 512 bits, and a user part
// of three numbers: the size of the packet, and bit masks of its source and destination. The
// shell's queue before the port makes the stream wait here, so no frame is left out: the port waits
// while the card cannot take a beat. Records, and frames that the host has to look at, share the
// stream to the host, a packet at a time, and go to HostRecords. The box has no time stamps: now_ns
// is the time at which the first beat of a frame passes. AXI-Lite uses the clock of the streams.
// The shell's AXI-Lite has another clock, and has to cross to this one before the box.
module tf_opennic #(
  parameter int unsigned NumStages   = 2,
  parameter int unsigned BucketBits  = 4,
  parameter bit          TagsApart   = 1'b0,
  parameter logic [15:0] HostFrames  = 16'h0001,  // the function that gets frames from the port
  parameter logic [15:0] HostRecords = 16'h0002,  // the function that gets records
  parameter logic [15:0] Port        = 16'h0040   // the port that gets frames from the host
) (
  input  logic         axis_aclk,
  input  logic         mod_rstn,
  output logic         mod_rst_done,
  input  logic [63:0]  now_ns,         // since 1970

  input  logic         s_axis_adap_rx_250mhz_tvalid,
  input  logic [511:0] s_axis_adap_rx_250mhz_tdata,
  input  logic [63:0]  s_axis_adap_rx_250mhz_tkeep,
  input  logic         s_axis_adap_rx_250mhz_tlast,
  input  logic [15:0]  s_axis_adap_rx_250mhz_tuser_size,
  input  logic [15:0]  s_axis_adap_rx_250mhz_tuser_src,
  input  logic [15:0]  s_axis_adap_rx_250mhz_tuser_dst,
  output logic         s_axis_adap_rx_250mhz_tready,

  output logic         m_axis_qdma_c2h_tvalid,
  output logic [511:0] m_axis_qdma_c2h_tdata,
  output logic [63:0]  m_axis_qdma_c2h_tkeep,
  output logic         m_axis_qdma_c2h_tlast,
  output logic [15:0]  m_axis_qdma_c2h_tuser_size,
  output logic [15:0]  m_axis_qdma_c2h_tuser_src,
  output logic [15:0]  m_axis_qdma_c2h_tuser_dst,
  input  logic         m_axis_qdma_c2h_tready,

  input  logic         s_axis_qdma_h2c_tvalid,
  input  logic [511:0] s_axis_qdma_h2c_tdata,
  input  logic [63:0]  s_axis_qdma_h2c_tkeep,
  input  logic         s_axis_qdma_h2c_tlast,
  input  logic [15:0]  s_axis_qdma_h2c_tuser_size,
  input  logic [15:0]  s_axis_qdma_h2c_tuser_src,
  input  logic [15:0]  s_axis_qdma_h2c_tuser_dst,
  output logic         s_axis_qdma_h2c_tready,

  output logic         m_axis_adap_tx_250mhz_tvalid,
  output logic [511:0] m_axis_adap_tx_250mhz_tdata,
  output logic [63:0]  m_axis_adap_tx_250mhz_tkeep,
  output logic         m_axis_adap_tx_250mhz_tlast,
  output logic [15:0]  m_axis_adap_tx_250mhz_tuser_size,
  output logic [15:0]  m_axis_adap_tx_250mhz_tuser_src,
  output logic [15:0]  m_axis_adap_tx_250mhz_tuser_dst,
  input  logic         m_axis_adap_tx_250mhz_tready,

  input  logic         s_axil_awvalid,
  input  logic [31:0]  s_axil_awaddr,
  output logic         s_axil_awready,
  input  logic         s_axil_wvalid,
  input  logic [31:0]  s_axil_wdata,
  output logic         s_axil_wready,
  output logic         s_axil_bvalid,
  output logic [1:0]   s_axil_bresp,
  input  logic         s_axil_bready,
  input  logic         s_axil_arvalid,
  input  logic [31:0]  s_axil_araddr,
  output logic         s_axil_arready,
  output logic         s_axil_rvalid,
  output logic [31:0]  s_axil_rdata,
  output logic [1:0]   s_axil_rresp,
  input  logic         s_axil_rready
);
  typedef struct packed {
    logic [15:0] dst;
    logic [15:0] src;
    logic [15:0] size;
  } user_t;

  assign mod_rst_done = mod_rstn;

  // From the host to the port: passes.
  assign m_axis_adap_tx_250mhz_tvalid     = s_axis_qdma_h2c_tvalid;
  assign m_axis_adap_tx_250mhz_tdata      = s_axis_qdma_h2c_tdata;
  assign m_axis_adap_tx_250mhz_tkeep      = s_axis_qdma_h2c_tkeep;
  assign m_axis_adap_tx_250mhz_tlast      = s_axis_qdma_h2c_tlast;
  assign m_axis_adap_tx_250mhz_tuser_size = s_axis_qdma_h2c_tuser_size;
  assign m_axis_adap_tx_250mhz_tuser_src  = s_axis_qdma_h2c_tuser_src;
  assign m_axis_adap_tx_250mhz_tuser_dst  = Port;
  assign s_axis_qdma_h2c_tready           = m_axis_adap_tx_250mhz_tready;
  logic unused_dst;
  assign unused_dst = ^{s_axis_qdma_h2c_tuser_dst, s_axis_adap_rx_250mhz_tuser_dst};

  // From the port to the host: 0 is the passing frames, 1 is what the card sends. A beat that the
  // card cannot take waits.
  logic [1:0]        valid, ready, last;
  logic [1:0][511:0] data;
  logic [1:0][63:0]  keep;
  user_t [1:0]       user;
  user_t             user_out;
  logic              pause;
  logic [15:0]       size;

  assign valid[0] = s_axis_adap_rx_250mhz_tvalid & !pause;
  assign data[0]  = s_axis_adap_rx_250mhz_tdata;
  assign keep[0]  = s_axis_adap_rx_250mhz_tkeep;
  assign last[0]  = s_axis_adap_rx_250mhz_tlast;
  assign user[0]  = '{dst: HostFrames, src: s_axis_adap_rx_250mhz_tuser_src,
                      size: s_axis_adap_rx_250mhz_tuser_size};
  assign user[1]  = '{dst: HostRecords, src: '0, size: size};
  assign s_axis_adap_rx_250mhz_tready = ready[0] & !pause;

  tf_card #(
    .NumStages(NumStages), .BucketBits(BucketBits), .TagsApart(TagsApart)
  ) u_card (
    .clk_i(axis_aclk), .rst_ni(mod_rstn), .s_axis_tvalid_i(valid[0] & ready[0]),
    .s_axis_tdata_i(data[0]), .s_axis_tkeep_i(keep[0]), .s_axis_tlast_i(last[0]),
    .s_axis_tbad_i(1'b0), .s_axis_tuser_i(now_ns), .s_axis_tpause_o(pause),
    .m_axis_tvalid_o(valid[1]), .m_axis_tready_i(ready[1]), .m_axis_tdata_o(data[1]),
    .m_axis_tkeep_o(keep[1]), .m_axis_tlast_o(last[1]), .m_axis_tuser_o(size),
    .s_axil_awvalid_i(s_axil_awvalid), .s_axil_awready_o(s_axil_awready),
    .s_axil_awaddr_i(s_axil_awaddr[13:0]), .s_axil_wvalid_i(s_axil_wvalid),
    .s_axil_wready_o(s_axil_wready), .s_axil_wdata_i(s_axil_wdata),
    .s_axil_bvalid_o(s_axil_bvalid), .s_axil_bready_i(s_axil_bready),
    .s_axil_bresp_o(s_axil_bresp), .s_axil_arvalid_i(s_axil_arvalid),
    .s_axil_arready_o(s_axil_arready), .s_axil_araddr_i(s_axil_araddr[13:0]),
    .s_axil_rvalid_o(s_axil_rvalid), .s_axil_rready_i(s_axil_rready),
    .s_axil_rdata_o(s_axil_rdata), .s_axil_rresp_o(s_axil_rresp)
  );
  tf_merge #(.Streams(2), .UserBits($bits(user_t))) u_merge (
    .clk_i(axis_aclk), .rst_ni(mod_rstn), .s_axis_tvalid_i(valid), .s_axis_tready_o(ready),
    .s_axis_tdata_i(data), .s_axis_tkeep_i(keep), .s_axis_tlast_i(last), .s_axis_tuser_i(user),
    .m_axis_tvalid_o(m_axis_qdma_c2h_tvalid), .m_axis_tready_i(m_axis_qdma_c2h_tready),
    .m_axis_tdata_o(m_axis_qdma_c2h_tdata), .m_axis_tkeep_o(m_axis_qdma_c2h_tkeep),
    .m_axis_tlast_o(m_axis_qdma_c2h_tlast), .m_axis_tuser_o(user_out)
  );
  assign m_axis_qdma_c2h_tuser_size = user_out.size;
  assign m_axis_qdma_c2h_tuser_src  = user_out.src;
  assign m_axis_qdma_c2h_tuser_dst  = user_out.dst;
endmodule
