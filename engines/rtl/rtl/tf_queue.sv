// SPDX-License-Identifier: Apache-2.0
// A queue of a few entries in LUT RAM. The first entry is at the output, in a register.
//
// Input: an entry may only be put if there is room (TheQueueNeverOverflows). Output: valid_o does
// not wait for ready_i. One entry in every clock, latency 2 clocks.
module tf_queue #(
  parameter int unsigned Bits      = 8,
  parameter int unsigned DepthBits = 5    // log2 of the entries
) (
  input  logic            clk_i,
  input  logic            rst_ni,
  input  logic            put_i,
  input  logic [Bits-1:0] data_i,
  output logic            valid_o,
  input  logic            ready_i,
  output logic [Bits-1:0] data_o
);
  (* ram_style = "distributed" *) logic [Bits-1:0] mem [2**DepthBits];
  logic [DepthBits-1:0] head_q, tail_q;
  logic [DepthBits:0]   count_q;
  logic                 take;

  assign take = (count_q != '0) & (!valid_o | ready_i);
  always_ff @(posedge clk_i) if (put_i) mem[head_q] <= data_i;
  always_ff @(posedge clk_i) begin
    if (take) data_o <= mem[tail_q];
    head_q  <= head_q + DepthBits'(put_i);
    tail_q  <= tail_q + DepthBits'(take);
    count_q <= count_q + (DepthBits+1)'(put_i) - (DepthBits+1)'(take);
    valid_o <= take | (valid_o & !ready_i);
    if (!rst_ni) begin
      head_q  <= '0;
      tail_q  <= '0;
      count_q <= '0;
      valid_o <= 1'b0;
    end
  end

`ifdef VERILATOR
  TheQueueNeverOverflows: assert property (@(posedge clk_i) disable iff (!rst_ni)
    put_i |-> (count_q < (DepthBits+1)'(2**DepthBits)));
`endif
endmodule
