// SPDX-License-Identifier: Apache-2.0
// A stage of the line (SAPTM's processing element): tag search, then records.
//
// Latency tf_pkg::StageLatency clocks for every token, one token in every clock, no handshake. A
// token that this stage consumes leaves its place to the record that it displaced.
module tf_stage
  import tf_pkg::*;
  import tf_record_pkg::*;
#(
  parameter int unsigned Id         = 0,
  parameter int unsigned KeyBits    = 104,
  parameter int unsigned BucketBits = 6,
  parameter int unsigned TagBits    = 10,
  parameter int unsigned Slots      = 8,
  parameter int unsigned Subtables  = 2,
  parameter bit          TagsApart = 1'b0, // each lane of tags in its own memory
  localparam int unsigned AddrBits  = (Subtables - 1) + BucketBits + $clog2(Slots)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  logic [BucketBits-1:0] bucket_mask_i,
  input  logic                  ends_cut_i,
  input  kind_e                 kind_i,
  input  why_e                  why_i,
  input  logic [KeyBits-1:0]    key_i,
  input  body_t                 body_i,
  output kind_e                 kind_o,
  output why_e                  why_o,
  output logic [KeyBits-1:0]    key_o,
  output body_t                 body_o,
  output logic [AddrBits:0]     resident_o,
  output logic                  clean_o,
  output logic                  busy_o
);
  localparam int unsigned SearchLatency = 7;

  // Values that the search does not need wait beside it.
  kind_e              kind_q [SearchLatency+1];
  logic [KeyBits-1:0] key7;
  body_t              body7;
  why_e               why7;
  logic               act, keep, matched, was_valid, was_stale, sweep;
  logic [AddrBits-1:0] addr;

  always_ff @(posedge clk_i) begin
    kind_q[0] <= kind_i;
    for (int i = 1; i <= SearchLatency; i++) kind_q[i] <= kind_q[i-1];
    if (!rst_ni) for (int i = 0; i <= SearchLatency; i++) kind_q[i] <= KindIdle;
  end
  tf_delay #(.Bits(KeyBits + BodyBits + 2), .Clocks(SearchLatency + 1)) u_waiting (
    .clk_i, .d_i({why_i, key_i, body_i}), .q_o({why7, key7, body7})
  );

  tf_stage_tags #(
    .Id(Id), .BucketBits(BucketBits), .TagBits(TagBits), .Slots(Slots), .Subtables(Subtables),
    .TagsApart(TagsApart)
  ) u_tags (
    .clk_i, .rst_ni, .bucket_mask_i, .kind_i, .place_i(place_of_body(body_i)),
    .act_o(act), .keep_o(keep), .matched_o(matched), .was_valid_o(was_valid),
    .was_stale_o(was_stale), .sweep_o(sweep), .addr_o(addr), .resident_o, .clean_o, .busy_o
  );
  tf_stage_records #(.KeyBits(KeyBits), .AddrBits(AddrBits)) u_records (
    .clk_i, .rst_ni, .ends_cut_i, .act_i(act), .keep_i(keep), .matched_i(matched),
    .was_valid_i(was_valid), .was_stale_i(was_stale), .sweep_i(sweep), .addr_i(addr),
    .kind_i(kind_q[SearchLatency]), .why_i(why7), .key_i(key7), .body_i(body7),
    .kind_o, .why_o, .key_o, .body_o
  );
endmodule
