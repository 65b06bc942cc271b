// SPDX-License-Identifier: Apache-2.0
// Bounded proof for the search of a stage: at most one slot holds a key, and a key that is held is
// found.
//
// The bench keeps what the search knows of each slot (`held`, in the order of ops, so without any
// forwarding), and compares every decision with it. Inputs are free, except for the promises of
// tf_sequencer: nothing comes until the tags are cleared, and after a token that frees slots or
// begins a cell, SpecialGap places have no packet.
module tf_search_proof
  import tf_pkg::*;
(
  input logic        clk_i,
  input logic [2:0]  kind_i,
  input logic [1:0]  bucket_i,
  input logic [2:0]  tag_i,
  input logic [2:0]  age_i
);
  localparam int unsigned BucketBits = 1;
  localparam int unsigned TagBits    = 3;
  localparam int unsigned Slots      = 2;
  localparam int unsigned AddrBits   = 1 + BucketBits + 1;
  localparam int unsigned Depth      = 8;  // from the token to the decision on it

  logic [1:0] reset_q;
  logic       rst_n;
  initial reset_q = '0;
  assign rst_n = &reset_q;

  kind_e  kind;
  place_t place;
  logic   epoch_q;
  logic [1:0] gap_q;
  logic   act, keep, matched, was_valid, was_stale, sweep, clean, busy;
  logic [AddrBits-1:0] addr;
  logic [AddrBits:0]   resident;

  // The inputs that tf_sequencer allows.
  always_comb begin
    kind = kind_e'(kind_i);
    if (!(kind inside {KindPacket, KindSweep, KindEpoch, KindFlush})) kind = KindIdle;
    if (busy || !rst_n) kind = KindIdle;
    if (gap_q != '0) kind = KindIdle;
    place           = '0;
    place.bucket[0] = MaxBucketBits'(bucket_i[0]);
    place.bucket[1] = MaxBucketBits'(bucket_i[1]);
    place.tag       = MaxTagBits'(tag_i);
    place.age       = age_i[1:0];
    place.turning   = age_i[2];
    place.epoch     = epoch_q ^ (kind == KindEpoch);
  end
  always_ff @(posedge clk_i) begin
    if (!rst_n) reset_q <= reset_q + 2'd1;
    gap_q <= (gap_q == '0) ? '0 : gap_q - 2'd1;
    if (kind inside {KindSweep, KindEpoch, KindFlush}) gap_q <= 2'(SpecialGap);
    if (kind == KindEpoch) epoch_q <= ~epoch_q;
    if (!rst_n) begin
      gap_q   <= '0;
      epoch_q <= 1'b0;
    end
  end

  tf_stage_tags #(
    .Id(0), .BucketBits(BucketBits), .TagBits(TagBits), .Slots(Slots), .TagsApart(1'b1)
  ) u_tags (
    .clk_i, .rst_ni(rst_n), .bucket_mask_i(1'b1), .kind_i(kind), .place_i(place),
    .act_o(act), .keep_o(keep), .matched_o(matched), .was_valid_o(was_valid),
    .was_stale_o(was_stale), .sweep_o(sweep), .addr_o(addr), .resident_o(resident),
    .clean_o(clean), .busy_o(busy)
  );

  // The op that is being decided, and what each slot holds before it.
  typedef struct packed {
    logic [1:0] bucket;
    logic [2:0] tag;
  } key_t;
  key_t        key_q [Depth];
  logic        valid_q [2**AddrBits];
  key_t        held_q  [2**AddrBits];
  key_t        key;
  logic [2**AddrBits-1:0] holds;
  logic [AddrBits:0]      count;

  assign key = key_q[Depth-1];
  always_comb begin
    count = '0;
    for (int a = 0; a < 2**AddrBits; a++) begin
      holds[a] = valid_q[a] && held_q[a] == key;
      count    = count + (AddrBits+1)'(valid_q[a]);
    end
  end
  always_ff @(posedge clk_i) begin
    key_q[0] <= '{bucket: bucket_i, tag: tag_i};
    for (int i = 1; i < Depth; i++) key_q[i] <= key_q[i-1];
    if (act) begin
      valid_q[addr] <= keep;
      held_q[addr]  <= key;
    end
    if (!rst_n) for (int a = 0; a < 2**AddrBits; a++) valid_q[a] <= 1'b0;
    if (rst_n && act && !sweep) begin
      AtMostOneSlotHoldsAKey: assert ((holds & (holds - 1'b1)) == '0);
      AKeyThatIsHeldIsFound:  assert (matched == (holds != '0));
      ItIsFoundWhereItIs:     assert (!matched || holds[addr]);
      AFreeSlotIsFree:        assert (was_valid == valid_q[addr]);
      ItIsInItsBucket:        assert (addr[1] == key.bucket[addr[2]]);
    end
    if (rst_n && act && sweep) OnlyRecordsAreSwept: assert (valid_q[addr]);
    if (rst_n) ResidentIsWhatIsHeld: assert (resident == count);
  end
endmodule
