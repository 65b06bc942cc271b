// SPDX-License-Identifier: Apache-2.0
// Frames wait here until the parser has described them. Frames for the host leave whole, after a
// beat with their time and the reason; all others are discarded.
//
//   byte 0 magic (0x7467)   2 version (1)   3 reason (tf_frame_pkg)   4 bytes of the frame (32 bits)
//        8 time, ns since 1970 (64 bits)   16 zeros; numbers are in network byte order
//
// Descriptions come in the order of the frames. A frame that finds no room is lost; this only
// matters, and is only counted, if the frame is for the host. Output: AXI-Stream, a beat in two
// clocks.
module tf_aside
  import tf_frame_pkg::*;
#(
  parameter int unsigned DepthBits = 9   // log2 of the beats that wait
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  // Beats of frames.
  input  logic         give_i,
  input  logic [511:0] data_i,
  input  logic [63:0]  keep_i,
  input  logic         last_i,
  output logic         room_o,        // the next beat will not be lost
  // The description of a frame.
  input  logic         said_i,
  output logic         said_ready_o,
  input  reason_e      reason_i,
  input  logic [63:0]  time_i,
  // Frames for the host.
  output logic         valid_o,
  input  logic         ready_i,
  output logic [511:0] data_o,
  output logic [63:0]  keep_o,
  output logic         last_o,
  output logic [15:0]  size_o,        // bytes, including the first beat
  output logic [63:0]  dropped_o
);
  localparam int unsigned Depth = 2**DepthBits;
  typedef logic [DepthBits:0] pointer_t;
  typedef struct packed {
    logic        lost;
    pointer_t    beats;
    logic [15:0] bytes;
  } frame_t;
  typedef struct packed {
    reason_e     reason;
    logic [63:0] stamp;
  } said_t;
  typedef struct packed {
    logic         last;
    logic [63:0]  keep;
    logic [511:0] data;
  } beat_t;

  // In -------------------------------------------------------------------------------------------
  pointer_t    write_q, start_q, read_q, end_d;
  logic        lost_q, lost, full;
  logic [15:0] bytes_q, bytes_d;
  logic [6:0]  kept;
  frame_t      arrived;

  assign full   = (write_q - read_q) == pointer_t'(Depth);
  assign lost   = lost_q | full;
  // A frame that fills the memory on its own is lost in any case.
  assign room_o = !full || lost_q || read_q == start_q;
  always_comb begin
    kept = '0;
    for (int i = 0; i < 64; i++) if (keep_i[i]) kept = 7'(i + 1);
    end_d   = write_q + pointer_t'(!lost);
    bytes_d = bytes_q + 16'(kept);
    arrived = '{lost: lost, beats: lost ? '0 : end_d - start_q, bytes: bytes_d};
  end
  always_ff @(posedge clk_i) begin
    if (give_i) begin
      write_q <= (last_i && lost) ? start_q : end_d;
      lost_q  <= ~last_i & lost;
      bytes_q <= last_i ? '0 : bytes_d;
      if (last_i && !lost) start_q <= end_d;
    end
    if (!rst_ni) begin
      write_q <= '0;
      start_q <= '0;
      lost_q  <= 1'b0;
      bytes_q <= '0;
    end
  end

  // Queues of frames and of their descriptions ----------------------------------------------------
  localparam int unsigned FramesBits = 7;   // more than the frames inside the parser
  localparam int unsigned SaidBits   = 4;
  logic              has_frame, has_said, next;
  frame_t            frame;
  said_t             said;
  logic [SaidBits:0] said_q;

  tf_queue #(.Bits($bits(frame_t)), .DepthBits(FramesBits)) u_frames (
    .clk_i, .rst_ni, .put_i(give_i & last_i), .data_i(arrived), .valid_o(has_frame),
    .ready_i(next), .data_o(frame)
  );
  tf_queue #(.Bits($bits(said_t)), .DepthBits(SaidBits)) u_said (
    .clk_i, .rst_ni, .put_i(said_i & said_ready_o), .data_i({reason_i, time_i}), .valid_o(has_said),
    .ready_i(next), .data_o(said)
  );
  logic put_said;
  assign put_said     = said_i & said_ready_o;
  assign said_ready_o = said_q < (SaidBits+1)'(2**SaidBits);
  always_ff @(posedge clk_i) begin
    said_q <= said_q + (SaidBits+1)'(put_said) - (SaidBits+1)'(next);
    if (!rst_ni) said_q <= '0;
  end

  // Out ------------------------------------------------------------------------------------------
  typedef enum logic [1:0] {Judging, Heading, Fetching, Showing} state_e;
  state_e   state_d, state_q;
  pointer_t left_d, left_q, read_d;
  beat_t    shown;
  logic     is_known, sends;

  tf_ram #(.Lanes(1), .LaneBits($bits(beat_t)), .AddrBits(DepthBits)) u_beats (
    .clk_i, .write_i(give_i & ~lost), .write_addr_i(write_q[DepthBits-1:0]),
    .write_data_i({last_i, keep_i, data_i}), .read_addr_i(read_q[DepthBits-1:0]),
    .read_data_o(shown)
  );
  assign is_known = has_frame & has_said;
  assign sends    = said.reason != ReasonNone && !frame.lost;
  always_comb begin
    state_d = state_q;
    left_d  = left_q;
    read_d  = read_q;
    next    = 1'b0;
    unique case (state_q)
      Judging: begin
        left_d = frame.beats;
        if (is_known && sends) state_d = Heading;
        else if (is_known) begin
          next   = 1'b1;
          read_d = read_q + frame.beats;
        end
      end
      Heading: if (ready_i) state_d = Fetching;
      // The beat is addressed; it stands a clock later.
      Fetching: state_d = Showing;
      Showing: if (ready_i) begin
        read_d  = read_q + pointer_t'(1);
        left_d  = left_q - pointer_t'(1);
        state_d = Fetching;
        if (left_q == pointer_t'(1)) begin
          next    = 1'b1;
          state_d = Judging;
        end
      end
    endcase
  end
  always_ff @(posedge clk_i) begin
    state_q <= state_d;
    left_q  <= left_d;
    read_q  <= read_d;
    if (state_q == Judging && is_known && said.reason != ReasonNone && frame.lost) begin
      dropped_o <= dropped_o + 64'd1;
    end
    if (!rst_ni) begin
      state_q   <= Judging;
      read_q    <= '0;
      dropped_o <= '0;
    end
  end
  always_comb begin
    valid_o = state_q inside {Heading, Showing};
    data_o  = shown.data;
    keep_o  = shown.keep;
    last_o  = shown.last;
    if (state_q == Heading) begin
      data_o = 512'({be64(said.stamp), be32(32'(frame.bytes)), 4'd0, said.reason, 8'd1,
                     be16(16'h7467)});
      keep_o = '1;
      last_o = 1'b0;
    end
  end
  assign size_o = frame.bytes + 16'd64;

`ifdef VERILATOR
  AFrameEndsWhereItShould: assert property (@(posedge clk_i) disable iff (!rst_ni)
    state_q == Showing |-> (shown.last == (left_q == pointer_t'(1))));
`endif
endmodule
