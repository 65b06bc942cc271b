// SPDX-License-Identifier: Apache-2.0
// Puts an Ethernet header before each packet, so that messages can leave as frames.
//
// AXI-Stream, packed as in tf_window. A beat in every clock, and one more after a packet whose last
// beat has no room for the 14 bytes. No latency.
module tf_ethernet (
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic [111:0] header_i,        // first byte on the wire in the low bits
  input  logic         s_axis_tvalid_i,
  output logic         s_axis_tready_o,
  input  logic [511:0] s_axis_tdata_i,
  input  logic [63:0]  s_axis_tkeep_i,
  input  logic         s_axis_tlast_i,
  output logic         m_axis_tvalid_o,
  input  logic         m_axis_tready_i,
  output logic [511:0] m_axis_tdata_o,
  output logic [63:0]  m_axis_tkeep_o,
  output logic         m_axis_tlast_o
);
  logic [111:0] carried_q;
  logic [13:0]  kept_q;
  logic         first_q, rest_q;   // the bytes that found no room are due
  logic         overflows;

  assign overflows = s_axis_tkeep_i[50];
  always_comb begin
    m_axis_tvalid_o = rest_q | s_axis_tvalid_i;
    s_axis_tready_o = m_axis_tready_i & !rest_q;
    m_axis_tdata_o  = {s_axis_tdata_i[399:0], first_q ? header_i : carried_q};
    m_axis_tkeep_o  = {s_axis_tkeep_i[49:0], 14'h3fff};
    m_axis_tlast_o  = s_axis_tlast_i & !overflows;
    if (rest_q) begin
      m_axis_tdata_o = 512'(carried_q);
      m_axis_tkeep_o = 64'(kept_q);
      m_axis_tlast_o = 1'b1;
    end
  end
  always_ff @(posedge clk_i) begin
    if (m_axis_tvalid_o && m_axis_tready_i) begin
      first_q   <= m_axis_tlast_o;
      rest_q    <= !rest_q & s_axis_tlast_i & overflows;
      carried_q <= s_axis_tdata_i[511:400];
      kept_q    <= s_axis_tkeep_i[63:50];
    end
    if (!rst_ni) begin
      first_q <= 1'b1;
      rest_q  <= 1'b0;
    end
  end
endmodule
