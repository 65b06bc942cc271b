// SPDX-License-Identifier: Apache-2.0
// Merges several streams of packets into one, a packet at a time, in turn.
//
// AXI-Stream. No latency except the clock in which a packet is chosen. m_axis_size_o is the size of
// the packet, and stays while it passes.
module tf_merge #(
  parameter int unsigned Streams  = 3,
  parameter int unsigned UserBits = 16
) (
  input  logic                              clk_i,
  input  logic                              rst_ni,
  input  logic [Streams-1:0]                s_axis_tvalid_i,
  output logic [Streams-1:0]                s_axis_tready_o,
  input  logic [Streams-1:0][511:0]         s_axis_tdata_i,
  input  logic [Streams-1:0][63:0]          s_axis_tkeep_i,
  input  logic [Streams-1:0]                s_axis_tlast_i,
  input  logic [Streams-1:0][UserBits-1:0]  s_axis_tuser_i,
  output logic                              m_axis_tvalid_o,
  input  logic                              m_axis_tready_i,
  output logic [511:0]                      m_axis_tdata_o,
  output logic [63:0]                       m_axis_tkeep_o,
  output logic                              m_axis_tlast_o,
  output logic [UserBits-1:0]               m_axis_tuser_o
);
  localparam int unsigned IndexBits = $clog2(Streams);
  logic [IndexBits-1:0] chosen_q, next;
  logic                 passes_q, any;

  // The next stream after the one that had the last turn.
  always_comb begin
    next = chosen_q;
    any  = 1'b0;
    for (int i = Streams - 1; i >= 0; i--) begin
      logic [IndexBits:0]   sum;
      logic [IndexBits-1:0] at;
      sum = (IndexBits+1)'(chosen_q) + (IndexBits+1)'(i + 1);
      if (sum >= (IndexBits+1)'(Streams)) sum = sum - (IndexBits+1)'(Streams);
      at = sum[IndexBits-1:0];
      if (s_axis_tvalid_i[at]) begin
        next = at;
        any  = 1'b1;
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (!passes_q || (m_axis_tvalid_o && m_axis_tready_i && m_axis_tlast_o)) begin
      // Choosing takes a clock in which nothing passes.
      passes_q <= any & !passes_q;
      if (!passes_q) chosen_q <= next;
    end
    if (!rst_ni) begin
      passes_q <= 1'b0;
      chosen_q <= '0;
    end
  end
  always_comb begin
    m_axis_tvalid_o = passes_q & s_axis_tvalid_i[chosen_q];
    m_axis_tdata_o  = s_axis_tdata_i[chosen_q];
    m_axis_tkeep_o  = s_axis_tkeep_i[chosen_q];
    m_axis_tlast_o  = s_axis_tlast_i[chosen_q];
    m_axis_tuser_o  = s_axis_tuser_i[chosen_q];
    s_axis_tready_o = '0;
    s_axis_tready_o[chosen_q] = passes_q & m_axis_tready_i;
  end
endmodule
