// SPDX-License-Identifier: Apache-2.0
// The line as a block of a card: packet descriptors go in, messages with records come out;
// registers.
//
// s_axis: one descriptor per beat, in its low bits as descriptor_t. m_axis: messages of the wire
// form, with two beats each. s_axil: 32-bit registers.
//
//   0x000  identity, 0x7466_0001 (read only)    0x010  packets between two sweeps
//   0x004  engine id                            0x014  packets of a period of activity, less one
//   0x008  ends cut (bit 0)                     0x018  mask of stages
//   0x00c  running (bit 0)                      0x01c  mask of buckets
//   0x020  records resident (read only)         0x024  nothing resident is stale (read only)
//   0x040  seed of the hash, 16 words
//   0x100  counters of 64 bits, read only, low word first, which holds the high one: packets_metered,
//          bytes_metered, evicted_collision, evicted_age, evicted_cut, microflows (records sent),
//          clocks in which a descriptor waited
//
// Registers are written before `running` is set, and must not change while it is set. Nothing is
// taken from s_axis before it is set and all tags are cleared.
module tf_meter
  import tf_pkg::*;
  import tf_record_pkg::*;
#(
  parameter int unsigned KeyBits    = 104,
  parameter int unsigned NumStages  = 2,
  parameter int unsigned BucketBits = 4,
  parameter int unsigned TagBits    = 8,
  parameter bit          TagsApart  = 1'b0, // each lane of tags in its own memory
  localparam int unsigned AddrBits  = 1 + BucketBits + 3,
  // log2 of the entries of the table that gives the stage; 0: the hash gives it
  parameter int unsigned EntryBits  = entry_bits_of(NumStages, AddrBits),
  localparam int unsigned LineLatency = head_latency_of(EntryBits) + StageLatency*NumStages
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic         s_axis_tvalid_i,
  output logic         s_axis_tready_o,
  input  logic [511:0] s_axis_tdata_i,
  output logic         m_axis_tvalid_o,
  input  logic         m_axis_tready_i,
  output logic [511:0] m_axis_tdata_o,
  output logic [63:0]  m_axis_tkeep_o,
  output logic         m_axis_tlast_o,
  input  logic         s_axil_awvalid_i,
  output logic         s_axil_awready_o,
  input  logic [11:0]  s_axil_awaddr_i,
  input  logic         s_axil_wvalid_i,
  output logic         s_axil_wready_o,
  input  logic [31:0]  s_axil_wdata_i,
  output logic         s_axil_bvalid_o,
  input  logic         s_axil_bready_i,
  output logic [1:0]   s_axil_bresp_o,
  input  logic         s_axil_arvalid_i,
  output logic         s_axil_arready_o,
  input  logic [11:0]  s_axil_araddr_i,
  output logic         s_axil_rvalid_o,
  input  logic         s_axil_rready_i,
  output logic [31:0]  s_axil_rdata_o,
  output logic [1:0]   s_axil_rresp_o
);
  localparam int unsigned Counters = 7;

  // A packet, or a cell that begins at `stamp`; with a length of 1, the last cell.
  typedef struct packed {
    logic [KeyBits-1:0] key;
    logic [7:0]         tos;
    logic [7:0]         ttl;
    logic [3:0]         zero;
    logic [11:0]        tcp_flags;
    logic [31:0]        length;
    logic [63:0]        stamp;    // ns since 1970
    logic [5:0]         unused;
    input_e             kind;
  } descriptor_t;

  descriptor_t        given;
  logic               ready, room, taken, running_q, ends_cut_q, valid;
  logic [31:0]        engine_id_q;
  logic [15:0]        sweep_every_q;
  logic [23:0]        age_period_q;
  logic [MaxStageBits-1:0] stage_mask_q;
  logic [BucketBits-1:0]   bucket_mask_q;
  logic [15:0][31:0]  seed_q;
  kind_e              kind;
  why_e               why;
  logic [KeyBits-1:0] key;
  body_t              body;
  logic [63:0]        packets_q, bytes_q, waited_q;
  logic [63:0]        evicted_collision, evicted_age, evicted_cut;
  logic [31:0]        records;
  logic               clean;
  logic [NumStages-1:0][AddrBits:0] resident;

  assign given = descriptor_t'(s_axis_tdata_i[$bits(descriptor_t)-1:0]);
  assign valid = s_axis_tvalid_i & running_q;
  assign s_axis_tready_o = ready & running_q;

  tf_array #(
    .KeyBits(KeyBits), .NumStages(NumStages), .BucketBits(BucketBits), .TagBits(TagBits),
    .TagsApart(TagsApart), .EntryBits(EntryBits)
  ) u_array (
    .clk_i, .rst_ni, .seed_i(seed_q), .stage_mask_i(stage_mask_q), .bucket_mask_i(bucket_mask_q),
    .ends_cut_i(ends_cut_q), .sweep_every_i(sweep_every_q), .age_period_i(age_period_q),
    .room_i(room), .taken_o(taken),
    .ready_o(ready), .kind_i(valid ? given.kind : InputNone), .time_i(given.stamp),
    .length_i(given.length), .tcp_flags_i(given.tcp_flags), .ttl_i(given.ttl), .tos_i(given.tos),
    .key_i(given.key),
    .kind_o(kind), .why_o(why), .key_o(key), .body_o(body), .clean_o(clean), .resident_o(resident)
  );
  tf_egress #(
    .KeyBits(KeyBits), .LineLatency(LineLatency), .DepthBits(depth_bits_of(LineLatency))
  ) u_egress (
    .clk_i, .rst_ni, .engine_id_i(engine_id_q), .packets_i(packets_q), .bytes_i(bytes_q),
    .room_o(room), .taken_i(taken),
    .kind_i(kind), .why_i(why), .key_i(key), .body_i(body),
    .valid_o(m_axis_tvalid_o), .ready_i(m_axis_tready_i), .data_o(m_axis_tdata_o),
    .keep_o(m_axis_tkeep_o), .last_o(m_axis_tlast_o),
    .evicted_collision_o(evicted_collision), .evicted_age_o(evicted_age),
    .evicted_cut_o(evicted_cut), .records_o(records)
  );

  always_ff @(posedge clk_i) begin
    if (s_axis_tvalid_i && s_axis_tready_o && given.kind == InputPacket) begin
      packets_q <= packets_q + 64'd1;
      bytes_q   <= bytes_q + 64'(given.length);
    end
    if (s_axis_tvalid_i && !s_axis_tready_o) waited_q <= waited_q + 64'd1;
    if (!rst_ni) begin
      packets_q <= '0;
      bytes_q   <= '0;
      waited_q  <= '0;
    end
  end

  // Registers ------------------------------------------------------------------------------------
  logic [Counters-1:0][63:0] counters;
  logic [31:0]               high_q;   // of the counter whose low word was read
  logic                      write, read;
  logic [2:0]                counter;
  logic [31:0]               all_resident, resident_q;

  assign counters = {waited_q, 64'(records), evicted_cut, evicted_age, evicted_collision, bytes_q,
                     packets_q};
  assign write = s_axil_awvalid_i & s_axil_wvalid_i & !s_axil_bvalid_o;
  assign read  = s_axil_arvalid_i & !s_axil_rvalid_o;
  assign s_axil_awready_o = write;
  assign s_axil_wready_o  = write;
  assign s_axil_arready_o = read;
  assign s_axil_bresp_o   = 2'b00;
  assign s_axil_rresp_o   = 2'b00;
  assign counter          = s_axil_araddr_i[5:3];

  always_comb begin
    all_resident = '0;
    for (int i = 0; i < NumStages; i++) all_resident = all_resident + 32'(resident[i]);
  end
  always_ff @(posedge clk_i) begin
    resident_q <= all_resident;
    if (write) begin
      unique case (s_axil_awaddr_i) inside
        12'h004: engine_id_q   <= s_axil_wdata_i;
        12'h008: ends_cut_q    <= s_axil_wdata_i[0];
        12'h00c: running_q     <= s_axil_wdata_i[0];
        12'h010: sweep_every_q <= s_axil_wdata_i[15:0];
        12'h014: age_period_q  <= s_axil_wdata_i[23:0];
        12'h018: stage_mask_q  <= s_axil_wdata_i[MaxStageBits-1:0];
        12'h01c: bucket_mask_q <= s_axil_wdata_i[BucketBits-1:0];
        [12'h040:12'h07c]: seed_q[s_axil_awaddr_i[5:2]] <= s_axil_wdata_i;
        default: ;
      endcase
    end
    s_axil_bvalid_o <= write | (s_axil_bvalid_o & !s_axil_bready_i);
    s_axil_rvalid_o <= read | (s_axil_rvalid_o & !s_axil_rready_i);
    if (read) begin
      s_axil_rdata_o <= '0;
      if (s_axil_araddr_i == 12'h000) s_axil_rdata_o <= 32'h7466_0001;
      if (s_axil_araddr_i == 12'h004) s_axil_rdata_o <= engine_id_q;
      if (s_axil_araddr_i == 12'h00c) s_axil_rdata_o <= {31'd0, running_q};
      if (s_axil_araddr_i == 12'h020) s_axil_rdata_o <= resident_q;
      if (s_axil_araddr_i == 12'h024) s_axil_rdata_o <= {31'd0, clean};
      if (s_axil_araddr_i[11:6] == 6'h04 && counter < 3'(Counters)) begin
        s_axil_rdata_o <= s_axil_araddr_i[2] ? high_q : counters[counter][31:0];
        if (!s_axil_araddr_i[2]) high_q <= counters[counter][63:32];
      end
    end
    if (!rst_ni) begin
      s_axil_bvalid_o <= 1'b0;
      s_axil_rvalid_o <= 1'b0;
      running_q     <= 1'b0;
      ends_cut_q    <= 1'b0;
      engine_id_q   <= '0;
      sweep_every_q <= 16'd64;
      age_period_q  <= 24'd4095;
      stage_mask_q  <= '1;
      bucket_mask_q <= '1;
      seed_q        <= '0;
    end
  end
endmodule
