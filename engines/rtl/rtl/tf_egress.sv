// SPDX-License-Identifier: Apache-2.0
// The end of the line: turns records into messages of the wire form
// (crates/engine/src/wire/mod.rs), with two beats of 512 bits for each message.
//
// Credits: a place that is taken at the head costs one credit. The credit comes back when the place
// leaves the line without a record, or when its record leaves the queue. So the queue never
// overflows, however long the receiver waits, and nothing in the line ever stalls
// (ThePlacesAreAccountedFor).
// The start of a cell becomes a message of counters, whose watermark is the start of the previous
// cell: the next cell does not begin until the records of the last one have left.
//
// Output: AXI-Stream. valid_o does not wait for ready_i, and a beat stays until it is taken. One
// record in two clocks.
module tf_egress
  import tf_pkg::*;
  import tf_record_pkg::*;
#(
  parameter int unsigned KeyBits     = 104,
  parameter int unsigned LineLatency = 17,  // clocks from taken_i until the place leaves the line
  parameter int unsigned DepthBits   = 7    // log2 of the queue's entries
) (
  input  logic               clk_i,
  input  logic               rst_ni,
  input  logic [31:0]        engine_id_i,
  // Packets that came in, and their bytes, for the counters.
  input  logic [63:0]        packets_i,
  input  logic [63:0]        bytes_i,
  // To the head of the line.
  output logic               room_o,
  input  logic               taken_i,
  // From the end of the line.
  input  kind_e              kind_i,
  input  why_e               why_i,
  input  logic [KeyBits-1:0] key_i,
  input  body_t              body_i,
  // AXI-Stream.
  output logic               valid_o,
  input  logic               ready_i,
  output logic [511:0]       data_o,
  output logic [63:0]        keep_o,
  output logic               last_o,
  // Counters, with the ledger's names.
  output logic [63:0]        evicted_collision_o,
  output logic [63:0]        evicted_age_o,
  output logic [63:0]        evicted_cut_o,
  output logic [31:0]        records_o
);
  localparam int unsigned Depth     = 2**DepthBits;
  localparam int unsigned KeyBytes  = 4 * ((KeyBits + 31) / 32);

  typedef struct packed {
    logic               is_mark;
    logic               ends;
    wire_t              fields;    // in a mark, first is the watermark
    logic [KeyBits-1:0] key;
  } entry_t;

`include "tf_fault.svh"

  // The token, with its times --------------------------------------------------------------------
  kind_e              kind1_q;
  logic [KeyBits-1:0] key1_q;
  body_t              body1_q;
  logic [1:0][63:0]   starts_q;   // of the cells of both parities
  state_t             state1;
  cell_t              cell1;
  place_t             place1;
  entry_t             entry2_d, entry2_q;
  logic               push2_d, push2_q;

  always_comb begin
    state1 = state_t'(body1_q);
    cell1  = cell_of_body(body1_q);
    place1 = place_of_body(body1_q);
    push2_d  = kind1_q inside {KindRecord, KindAlone, KindEpoch};
    entry2_d = '{is_mark: kind1_q == KindEpoch, ends: cell1.ends, key: key1_q,
                 fields: wire_of_state(state1, starts_q[state1.epoch])};
    if (kind1_q == KindAlone) entry2_d.fields = wire_of_alone(alone_of_body(body1_q));
    if (kind1_q == KindEpoch) entry2_d.fields.first = starts_q[!place1.epoch];
  end
  always_ff @(posedge clk_i) begin
    kind1_q  <= kind_i;
    key1_q   <= key_i;
    body1_q  <= body_i;
    entry2_q <= entry2_d;
    push2_q  <= push2_d;
    if (kind1_q == KindEpoch) starts_q[place1.epoch] <= cell1.start;
    if (!rst_ni) begin
      kind1_q  <= KindIdle;
      push2_q  <= 1'b0;
      starts_q <= '0;
    end
  end

  // Credits --------------------------------------------------------------------------------------
  logic [LineLatency-1:0] live_q;   // places that are in the line
  logic [DepthBits:0]     credits_q;
  logic                   leaves_empty, pop;

  assign leaves_empty = live_q[LineLatency-1]
                        & !(kind_i inside {KindRecord, KindAlone, KindEpoch});
  always_ff @(posedge clk_i) begin
    live_q    <= {live_q[LineLatency-2:0], taken_i};
    credits_q <= credits_q - (DepthBits+1)'(taken_i) + (DepthBits+1)'(leaves_empty)
                 + (DepthBits+1)'(pop);
    room_o    <= (fault == 34) | (credits_q >= (DepthBits+1)'(CreditLatency));
    if (!rst_ni) begin
      live_q    <= '0;
      credits_q <= (DepthBits+1)'(Depth);
      room_o    <= 1'b0;
    end
  end

  // The queue ------------------------------------------------------------------------------------
  logic [DepthBits-1:0] head_q, tail_q;
  logic [DepthBits:0]   count_q;
  logic                 filled_q;   // the output of the queue's memory is the first entry
  entry_t               first;

  tf_ram #(.Lanes(1), .LaneBits($bits(entry_t)), .AddrBits(DepthBits)) u_queue (
    .clk_i, .write_i(push2_q), .write_addr_i(head_q), .write_data_i(entry2_q),
    .read_addr_i(tail_q), .read_data_o(first)
  );
  always_ff @(posedge clk_i) begin
    head_q   <= head_q + DepthBits'(push2_q);
    tail_q   <= tail_q + DepthBits'(pop);
    count_q  <= count_q + (DepthBits+1)'(push2_q) - (DepthBits+1)'(pop);
    filled_q <= count_q != '0 && !pop;
    if (!rst_ni) begin
      head_q   <= '0;
      tail_q   <= '0;
      count_q  <= '0;
      filled_q <= 1'b0;
    end
  end

  // The message ----------------------------------------------------------------------------------
  entry_t       entry_q;
  logic         has_q, second_q;    // there is a message; its second beat is due
  logic [63:0]  watermark_q;
  logic [31:0]  sequence_q;
  logic [63:0]  packets_q, bytes_q; // at the time when the mark was taken from the queue
  logic [1023:0] message;
  logic [7:0]    message_bytes;

  localparam logic [7:0] RecordBytes   = 8'(32 + 48 + KeyBytes);
  localparam logic [7:0] CountersBytes = 8'(32 + 6 * 12);
  localparam logic [7:0] KindRecords   = (KeyBits > 128) ? 8'd2 : 8'd1;

  // Numbers are in network byte order; the first byte of a beat is in its lowest bits.
  function automatic logic [15:0] be16(logic [15:0] value);
    return {value[7:0], value[15:8]};
  endfunction
  function automatic logic [31:0] be32(logic [31:0] value);
    return {be16(value[15:0]), be16(value[31:16])};
  endfunction
  function automatic logic [63:0] be64(logic [63:0] value);
    return {be32(value[31:0]), be32(value[63:32])};
  endfunction
  function automatic logic [95:0] counter(logic [15:0] number, logic [63:0] value);
    return {be64(value), 16'd0, be16(number)};
  endfunction

  always_comb begin
    logic [7:0] kind;
    kind = !entry_q.is_mark ? KindRecords : entry_q.ends ? 8'd5 : 8'd4;
    message_bytes = entry_q.is_mark ? CountersBytes : RecordBytes;
    message = '0;
    message[0 +: 256] = {be64(watermark_q), be32(sequence_q), be32(engine_id_i), be64(LayoutId),
                         be32(32'(message_bytes)), kind, 8'd1, be16(16'h7466)};
    if (entry_q.is_mark) begin
      message[256 +: 6*96] = {counter(16'd7, evicted_cut_o), counter(16'd6, evicted_age_o),
                              counter(16'd5, evicted_collision_o), counter(16'd4, bytes_q),
                              counter(16'd3, packets_q), counter(16'd1, packets_q)};
    end else begin
      message[256 +: 384] = {16'd0, entry_q.fields.marks, entry_q.fields.tos,
                             entry_q.fields.max_ttl, entry_q.fields.min_ttl,
                             be16(16'(entry_q.fields.tcp_flags)),
                             be32(entry_q.fields.max_length), be32(entry_q.fields.min_length),
                             be64(entry_q.fields.last), be64(entry_q.fields.first),
                             be64(64'(entry_q.fields.bytes)), be64(64'(entry_q.fields.packets))};
      message[640 +: KeyBits] = entry_q.key;
    end
    data_o = second_q ? message[1023:512] : message[511:0];
    keep_o = '1;
    if (second_q) begin
      for (int i = 0; i < 64; i++) keep_o[i] = 8'(64 + i) < message_bytes;
    end
    valid_o = has_q;
    last_o  = second_q;
  end
  assign pop       = filled_q & (!has_q | (second_q & ready_i));
  assign records_o = sequence_q;

  always_ff @(posedge clk_i) begin
    if (pop) begin
      entry_q <= first;
      has_q   <= 1'b1;
      second_q <= 1'b0;
      // All messages from this one on contain the new watermark.
      if (first.is_mark) begin
        watermark_q <= first.fields.first;
        packets_q   <= packets_i;
        bytes_q     <= bytes_i;
      end
    end else if (has_q && ready_i) begin
      second_q <= 1'b1;
      if (second_q) begin
        has_q    <= 1'b0;
        second_q <= 1'b0;
      end
    end
    if (has_q && second_q && ready_i && !entry_q.is_mark) sequence_q <= sequence_q + 32'd1;
    if (!rst_ni) begin
      has_q       <= 1'b0;
      second_q    <= 1'b0;
      watermark_q <= '0;
      sequence_q  <= '0;
    end
  end

  // Records that have left, by reason.
  always_ff @(posedge clk_i) begin
    if (kind_i inside {KindRecord, KindAlone}) begin
      unique case (why_i)
        WhyCollision: evicted_collision_o <= evicted_collision_o + 64'd1;
        WhyAge:       evicted_age_o       <= evicted_age_o + 64'd1;
        default:      evicted_cut_o       <= evicted_cut_o + 64'd1;
      endcase
    end
    if (!rst_ni) begin
      evicted_collision_o <= '0;
      evicted_age_o       <= '0;
      evicted_cut_o       <= '0;
    end
  end

`ifdef VERILATOR
  initial assert (Depth > LineLatency + CreditLatency);
`endif
`ifdef TF_ASSERT
  // Every place that is taken is in the line, in the queue, or paid back.
  logic [DepthBits:0] accounted;
  always_comb begin
    accounted = credits_q + count_q + (DepthBits+1)'(push2_q)
                + (DepthBits+1)'(kind1_q inside {KindRecord, KindAlone, KindEpoch});
    for (int i = 0; i < LineLatency; i++) accounted = accounted + (DepthBits+1)'(live_q[i]);
  end
  always_ff @(posedge clk_i) if (rst_ni) begin
    ThePlacesAreAccountedFor: assert (accounted == (DepthBits+1)'(Depth));
    NoMoreThanThereAre:       assert (credits_q <= (DepthBits+1)'(Depth)
                                      && count_q <= (DepthBits+1)'(Depth));
    TheQueueNeverOverflows:   assert (!push2_q || count_q < (DepthBits+1)'(Depth));
  end
`endif
endmodule
