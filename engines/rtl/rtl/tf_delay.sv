// SPDX-License-Identifier: Apache-2.0
// A delay of Clocks clocks, for words that nothing reads on the way. No reset.
//
// A ring in LUT RAM. On ECP5, a word of W bits takes W/4 RAM16x4 and W registers. With Shift it is
// a shift register, which synthesis for UltraScale+ maps to SRLs.
module tf_delay #(
  parameter int unsigned Bits   = 8,
  parameter int unsigned Clocks = 4,       // 2 to 16
  parameter bit          Shift  = 1'b0   // a shift register instead of a ring
) (
  input  logic            clk_i,
  input  logic [Bits-1:0] d_i,
  output logic [Bits-1:0] q_o
);
  if (Shift) begin : g_shift
    logic [Bits-1:0] word_q [Clocks];
    always_ff @(posedge clk_i) begin
      word_q[0] <= d_i;
      for (int i = 1; i < Clocks; i++) word_q[i] <= word_q[i-1];
    end
    assign q_o = word_q[Clocks-1];
  end else begin : g_ring
    (* ram_style = "distributed" *) logic [Bits-1:0] mem [16];
    // Any start value is correct, so there is no reset. Simulation and FPGAs start at 0.
    logic [3:0] at_q;
    initial at_q = '0;
    logic [3:0] from;
    assign from = at_q - 4'(Clocks - 1);
    always_ff @(posedge clk_i) begin
      at_q      <= at_q + 4'd1;
      mem[at_q] <= d_i;
      q_o       <= mem[from];
    end
  end
endmodule
