// SPDX-License-Identifier: Apache-2.0
// A few pins around the line, so that it can be placed and routed alone: packets are shifted in,
// and records are shifted out. The shift registers are included in the counted resources.
module tf_pins
  import tf_pkg::*;
  import tf_record_pkg::*;
#(
  parameter int unsigned KeyBits    = 104,
  parameter int unsigned NumStages  = 4,
  parameter int unsigned BucketBits = 6,
  parameter int unsigned TagBits    = 10,
  parameter bit          TagsApart = 1'b0
) (
  input  logic clk_i,
  input  logic rst_ni,
  input  logic in_i,
  input  logic load_i,
  output logic ready_o,
  output logic out_o
);
  typedef struct packed {
    logic [SeedBits-1:0] seed;
    input_e              kind;
    logic [63:0]         stamp;
    arrival_t            arrival;
    logic [KeyBits-1:0]  key;
  } in_t;
  typedef struct packed {
    kind_e              kind;
    why_e               why;
    logic [KeyBits-1:0] key;
    body_t              body;
    logic               clean;
  } out_t;

  in_t  in_q;
  out_t out, out_q, shifted_q;
  logic rst_nq, in_bit_q, load_q, ready;

  always_ff @(posedge clk_i) begin
    rst_nq    <= rst_ni;
    in_bit_q  <= in_i;
    load_q    <= load_i;
    ready_o   <= ready;
    in_q      <= {in_q[$bits(in_t)-2:0], in_bit_q};
    out_q     <= out;
    shifted_q <= load_q ? out_q : {1'b0, shifted_q[$bits(out_t)-1:1]};
    out_o     <= shifted_q[0];
  end
  tf_array #(
    .KeyBits(KeyBits), .NumStages(NumStages), .BucketBits(BucketBits), .TagBits(TagBits),
    .TagsApart(TagsApart)
  ) u_array (
    .clk_i, .rst_ni(rst_nq), .seed_i(in_q.seed), .stage_mask_i('1), .bucket_mask_i('1),
    .ends_cut_i(1'b0), .sweep_every_i(16'd64), .age_period_i(24'd8191),
    .room_i(1'b1), .taken_o(), .ready_o(ready), .kind_i(in_q.kind), .time_i(in_q.stamp), .length_i(in_q.arrival.length),
    .tcp_flags_i(in_q.arrival.tcp_flags), .ttl_i(in_q.arrival.ttl), .tos_i(in_q.arrival.tos),
    .key_i(in_q.key),
    .kind_o(out.kind), .why_o(out.why), .key_o(out.key), .body_o(out.body), .clean_o(out.clean),
    .resident_o()
  );
endmodule
