// SPDX-License-Identifier: Apache-2.0
// Proof by induction for the egress: every place that is taken is in the line, in the queue, or
// paid back (ThePlacesAreAccountedFor in tf_egress). So the queue never overflows. The head takes
// places like tf_sequencer, the line may return a record in any place that was taken, and the
// receiver may wait as long as it likes.
module tf_egress_proof
  import tf_pkg::*;
  import tf_record_pkg::*;
(
  input logic       clk_i,
  input logic       take_i,
  input logic       carries_i,
  input logic [1:0] carried_i,
  input logic       ready_i
);
  localparam int unsigned KeyBits     = 4;
  localparam int unsigned LineLatency = 5;

  logic [1:0] reset_q;
  logic       rst_n;
  initial reset_q = '0;
  assign rst_n = &reset_q;
  always_ff @(posedge clk_i) if (!rst_n) reset_q <= reset_q + 2'd1;

  logic                   room, taken_q;
  logic [LineLatency-1:0] way_q;   // places in the line
  kind_e                  kind;

  always_comb begin
    kind = KindIdle;
    if (way_q[LineLatency-1] && carries_i) begin
      kind = (carried_i == 2'd0) ? KindRecord : (carried_i == 2'd1) ? KindAlone : KindEpoch;
    end
  end
  always_ff @(posedge clk_i) begin
    // The head sees the decision one clock later.
    taken_q <= take_i & room;
    way_q   <= {way_q[LineLatency-2:0], taken_q};
    if (!rst_n) begin
      taken_q <= 1'b0;
      way_q   <= '0;
    end
  end

  tf_egress #(.KeyBits(KeyBits), .LineLatency(LineLatency), .DepthBits(4)) u_egress (
    .clk_i, .rst_ni(rst_n), .engine_id_i('0), .packets_i('0), .bytes_i('0),
    .room_o(room), .taken_i(taken_q),
    .kind_i(kind), .why_i(WhyAge), .key_i('0), .body_i('0),
    .valid_o(), .ready_i, .data_o(), .keep_o(), .last_o(),
    .evicted_collision_o(), .evicted_age_o(), .evicted_cut_o(), .records_o()
  );
  always_ff @(posedge clk_i) if (rst_n) TheWayIsTheSame: assert (way_q == u_egress.live_q);
endmodule
