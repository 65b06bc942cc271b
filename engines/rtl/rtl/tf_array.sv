// SPDX-License-Identifier: Apache-2.0
// The line of stages after the hash (SAPTM, section 3.1, Figure 3): it takes a packet in every
// clock. A record that is displaced leaves in the place of the packet that displaced it.
//
// A stage only communicates with its neighbours. The hash of a key gives its two buckets and its
// tag. Its stage comes from a table without keys (tf_spread), which does not ask the stages;
// without that table (EntryBits = 0), the hash gives the stage too. Deviation: SAPTM has a tracking
// table and workload registers before stage 1 (SAPTM, section 3.3).
// Latency 2 + head_latency_of(EntryBits) + StageLatency * NumStages clocks. Output: no handshake,
// at most one record in a clock.
module tf_array
  import tf_pkg::*;
  import tf_record_pkg::*;
#(
  parameter int unsigned KeyBits    = 104,  // 104: IPv4 5-tuple; 296: IPv6 5-tuple
  parameter int unsigned NumStages  = 4,    // a power of two
  parameter int unsigned BucketBits = 6,    // a stage has 2**BucketBits buckets in each subtable
  parameter int unsigned TagBits    = 10,
  parameter int unsigned Slots      = 8,    // per bucket; 1 with one subtable: TurboFlow's table
  parameter int unsigned Subtables  = 2,
  parameter bit          TagsApart = 1'b0, // each lane of tags in its own memory
  localparam int unsigned AddrBits  = (Subtables - 1) + BucketBits + $clog2(Slots),
  // log2 of the entries of the table that gives the stage; 0: the hash gives it
  parameter int unsigned EntryBits  = entry_bits_of(NumStages, AddrBits)
) (
  input  logic                     clk_i,
  input  logic                     rst_ni,         // low for at least 4 + NumStages clocks
  // Configuration. It must not change while anything comes.
  input  logic [SeedBits-1:0]      seed_i,
  input  logic [MaxStageBits-1:0]  stage_mask_i,   // of a line smaller than the one built
  input  logic [BucketBits-1:0]    bucket_mask_i,
  input  logic                     ends_cut_i,     // no packet joins a record with FIN or RST
  input  logic [15:0]              sweep_every_i,
  input  logic [23:0]              age_period_i,
  // Whether there is room for what leaves. Without room, places stay empty, except for at most one.
  input  logic                     room_i,
  output logic                     taken_o,        // a place was taken: it may leave with a record
  // Input.
  output logic                     ready_o,
  input  input_e                   kind_i,
  input  logic [63:0]              time_i,
  input  logic [31:0]              length_i,
  input  logic [11:0]              tcp_flags_i,
  input  logic [7:0]               ttl_i,
  input  logic [7:0]               tos_i,
  input  logic [KeyBits-1:0]       key_i,
  // Output.
  output kind_e                    kind_o,
  output why_e                     why_o,
  output logic [KeyBits-1:0]       key_o,
  output body_t                    body_o,
  output logic                     clean_o,
  output logic [NumStages-1:0][AddrBits:0] resident_o
);
  localparam int unsigned SelectBits = $clog2(NumStages);
  // Hash bits, from the lowest: buckets, tag, stage. The entry uses the bits of the tag and those
  // above them, so keys with the same entry differ in their buckets.
  localparam int unsigned BucketsBits = Subtables*BucketBits;
  localparam int unsigned SpotBits    = BucketsBits + TagBits;
  localparam int unsigned UpperBits   = (EntryBits == 0) ? TagBits + SelectBits :
                                        (EntryBits > TagBits) ? EntryBits : TagBits;
  localparam int unsigned HashBits    = BucketsBits + UpperBits;
  localparam int unsigned HeadLatency = head_latency_of(EntryBits);

  // Reset travels along the line, so that no net has to cross the chip in one clock. It lasts
  // longer than that takes.
  logic [NumStages-1:0] rst_nq;
  always_ff @(posedge clk_i) rst_nq <= NumStages'({rst_nq, rst_ni});

  // Head: places, and the hash of their keys ------------------------------------------------------
  kind_e              head_kind, hashed_kind;
  kind_e              kind_q [HeadLatency];
  logic               head_epoch, hashed_epoch;
  logic [AgeBits-1:0] head_age, hashed_age;
  logic               head_turning, hashed_turning;
  logic [KeyBits-1:0] head_key, hashed_key;
  packet_t            head_packet;
  alone_t             head_alone, hashed_alone;
  packet_t            hashed_packet;
  logic [HashBits-1:0] hash;
  logic [SpotBits-1:0] spot;            // hash bits that place a key in its stage
  logic [MaxStageBits-1:0] stage;
  logic [KeyBits+HashBits-2:0] seed_q;
  logic               all_clean_q, any_busy_q;
  arrival_t           arrival;
  logic [NumStages-1:0] clean, busy;

  assign arrival = '{length: length_i, tcp_flags: tcp_flags_i, ttl: ttl_i, tos: tos_i};
  tf_sequencer #(
    .KeyBits(KeyBits), .BucketBits(BucketBits), .Settle(HeadLatency + StageLatency*NumStages + 8)
  ) u_sequencer (
    .clk_i, .rst_ni(rst_nq[0]), .bucket_mask_i, .sweep_every_i, .age_period_i, .room_i,
    .ready_o, .kind_i, .time_i,
    .arrival_i(arrival), .key_i,
    .kind_o(head_kind), .epoch_o(head_epoch), .age_o(head_age), .turning_o(head_turning),
    .key_o(head_key), .packet_o(head_packet), .alone_o(head_alone), .clean_i(all_clean_q), .busy_i(any_busy_q)
  );
  tf_hash_toeplitz #(.KeyBits(KeyBits), .HashBits(HashBits)) u_hash (
    .clk_i, .seed_i(seed_q), .key_i(head_key), .hash_o(hash)
  );
  tf_delay #(
    .Bits(2 + AgeBits + KeyBits + $bits(packet_t) + $bits(alone_t)), .Clocks(HeadLatency)
  ) u_hashing (
    .clk_i, .d_i({head_epoch, head_age, head_turning, head_key, head_packet, head_alone}),
    .q_o({hashed_epoch, hashed_age, hashed_turning, hashed_key, hashed_packet, hashed_alone})
  );
  always_ff @(posedge clk_i) begin
    seed_q      <= seed_i[KeyBits+HashBits-2:0];
    all_clean_q <= &clean;
    any_busy_q  <= |busy;
    kind_q[0]   <= head_kind;
    for (int i = 1; i < HeadLatency; i++) kind_q[i] <= kind_q[i-1];
    if (!rst_nq[0]) begin
      any_busy_q <= 1'b1;
      for (int i = 0; i < HeadLatency; i++) kind_q[i] <= KindIdle;
    end
  end
  assign hashed_kind = kind_q[HeadLatency-1];

  // The place of the key.
  if (EntryBits != 0) begin : g_spread
    tf_spread #(.NumStages(NumStages), .EntryBits(EntryBits)) u_spread (
      .clk_i, .rst_ni(rst_nq[0]), .stage_mask_i, .kind_i(kind_q[HashLatency-1]),
      .entry_i(hash[BucketsBits +: EntryBits]), .stage_o(stage)
    );
    tf_delay #(.Bits(SpotBits), .Clocks(SpreadLatency)) u_spot (
      .clk_i, .d_i(hash[SpotBits-1:0]), .q_o(spot)
    );
  end else begin : g_hashed
    assign stage  = MaxStageBits'(hash >> SpotBits) & stage_mask_i;
    assign spot = hash[SpotBits-1:0];
  end
  place_t place;
  always_comb begin
    place       = '0;
    place.stage = stage;
    for (int s = 0; s < Subtables; s++) begin
      place.bucket[s] = MaxBucketBits'(spot[s*BucketBits +: BucketBits])
                        & MaxBucketBits'(bucket_mask_i);
    end
    place.tag   = MaxTagBits'(spot[BucketsBits +: TagBits]);
    place.epoch = hashed_epoch;
    place.age   = hashed_age;
    place.turning = hashed_turning;
  end

  // The line -------------------------------------------------------------------------------------
  kind_e              line_kind [NumStages+1];
  why_e               line_why  [NumStages+1];
  logic [KeyBits-1:0] line_key  [NumStages+1];
  body_t              line_body [NumStages+1];

  assign line_kind[0] = hashed_kind;
  assign line_why[0]  = WhyCut;
  assign line_key[0]  = hashed_key;
  always_comb begin
    line_body[0] = body_of_packet(place, hashed_packet);
    if (hashed_kind == KindAlone) line_body[0] = body_of_alone(hashed_alone);
    if (hashed_kind == KindEpoch) line_body[0] = body_of_cell(place, hashed_alone);
  end
  assign taken_o      = head_kind != KindIdle;
  for (genvar i = 0; i < NumStages; i++) begin : g_stage
    tf_stage #(
      .Id(i), .KeyBits(KeyBits), .BucketBits(BucketBits), .TagBits(TagBits), .Slots(Slots),
      .Subtables(Subtables), .TagsApart(TagsApart)
    ) u_stage (
      .clk_i, .rst_ni(rst_nq[i]), .bucket_mask_i, .ends_cut_i,
      .kind_i(line_kind[i]), .why_i(line_why[i]), .key_i(line_key[i]), .body_i(line_body[i]),
      .kind_o(line_kind[i+1]), .why_o(line_why[i+1]), .key_o(line_key[i+1]),
      .body_o(line_body[i+1]), .resident_o(resident_o[i]), .clean_o(clean[i]), .busy_o(busy[i])
    );
  end
  assign kind_o  = line_kind[NumStages];
  assign why_o   = line_why[NumStages];
  assign key_o   = line_key[NumStages];
  assign body_o  = line_body[NumStages];
  assign clean_o = all_clean_q;

`ifdef VERILATOR
  initial begin
    assert (NumStages == 2**SelectBits && SelectBits <= MaxStageBits);
    assert (BucketBits >= 2 && BucketBits <= MaxBucketBits);
    assert (TagBits >= $clog2(Slots) + 2 && TagBits <= MaxTagBits);
    assert (Slots inside {1, 2, 4, 8} && Subtables inside {1, 2});
    assert (KeyBits + HashBits - 1 <= SeedBits);
    assert (NumStages > 1 || EntryBits == 0);
  end
  NoPacketLeavesUnmetered: assert property (@(posedge clk_i) disable iff (!rst_nq[NumStages-1])
    kind_o != KindPacket);
`endif
endmodule
