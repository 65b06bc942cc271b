// SPDX-License-Identifier: Apache-2.0
// The head of the line: gives places to packets, cells and sweeps.
//
// Cell clock: a packet's time becomes an offset from the start of its cell. A packet from before
// the cell, or too long for the fields of a record, travels alone: first a token that evicts the
// record of its key, then the packet itself, so that the records of a flow stay in order.
// Sweep control: after a cell has begun, sweeps remove the records of the previous cell from the
// stages. They use places without a packet, and one of every sweep_every_i + 1 + SpecialGap places.
// The next cell waits until the sweeps are complete; while it waits, every place is a sweep.
// After a token that frees slots or begins a cell, SpecialGap places stay without a packet.
//
// Latency 2 clocks. Handshake: ready_o may fall while valid_i is up; valid_i does not wait for it.
module tf_sequencer
  import tf_pkg::*;
  import tf_record_pkg::*;
#(
  parameter int unsigned KeyBits    = 104,
  parameter int unsigned BucketBits = 6,
  parameter int unsigned Settle     = 100  // clocks until all stages know about a new cell
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  // Configuration. It must not change while anything comes.
  input  logic [BucketBits-1:0] bucket_mask_i,
  input  logic [15:0]           sweep_every_i,  // packets between background sweeps; 0: none
  input  logic [23:0]           age_period_i,   // packets of a period of activity, less one
  input  logic                  room_i,         // places may be taken
  // Input: a packet, or a cell that begins at time_i; with a length of 1, the last cell.
  output logic                  ready_o,
  input  input_e                kind_i,
  input  logic [63:0]           time_i,         // ns since 1970
  input  arrival_t              arrival_i,
  input  logic [KeyBits-1:0]    key_i,
  // Output, in every clock.
  output kind_e                 kind_o,
  output logic                  epoch_o,
  output logic [AgeBits-1:0]    age_o,
  output logic                  turning_o,
  output logic [KeyBits-1:0]    key_o,
  output packet_t               packet_o,       // of KindPacket
  output alone_t                alone_o,        // of KindAlone
  // From the line.
  input  logic                  clean_i,        // no stage holds a record of an ended cell
  input  logic                  busy_i          // stages are being cleared
);
  localparam int unsigned SettleBits = $clog2(Settle + 1);

  // A packet in hand, with its offset in the cell -------------------------------------------------
  input_e             kind_q;
  logic [KeyBits-1:0] key_q;
  logic [63:0]        time_q, start_q;
  logic [63:TimeBits] next_q;  // of start_q, the next value of the high bits
  logic [TimeBits-1:0] offset_d;
  arrival_t           arrival_q;
  logic               borrow, borrow_q, is_start_q, is_next_q, fits_q, alone;
  packet_t            packet_d, packet_q;
  logic               taken, stands;

  assign ready_o = ~busy_i & (kind_q == InputNone || taken);
  always_comb begin
    // An offset is less than 2**TimeBits, so the high bits are those of the start, or the next
    // higher value. So there is no carry over 64 bits.
    {borrow, offset_d} = {1'b0, time_i[TimeBits-1:0]} - {1'b0, start_q[TimeBits-1:0]};
    packet_d = packet_of(offset_d, arrival_i);
    alone    = !(borrow_q ? is_next_q : is_start_q) || !fits_q;
  end
  always_ff @(posedge clk_i) begin
    if (ready_o) begin
      kind_q    <= kind_i;
      key_q     <= key_i;
      time_q    <= time_i;
      arrival_q <= arrival_i;
      borrow_q   <= borrow;
      is_start_q <= time_i[63:TimeBits] == start_q[63:TimeBits];
      is_next_q  <= time_i[63:TimeBits] == next_q;
      fits_q     <= fits(arrival_i);
      packet_q  <= packet_d;
      if (kind_i == InputCell) begin
        start_q <= time_i;
        next_q  <= time_i[63:TimeBits] + 1'b1;
      end
    end
    if (!rst_ni) begin
      kind_q  <= InputNone;
      start_q <= '0;
      next_q  <= (64-TimeBits)'(1);
    end
  end

  // Places ---------------------------------------------------------------------------------------
  logic [1:0]            gap_d, gap_q;          // places that stay without a packet
  logic                  flushed_d, flushed_q;  // the packet in hand follows its flush
  logic                  swept_d, swept_q;      // the last special token was a sweep
  logic                  sweeping_d, sweeping_q;
  logic [SettleBits-1:0] settle_d, settle_q;
  logic [15:0]           since_d, since_q;      // packets since the last sweep
  logic                  epoch_d, epoch_q;
  logic                  dense, may_sweep, sweep_due_d, sweep_due_q;
  logic                  open_d, open_q;        // a packet may take the place, if there is room
  kind_e                 place;

  // Two consecutive sweeps visit different buckets, if there are at least four.
  assign dense     = &bucket_mask_i[1:0];
  assign may_sweep = sweeping_q & (gap_q == '0 || (dense & swept_q));
  assign stands    = kind_q != InputNone;

  always_comb begin
    place      = KindIdle;
    gap_d      = (gap_q == '0) ? '0 : gap_q - 2'd1;
    flushed_d  = flushed_q;
    swept_d    = swept_q;
    epoch_d    = epoch_q;
    since_d    = since_q;
    settle_d   = (settle_q == '0) ? '0 : settle_q - 1'b1;
    sweeping_d = sweeping_q & ~(settle_q == '0 & clean_i);
    if (flushed_q) begin
      place     = KindAlone;
      flushed_d = 1'b0;
    end else if (!room_i) begin
      place = KindIdle;
    end else if (may_sweep && (sweep_due_q || kind_q != InputPacket)) begin
      place   = KindSweep;
      gap_d   = 2'(SpecialGap);
      swept_d = 1'b1;
      since_d = '0;
    end else if (stands && gap_q == '0) begin
      unique case (kind_q)
        InputPacket: begin
          if (alone) begin
            place     = KindFlush;
            flushed_d = 1'b1;
            gap_d     = 2'(SpecialGap);
            swept_d   = 1'b0;
          end else begin
            place   = KindPacket;
            since_d = (&since_q) ? since_q : since_q + 16'd1;
          end
        end
        InputCell: begin
          if (!sweeping_q) begin
            place      = KindEpoch;
            epoch_d    = ~epoch_q;
            sweeping_d = 1'b1;
            settle_d   = SettleBits'(Settle);
            gap_d      = 2'(SpecialGap);
            swept_d    = 1'b0;
          end
        end
        default: ;
      endcase
    end
  end

  // Whether the input is taken drives all its registers, so it is prepared one clock ahead.
  always_comb begin
    sweep_due_d = sweep_every_i != '0 && since_q >= sweep_every_i && place != KindSweep;
    open_d      = gap_d == '0 && !flushed_d && !(sweeping_d && sweep_due_d);
    taken       = flushed_q | (open_q & room_i & ((kind_q == InputPacket && !alone)
                                                  || (kind_q == InputCell && !sweeping_q)));
  end

  // Periods of activity are counted in packets, so that records do not depend on idle places. Slots
  // are written with the new period at once, and the search uses it TurningPackets later. So no
  // slot becomes idle between an op that wrote it and one that was searching meanwhile.
  localparam int unsigned TurningBits = $clog2(TurningPackets + 1);
  logic [23:0]            left_q;
  logic [AgeBits-1:0]     age_q;
  logic [TurningBits-1:0] turning_q;

  always_ff @(posedge clk_i) begin
    gap_q      <= gap_d;
    flushed_q  <= flushed_d;
    swept_q    <= swept_d;
    sweeping_q <= sweeping_d;
    settle_q   <= settle_d;
    since_q    <= since_d;
    epoch_q    <= epoch_d;
    sweep_due_q <= sweep_due_d;
    open_q      <= open_d;
    if (place == KindPacket) begin
      left_q <= (left_q == '0) ? age_period_i : left_q - 24'd1;
      if (left_q == '0)        turning_q <= TurningBits'(TurningPackets);
      else if (turning_q != '0) turning_q <= turning_q - 1'b1;
      if (turning_q == TurningBits'(1)) age_q <= age_q + 1'b1;
    end
    kind_o   <= place;
    epoch_o  <= epoch_d;
    age_o    <= age_q;
    turning_o <= turning_q != '0;
    key_o    <= key_q;
    packet_o <= packet_q;
    alone_o  <= alone_of(time_q, arrival_q);
    if (!rst_ni) begin
      gap_q      <= '0;
      flushed_q  <= 1'b0;
      swept_q    <= 1'b0;
      sweeping_q <= 1'b0;
      settle_q   <= '0;
      since_q    <= '0;
      sweep_due_q <= 1'b0;
      open_q      <= 1'b1;
      epoch_q    <= 1'b0;
      left_q     <= age_period_i;
      age_q      <= '0;
      turning_q  <= '0;
      kind_o     <= KindIdle;
    end
  end

`ifdef VERILATOR
  SpecialTokensKeepTheirDistance: assert property (@(posedge clk_i) disable iff (!rst_ni)
    (place == KindPacket || place == KindFlush || place == KindEpoch) |-> gap_q == '0);
  TakenIsInPlace: assert property (@(posedge clk_i) disable iff (!rst_ni)
    taken == (place inside {KindPacket, KindEpoch, KindAlone}));
  OneKeyInEveryClock: assert property (@(posedge clk_i) disable iff (!rst_ni)
    (kind_q == InputPacket && !alone && !sweeping_q && gap_q == '0 && room_i) |-> taken);
`endif
endmodule
