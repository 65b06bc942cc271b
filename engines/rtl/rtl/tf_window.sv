// SPDX-License-Identifier: Apache-2.0
// The first two beats of each frame of a stream, side by side, and how long the frame is.
//
// Latency 1 clock from the last beat of a frame, a beat in every clock, no handshake: every beat is
// taken. A frame begins at byte 0 of a beat, its beats before the last are full, and the last is
// filled from byte 0 without a gap; other frames are marked. Bytes of head_o after the frame are
// undefined.
module tf_window
  import tf_frame_pkg::*;
(
  input  logic                    clk_i,
  input  logic                    rst_ni,
  input  logic                    valid_i,
  input  logic [511:0]            data_i,
  input  logic [63:0]             keep_i,
  input  logic                    last_i,
  input  logic                    bad_i,       // with the last beat: the MAC marks the frame
  output logic                    first_o,     // this beat begins a frame
  // About a frame whose last beat was taken.
  output logic                    done_o,
  output logic [8*HeadBytes-1:0]  head_o,
  output logic [63:0]             last_keep_o, // one-hot: the position of the last byte in its beat
  output logic [9:0]              beats_o,     // number of beats before it
  output logic                    damaged_o
);
`include "tf_fault.svh"

  logic        first_q, second_q, gap_q, over_q;
  logic [9:0]  beats_q;
  logic [63:0] last_byte;
  logic        is_packed;

  // Filled from byte 0 without a gap.
  always_comb begin
    last_byte = keep_i & ~(keep_i >> 1);
    is_packed = keep_i[0];
    for (int i = 1; i < 64; i++) is_packed &= keep_i[i-1] | ~keep_i[i];
  end
  assign first_o = first_q;

  always_ff @(posedge clk_i) begin
    done_o <= valid_i & last_i;
    if (valid_i) begin
      if (first_q)  head_o[511:0]    <= data_i;
      if (second_q) head_o[8*HeadBytes-1:512] <= data_i[8*HeadBytes-513:0];
      first_q  <= last_i;
      second_q <= first_q & ~last_i;
      beats_q  <= last_i ? '0 : beats_q + 10'd1;
      gap_q    <= ~last_i & (gap_q | ((fault != 24) & ~(&keep_i)));
      over_q   <= ~last_i & (over_q | &beats_q);
      if (last_i) begin
        last_keep_o <= last_byte;
        beats_o     <= beats_q;
        damaged_o   <= bad_i | gap_q | over_q | ~is_packed;
      end
    end
    if (!rst_ni) begin
      done_o   <= 1'b0;
      first_q  <= 1'b1;
      second_q <= 1'b0;
      beats_q  <= '0;
      gap_q    <= 1'b0;
      over_q   <= 1'b0;
    end
  end
endmodule
