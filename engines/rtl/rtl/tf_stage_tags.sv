// SPDX-License-Identifier: Apache-2.0
// The first half of a stage: finds the slot of a key, or a slot for it.
//
// A stage holds Subtables subtables of 2**BucketBits buckets of Slots slots. Both buckets of a key
// are in one stage. Deviation: in SAPTM they may be in different stages (SAPTM, section 3.2). So
// the tag and the index of the other bucket form a signature that at most one slot has: two keys
// with the same signature share both buckets, and the second of them found the first.
//
//   slot = the one with my signature
//        else the first free one of the emptier bucket, the left one on a tie (SAPTM, section 2.3)
//        else the first idle or stale one
//        else any one, by bits of the tag
//
// A slot is idle if its last use was one or two periods ago (SAPTM, section 3.4, with 2 bits in
// each slot and without a table of candidates). A slot that was used more than once counts as used
// one period later, so that records of one packet make room first. A slot is stale if its record is
// of the previous cell.
//
// Latency 7 clocks, one op in every clock, no handshake:
//
//   s0 rows addressed          s3 first three free and idle slots      s6 tags written
//   s1 rows                    s4 without what the op two ahead took   s7 out
//   s2 compared                s5 decided (loop of one clock)
//
// Tags are read at s0 and written at s6, so the decisions of the six ops ahead are forwarded. Those
// of the ops four to six ahead are forwarded completely, at s2. The three ops directly ahead are
// packets (tf_pkg::SpecialGap), and packets take slots and never free them. So s3, s4 and s5 only
// have to exclude the slot that was taken, and three candidates of each kind are enough until the
// last of these ops has decided.
module tf_stage_tags
  import tf_pkg::*;
#(
  parameter int unsigned Id         = 0,
  parameter int unsigned BucketBits = 6,
  parameter int unsigned TagBits    = 10,
  parameter int unsigned Slots      = 8,   // slots per bucket: 1, 2, 4 or 8
  parameter int unsigned Subtables  = 2,   // 1 or 2
  parameter bit          TagsApart = 1'b0, // each lane of tags in its own memory
  localparam int unsigned SlotBits  = $clog2(Slots),
  localparam int unsigned AddrBits  = (Subtables - 1) + BucketBits + SlotBits
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  logic [BucketBits-1:0] bucket_mask_i,  // of a table smaller than the one built
  input  kind_e                 kind_i,         // before s0
  input  place_t                place_i,        // before s0
  // At s7.
  output logic                  act_o,          // the op accesses the slot
  output logic                  keep_o,         // it holds the packet afterwards
  output logic                  matched_o,      // it has the packet's signature
  output logic                  was_valid_o,
  output logic                  was_stale_o,
  output logic                  sweep_o,
  output logic [AddrBits-1:0]   addr_o,
  // Number of resident records, and whether none of them is stale.
  output logic [AddrBits:0]     resident_o,
  output logic                  clean_o,
  output logic                  busy_o          // tags are being cleared after reset
);
  localparam int unsigned SigBits = TagBits + (Subtables - 1) * BucketBits;
  localparam int unsigned S       = Subtables;
  localparam int unsigned Listed  = 3;  // candidates of each kind in a bucket
  localparam int unsigned SlotIndexBits = (Slots > 1) ? SlotBits : 1;

  typedef struct packed {
    logic               valid;
    logic               epoch;
    logic [AgeBits-1:0] age;
    logic [SigBits-1:0] sig;
  } tag_t;
  typedef struct packed {
    logic                         act;
    logic                         sweep;
    logic                         flush;
    logic                         begins;  // a cell begins
    logic                         epoch;
    logic [AgeBits-1:0]           age;
    logic                         turning;
    logic [S-1:0][BucketBits-1:0] bucket;
    logic [TagBits-1:0]           tag;
  } op_t;
  typedef struct packed {
    logic             write;
    logic             sub;
    logic [Slots-1:0] slot;     // one-hot
    logic             keep;
    logic             matched;
    logic             took_free;
    logic             epoch;
  } decision_t;
  typedef logic [S-1:0][Slots-1:0] lanes_t;

`include "tf_fault.svh"

  // s0: the op ----------------------------------------------------------------------------------
  logic                  epoch_q;
  logic [BucketBits-1:0] sweep_q;
  logic [AddrBits:0]     stale_q, resident_q;
  logic                  has_stale_q;
  op_t                   op0_d, op0_q, op1_q, op2_q, op3_q, op4_q, op5_q, op6_q, op7_q;

  // A sweep that finds nothing does no harm, so whether it is allowed may be known one clock late.
  always_comb begin
    op0_d        = '0;
    op0_d.sweep  = (kind_i == KindSweep) && has_stale_q;
    op0_d.flush  = kind_i == KindFlush;
    op0_d.begins = kind_i == KindEpoch;
    op0_d.act    = op0_d.sweep || ((kind_i == KindPacket || op0_d.flush)
                                   && place_i.stage == MaxStageBits'(Id));
    op0_d.epoch  = op0_d.sweep ? epoch_q : place_i.epoch;
    op0_d.age    = place_i.age;
    op0_d.turning = place_i.turning;
    op0_d.tag    = place_i.tag[TagBits-1:0];
    for (int s = 0; s < S; s++) begin
      op0_d.bucket[s] = op0_d.sweep ? sweep_q : place_i.bucket[s][BucketBits-1:0];
    end
  end

  function automatic logic [SigBits-1:0] sig(op_t op, int s);
    if (S == 2) return SigBits'({op.bucket[(S-1)-s], op.tag});
    return SigBits'(op.tag);
  endfunction
  // The index of a subtable; 0 if there is only one.
  function automatic logic index(logic sub);
    return (S == 2) & sub;
  endfunction
  function automatic logic [S-1:0] same_buckets(op_t a, op_t b);
    for (int s = 0; s < S; s++) same_buckets[s] = a.bucket[s] == b.bucket[s];
  endfunction
  function automatic logic same_signature(op_t a, op_t b);
    return a.bucket == b.bucket && a.tag == b.tag;
  endfunction

  // The tags, and clearing them after reset -----------------------------------------------------
  decision_t             decision5, decision6_q, decision7_q, decision8_q;
  logic                  busy_q;
  logic [BucketBits-1:0] clear_q;
  tag_t [S-1:0][Slots-1:0] row1, row2_q;

  logic is_next_age;
  assign is_next_age = decision6_q.matched | ((fault != 24) & op6_q.turning);

  for (genvar s = 0; s < S; s++) begin : g_tags
    logic [Slots-1:0]      write;
    logic [BucketBits-1:0] write_addr;
    tag_t                  written;
    always_comb begin
      write      = (decision6_q.write && decision6_q.sub == 1'(s)) ? decision6_q.slot : '0;
      write_addr = op6_q.bucket[s];
      // A slot that was used more than once becomes idle one period later than one that was used
      // once.
      written    = '{valid: decision6_q.keep, epoch: op6_q.epoch,
                     age: op6_q.age + AgeBits'(is_next_age), sig: sig(op6_q, s)};
      if (busy_q) begin
        write      = '1;
        write_addr = clear_q;
        written    = '0;
      end
    end
    tf_ram #(
      .Lanes(Slots), .LaneBits($bits(tag_t)), .AddrBits(BucketBits), .Apart(TagsApart)
    ) u_tags (
      .clk_i, .write_i(write), .write_addr_i(write_addr), .write_data_i({Slots{written}}),
      .read_addr_i(op0_q.bucket[s]), .read_data_o(row1[s])
    );
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      busy_q  <= 1'b1;
      clear_q <= '0;
    end else if (busy_q) begin
      busy_q  <= clear_q != bucket_mask_i;
      clear_q <= clear_q + 1'b1;
    end
  end
  assign busy_o = busy_q;

  // s1: which ops ahead share buckets and signature ----------------------------------------------
  // buckets3_q is about the op three ahead when this op is at s3, and so on. At s2: four, five,
  // six.
  logic [2:0][S-1:0] buckets2_q;
  logic [2:0]        same2_q;
  logic [S-1:0]      buckets3_q, buckets4_q, buckets5_q;
  logic              same3_q, same4_q, same5_q;

  always_ff @(posedge clk_i) begin
    buckets2_q <= {same_buckets(op1_q, op7_q), same_buckets(op1_q, op6_q),
                   same_buckets(op1_q, op5_q)};
    same2_q    <= {same_signature(op1_q, op7_q), same_signature(op1_q, op6_q),
                   same_signature(op1_q, op5_q)};
    buckets3_q <= same_buckets(op2_q, op5_q);
    same3_q    <= same_signature(op2_q, op5_q);
    buckets4_q <= same_buckets(op3_q, op5_q);
    same4_q    <= same_signature(op3_q, op5_q);
    buckets5_q <= same_buckets(op4_q, op5_q);
    same5_q    <= same_signature(op4_q, op5_q);
    row2_q     <= row1;
  end

  // The slots that the op at s6 writes, in buckets shared with a later op.
  function automatic lanes_t written_by(decision_t by, logic [S-1:0] shared);
    for (int s = 0; s < S; s++) begin
      written_by[s] = (by.write && by.sub == 1'(s) && shared[s]) ? by.slot : '0;
    end
  endfunction

  // The subtables in which the op at s6 took a free slot of a bucket shared with a later op.
  function automatic logic [S-1:0] took_free_of(decision_t by, logic [S-1:0] shared);
    for (int s = 0; s < S; s++) begin
      took_free_of[s] = by.write && by.took_free && by.sub == 1'(s) && shared[s];
    end
  endfunction

  // s2: compared, with what the ops four to six ahead wrote --------------------------------------
  lanes_t match2, free2, stale2, idle2, over4, over5, over6;
  lanes_t match3_q, free3_q, stale3_q, pick3_q;

  always_comb begin
    over4 = (fault == 11) ? '0 : written_by(decision6_q, buckets2_q[0]);
    over5 = (fault == 12) ? '0 : written_by(decision7_q, buckets2_q[1]);
    over6 = (fault == 13) ? '0 : written_by(decision8_q, buckets2_q[2]);
    for (int s = 0; s < S; s++) begin
      for (int k = 0; k < Slots; k++) begin
        logic               over, keep, same, stale;
        logic [AgeBits-1:0] unused_for;
        over  = over4[s][k] | over5[s][k] | over6[s][k];
        keep  = over4[s][k] ? decision6_q.keep : over5[s][k] ? decision7_q.keep
                                                             : decision8_q.keep;
        same  = over4[s][k] ? same2_q[0] : over5[s][k] ? same2_q[1] : same2_q[2];
        stale = op2_q.epoch != (over4[s][k] ? decision6_q.epoch :
                                over5[s][k] ? decision7_q.epoch : decision8_q.epoch);
        unused_for   = op2_q.age - row2_q[s][k].age;
        match2[s][k] = over ? keep & same
                            : row2_q[s][k].valid & (row2_q[s][k].sig == sig(op2_q, s));
        free2[s][k]  = over ? ~keep : ~row2_q[s][k].valid;
        stale2[s][k] = over ? keep & stale
                            : row2_q[s][k].valid & (row2_q[s][k].epoch != op2_q.epoch);
        // A slot written just now is not idle (TurningPackets). One not used for one or two periods
        // is.
        idle2[s][k]  = stale2[s][k] | (~over & row2_q[s][k].valid & (^unused_for));
      end
    end
  end
  always_ff @(posedge clk_i) begin
    match3_q <= match2;
    free3_q  <= free2;
    stale3_q <= stale2;
    pick3_q  <= op2_q.sweep ? stale2 : idle2;
  end

  // s3: without what the op three ahead took; the first three candidates -------------------------
  // more_than4_q: whether more than n slots were free, before the op three ahead took one. Unary
  // counts are compared without a carry.
  lanes_t                         took3, match3, free3;
  logic   [S-1:0][Listed-1:0]     has_free3, has_pick3;
  lanes_t [Listed-1:0]            list_free3, list_pick3;
  logic   [S-1:0][Slots-1:0]      more_than4_q;
  logic   [S-1:0]                 counted_less4_q;

  // The first, second and third of the given slots.
  function automatic logic [Listed-1:0][Slots-1:0] first_three(logic [Slots-1:0] of);
    logic [1:0] earlier;
    earlier = '0;
    for (int k = 0; k < Slots; k++) begin
      for (int n = 0; n < Listed; n++) first_three[n][k] = of[k] & (earlier == 2'(n));
      if (of[k] && earlier != 2'd3) earlier = earlier + 2'd1;
    end
  endfunction
  // Bit n: whether more than n of four are set.
  function automatic logic [3:0] more_of_four(logic [3:0] of);
    more_of_four[0] = |of;
    more_of_four[1] = (of[0] & of[1]) | (of[2] & of[3]) | ((of[0] | of[1]) & (of[2] | of[3]));
    more_of_four[2] = (of[0] & of[1] & (of[2] | of[3])) | (of[2] & of[3] & (of[0] | of[1]));
    more_of_four[3] = &of;
  endfunction
  // Bit n: whether more than n slots of a bucket are set.
  function automatic logic [Slots-1:0] more_than(logic [Slots-1:0] of);
    logic [4:0] low, high;
    low       = {more_of_four(4'(of)), 1'b1};
    high      = {more_of_four(4'(8'(of) >> 4)), 1'b1};
    more_than = '0;
    for (int n = 0; n < Slots; n++) begin
      for (int i = 0; i <= 4; i++) begin
        if (n + 1 - i >= 0 && n + 1 - i <= 4) more_than[n] |= low[i] & high[n+1-i];
      end
    end
  endfunction
  // Whether one count exceeds another by more than `by`, both in unary.
  function automatic logic exceeds(logic [Slots-1:0] count, logic [Slots-1:0] other, int by);
    exceeds = 1'b0;
    for (int n = -4; n < int'(Slots) + 4; n++) begin
      int   m;
      logic more, is_other_more;
      m             = n - by;
      more          = (n < 0) || (n < int'(Slots) && count[n[SlotIndexBits-1:0]]);
      is_other_more = (m < 0) || (m < int'(Slots) && other[m[SlotIndexBits-1:0]]);
      exceeds |= more & ~is_other_more;
    end
  endfunction

  always_comb begin
    took3      = written_by(decision6_q, buckets3_q);
    match3     = match3_q & ((fault == 16) ? '1 : ~took3);
    if (fault != 9 && same3_q && decision6_q.write) match3 = took3;
    free3      = (fault == 10) ? free3_q : free3_q & ~took3;
    list_free3 = '0;
    list_pick3 = '0;
    has_free3  = '0;
    has_pick3  = '0;
    for (int s = 0; s < S; s++) begin
      logic [Listed-1:0][Slots-1:0] of_free, of_pick;
      of_free = first_three(free3[s]);
      of_pick = first_three((fault == 14) ? pick3_q[s] : pick3_q[s] & ~took3[s]);
      for (int n = 0; n < Listed; n++) begin
        list_free3[n][s] = of_free[n];
        list_pick3[n][s] = of_pick[n];
        has_free3[s][n]  = |of_free[n];
        has_pick3[s][n]  = |of_pick[n];
      end
    end
  end

  // s4: without what the op two ahead took -------------------------------------------------------
  // emptier4: whether bucket 1 has more free slots than bucket 0, for each case in which the ops
  // ahead take -1 to 1 more of bucket 0 than of bucket 1.
  lanes_t                     match4_q, stale4_q, took4, match4;
  lanes_t [Listed-1:0]        list_free4_q, list_pick4_q;
  logic   [S-1:0][Listed-1:0] has_free4_q, has_pick4_q;
  lanes_t [1:0]               list_free4, list_pick4;
  logic   [S-1:0][1:0]        has_free4, has_pick4;
  logic   [2:0]               emptier4;

  always_ff @(posedge clk_i) begin
    match4_q     <= match3;
    stale4_q     <= (fault == 15) ? stale3_q : stale3_q & ~took3;
    list_free4_q <= list_free3;
    list_pick4_q <= list_pick3;
    has_free4_q  <= has_free3;
    has_pick4_q  <= has_pick3;
    for (int s = 0; s < S; s++) more_than4_q[s] <= more_than(free3_q[s]);
    counted_less4_q <= (fault == 30) ? '0 : took_free_of(decision6_q, buckets3_q);
  end

  always_comb begin
    logic [S-1:0] took_free;
    logic [6:0]   above;
    logic [4:0]   emptier;
    took4     = written_by(decision6_q, buckets4_q);
    match4    = match4_q & ((fault == 6) ? '1 : ~took4);
    if (fault != 5 && same4_q && decision6_q.write) match4 = took4;
    took_free = (fault == 7) ? '0 : took_free_of(decision6_q, buckets4_q);
    for (int s = 0; s < S; s++) begin
      logic gone_first, gone_second;
      list_free4[0][s] = took_free[s] ? list_free4_q[1][s] : list_free4_q[0][s];
      list_free4[1][s] = took_free[s] ? list_free4_q[2][s] : list_free4_q[1][s];
      has_free4[s]     = took_free[s] ? has_free4_q[s][2:1] : has_free4_q[s][1:0];
      gone_first       = (fault != 8) & |(list_pick4_q[0][s] & took4[s]);
      gone_second      = (fault != 8) & |(list_pick4_q[1][s] & took4[s]);
      list_pick4[0][s] = gone_first ? list_pick4_q[1][s] : list_pick4_q[0][s];
      has_pick4[s][0]  = gone_first ? has_pick4_q[s][1] : has_pick4_q[s][0];
      list_pick4[1][s] = (gone_first | gone_second) ? list_pick4_q[2][s] : list_pick4_q[1][s];
      has_pick4[s][1]  = (gone_first | gone_second) ? has_pick4_q[s][2] : has_pick4_q[s][1];
    end
    // Whether bucket 1 exceeds bucket 0 by more than 3 - i. Slots not taken yet are counted.
    for (int i = 0; i < 7; i++) begin
      above[i] = (S == 2) & exceeds(more_than4_q[S-1], more_than4_q[0], 3 - i);
    end
    emptier  = counted_less4_q[0] ? above[6:2] : counted_less4_q[S-1] ? above[4:0] : above[5:1];
    emptier4 = took_free[0] ? emptier[4:2] : took_free[S-1] ? emptier[2:0] : emptier[3:1];
  end

  // s5: without what the op just ahead took: decided ---------------------------------------------
  lanes_t              match5_q, stale5_q, took5;
  logic                has_match5_q;
  lanes_t [1:0]        list_free5_q, list_pick5_q;
  logic   [S-1:0][1:0] has_free5_q, has_pick5_q;
  logic   [2:0]        emptier5_q;

  always_ff @(posedge clk_i) begin
    match5_q     <= match4;
    has_match5_q <= |match4;
    stale5_q     <= (fault == 31) ? stale4_q : stale4_q & ~took4;
    list_free5_q <= list_free4;
    list_pick5_q <= list_pick4;
    has_free5_q  <= has_free4;
    has_pick5_q  <= has_pick4;
    emptier5_q   <= emptier4;
  end

  // Where the search for an idle slot begins, and which slot to take if there is none.
  logic             left_or_right5, any_sub5;
  logic [Slots-1:0] any_slot5;
  always_comb begin
    any_slot5 = Slots'(1);
    for (int k = 0; k < Slots; k++) any_slot5[k] = (op5_q.tag & TagBits'(Slots - 1)) == TagBits'(k);
    any_sub5       = (S == 2) & op5_q.tag[SlotBits];
    left_or_right5 = (S == 2) & op5_q.tag[SlotBits+1] & ~op5_q.sweep;
  end

  // The idle slot to take if the op directly ahead takes no first candidate, that of subtable 0, or
  // that of subtable 1. For each case: whether there is one, its subtable, and the slot.
  logic [2:0][Slots+1:0] picks5;
  always_comb begin
    for (int n = 0; n < 3; n++) begin
      logic [S-1:0] second, has;
      logic         sub;
      for (int s = 0; s < S; s++) begin
        second[s] = n == s + 1;
        has[s]    = has_pick5_q[s][second[s]];
      end
      sub       = index(has[index(left_or_right5)] ? left_or_right5 : ~left_or_right5);
      picks5[n] = {|has, sub, list_pick5_q[second[sub]][sub]};
    end
  end

  always_comb begin
    logic             same, lost, any_free, any_pick, free_sub, pick_sub, match_sub;
    logic [S-1:0]     took_free, has_free, gone;
    logic [Slots-1:0] match_slot, pick_slot;
    lanes_t           free_slot;
    took5      = written_by(decision6_q, buckets5_q);
    same       = (fault != 1) & same5_q & decision6_q.write;
    lost       = (fault != 2) & |(match5_q & took5);
    took_free  = (fault == 3) ? '0 : took_free_of(decision6_q, buckets5_q);
    match_slot = '0;
    for (int s = 0; s < S; s++) begin
      free_slot[s] = took_free[s] ? list_free5_q[1][s] : list_free5_q[0][s];
      has_free[s]  = took_free[s] ? has_free5_q[s][1] : has_free5_q[s][0];
      gone[s]      = (fault != 4) & |(list_pick5_q[0][s] & took5[s]);
      match_slot  |= match5_q[s];
    end
    match_sub = (S == 2) & |match5_q[S-1];
    free_sub  = took_free[0] ? emptier5_q[2] : took_free[S-1] ? emptier5_q[0] : emptier5_q[1];
    any_free  = |has_free;
    // The op ahead took one slot, so at most one bit of `gone` is set: the three picks are ready
    // before it.
    {any_pick, pick_sub, pick_slot} = gone[0] ? picks5[1] : gone[S-1] ? picks5[2] : picks5[0];

    decision5           = '0;
    decision5.keep      = ~(op5_q.sweep | op5_q.flush);
    decision5.epoch     = op5_q.epoch;
    decision5.matched   = ~op5_q.sweep & (same | (has_match5_q & ~lost));
    decision5.took_free = decision5.keep & ~decision5.matched & any_free;
    decision5.write     = op5_q.act & (op5_q.sweep ? any_pick :
                                       op5_q.flush ? decision5.matched : 1'b1);
    if (decision5.matched) begin
      decision5.sub  = same ? decision6_q.sub : match_sub;
      decision5.slot = same ? decision6_q.slot : match_slot;
    end else if (decision5.took_free) begin
      decision5.sub  = free_sub;
      decision5.slot = free_slot[index(free_sub)];
    end else if (any_pick) begin
      decision5.sub  = pick_sub;
      decision5.slot = pick_slot;
    end else begin
      decision5.sub  = any_sub5;
      decision5.slot = any_slot5;
    end
  end

  // s6, s7: content of the slot, and its address -------------------------------------------------
  lanes_t stale6_q;
  logic   was_stale7_q;
  logic [AddrBits-1:0] addr7_d, addr7_q;

  always_comb begin
    addr7_d = AddrBits'(op6_q.bucket[index(decision6_q.sub)]) << SlotBits;
    if (S == 2) addr7_d[AddrBits-1] = decision6_q.sub;
    for (int k = 0; k < Slots; k++) if (decision6_q.slot[k]) addr7_d |= AddrBits'(k);
  end
  always_ff @(posedge clk_i) begin
    op0_q <= op0_d;
    op1_q <= op0_q;
    op2_q <= op1_q;
    op3_q <= op2_q;
    op4_q <= op3_q;
    op5_q <= op4_q;
    op6_q <= op5_q;
    op7_q <= op6_q;
    decision6_q  <= decision5;
    decision7_q  <= decision6_q;
    decision8_q  <= decision7_q;
    stale6_q     <= (fault == 32) ? stale5_q : stale5_q & ~took5;
    was_stale7_q <= decision6_q.write
                    & |(stale6_q[index(decision6_q.sub)] & decision6_q.slot);
    addr7_q      <= addr7_d;
    if (!rst_ni) begin
      op0_q <= '0;
      op1_q <= '0;
      op2_q <= '0;
      op3_q <= '0;
      op4_q <= '0;
      op5_q <= '0;
      op6_q <= '0;
      op7_q <= '0;
      decision6_q.write <= 1'b0;
      decision7_q.write <= 1'b0;
      decision8_q.write <= 1'b0;
      was_stale7_q      <= 1'b0;
    end
  end
  assign act_o       = decision7_q.write;
  assign keep_o      = decision7_q.keep;
  assign matched_o   = decision7_q.matched;
  assign was_valid_o = ~decision7_q.took_free;
  assign was_stale_o = was_stale7_q;
  assign sweep_o     = op7_q.sweep;
  assign addr_o      = addr7_q;

  // Resident and stale records -------------------------------------------------------------------
  always_ff @(posedge clk_i) begin
    if (decision7_q.write && decision7_q.keep && decision7_q.took_free) begin
      resident_q <= resident_q + 1'b1;
    end else if (decision7_q.write && !decision7_q.keep) begin
      resident_q <= resident_q - 1'b1;
    end
    if (op7_q.begins)      stale_q <= resident_q;
    else if (was_stale7_q) stale_q <= stale_q - 1'b1;
    has_stale_q <= stale_q != '0;
    if (op0_d.begins) epoch_q <= op0_d.epoch;
    if (op0_d.sweep)  sweep_q <= (sweep_q + 1'b1) & bucket_mask_i;
    if (!rst_ni) begin
      resident_q <= '0;
      stale_q    <= '0;
      epoch_q    <= 1'b0;
      sweep_q    <= '0;
      has_stale_q <= 1'b0;
    end
  end
  assign resident_o = resident_q;
  assign clean_o    = stale_q == '0;

`ifdef VERILATOR
  // After the last write, a RAM row at s6 is the result of all ops ahead. So this is the search's
  // result without forwarding, and the decision has to be the same.
  logic [S-1:0][Slots-1:0] held6;
  for (genvar s = 0; s < S; s++) begin : g_held
    tag_t [Slots-1:0] row;
    assign row = g_tags[s].u_tags.mem[op6_q.bucket[s]];
    for (genvar k = 0; k < Slots; k++) begin : g_slot
      assign held6[s][k] = row[k].valid && row[k].sig == sig(op6_q, s);
    end
  end
  logic [S-1:0][Slots-1:0] chosen6;
  assign chosen6 = written_by(decision6_q, '1);

  AtMostOneSlotHoldsAKey: assert property (@(posedge clk_i) disable iff (!rst_ni)
    (decision6_q.write && !op6_q.sweep) |-> $onehot0(held6));
  AKeyThatIsHeldIsFound: assert property (@(posedge clk_i) disable iff (!rst_ni)
    (decision6_q.write && !op6_q.sweep) |-> (held6 == (decision6_q.matched ? chosen6 : '0)));
  OneSlotIsChosen: assert property (@(posedge clk_i) disable iff (!rst_ni)
    decision6_q.write |-> $onehot(decision6_q.slot));
  ResidentFitsTheStage: assert property (@(posedge clk_i) disable iff (!rst_ni)
    resident_q <= (AddrBits+1)'(2**AddrBits));
  // tf_spread relies on this: records in a stage are of this cell or of the previous one.
  NothingIsStaleWhenACellBegins: assert property (@(posedge clk_i) disable iff (!rst_ni)
    op7_q.begins |-> stale_q == '0);
  StaleIsResident: assert property (@(posedge clk_i) disable iff (!rst_ni)
    stale_q <= resident_q);
`endif
endmodule
