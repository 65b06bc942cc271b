// SPDX-License-Identifier: Apache-2.0
// Decides which frames of a stream are taken. The stream does not wait: a frame that begins while
// the parser has no room is left out completely, and counted.
//
// No latency.
module tf_tap (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic        valid_i,    // a beat passes
  input  logic        last_i,
  input  logic        ready_i,    // the parser has room; this does not change within a frame
  output logic        give_o,     // the beat is taken
  output logic        loses_o,    // a beat would be lost now
  output logic [63:0] received_o, // frames that passed
  output logic [63:0] dropped_o   // frames that passed and were left out
);
  logic first_q, left_out_q, left_out;

  assign left_out = first_q ? ~ready_i : left_out_q;
  assign give_o   = valid_i & ~left_out;
  assign loses_o  = left_out;
  always_ff @(posedge clk_i) begin
    if (valid_i) begin
      first_q    <= last_i;
      left_out_q <= left_out;
      if (first_q)             received_o <= received_o + 64'd1;
      if (first_q && left_out) dropped_o  <= dropped_o + 64'd1;
    end
    if (!rst_ni) begin
      first_q    <= 1'b1;
      left_out_q <= 1'b0;
      received_o <= '0;
      dropped_o  <= '0;
    end
  end
endmodule
