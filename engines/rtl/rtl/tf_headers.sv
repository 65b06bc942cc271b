// SPDX-License-Identifier: Apache-2.0
// Reads Ethernet, up to two VLAN tags, and the fixed IPv4 or IPv6 header from the start of a frame.
//
// Latency 4 clocks, one frame in every clock, no handshake:
//
//   h0 EtherTypes compared     h2 fields of the IP header
//   h1 IP header aligned       h3 its lengths compared
//
// Lengths are counted from the end of the fixed header (rest), so that the comparisons are the same
// for both versions, and no sum is needed before a comparison. Bytes after the end of the frame may
// be anything; then the frame has a reason.
module tf_headers
  import tf_frame_pkg::*;
(
  input  logic                   clk_i,
  input  logic                   rst_ni,
  // h0, from tf_window.
  input  logic                   done_i,
  input  logic [8*HeadBytes-1:0] head_i,
  input  logic [63:0]            last_keep_i,
  input  logic [9:0]             beats_i,
  input  logic                   damaged_i,
  // One clock after h2: values that are not needed before the end.
  output logic [255:0]           addresses_o,
  output logic [7:0]             tos_o,
  output logic [7:0]             ttl_o,
  output logic [8*RestBytes-1:0] rest_o,
  // One clock after h3.
  output logic                   done_o,
  output logic                   is_v6_o,
  output logic [7:0]             protocol_o,     // for IPv6: the next header
  output logic                   is_later_o,     // a later fragment of IPv4
  output logic [3:0]             words_o,        // words of IPv4 options
  output logic [15:0]            rest_end_o,     // end of the IP packet in the frame
  output logic [16:0]            length_o,
  output logic                   is_longer_o,
  output logic [15:0]            last_byte_o,
  output reason_e                reason_o
);
`include "tf_fault.svh"

  localparam logic [15:0] TypeIpv4 = 16'h0800;
  localparam logic [15:0] TypeIpv6 = 16'h86dd;

  function automatic logic is_tag(logic [15:0] announced);
    return announced inside {16'h8100, 16'h88a8, 16'h9100};
  endfunction

  // h0: number of tags, and the type after them ---------------------------------------------------
  localparam int unsigned AlignBits = 8*(PacketBytes + 2*TagBytes);
  logic [2:0]           tag0, v4_0, v6_0;
  logic [5:0]           last0;
  logic                 done1_q, v4_1_q, v6_1_q;
  logic [1:0]           tags1_q;
  logic [AlignBits-1:0] behind1_q;
  logic [15:0]          last1_q;
  reason_e              reason1_q;

  always_comb begin
    for (int i = 0; i < 3; i++) begin
      logic [15:0] announced;
      announced = be16(head_i[8*(EthernetBytes - 2 + TagBytes*i) +: 16]);
      tag0[i]   = is_tag(announced);
      v4_0[i]   = announced == TypeIpv4;
      v6_0[i]   = announced == TypeIpv6;
    end
    last0 = '0;
    for (int i = 0; i < 64; i++) if (last_keep_i[i]) last0 |= 6'(i);
  end
  always_ff @(posedge clk_i) begin
    done1_q   <= done_i;
    behind1_q <= head_i[8*HeadBytes-1:8*EthernetBytes];
    last1_q   <= {beats_i, last0};
    tags1_q   <= !tag0[0] ? 2'd0 : !tag0[1] ? 2'd1 : 2'd2;
    v4_1_q    <= !tag0[0] ? v4_0[0] : !tag0[1] ? v4_0[1] : v4_0[2];
    v6_1_q    <= !tag0[0] ? v6_0[0] : !tag0[1] ? v6_0[1] : v6_0[2];
    reason1_q <= damaged_i ? ReasonDamaged : (&tag0 & (fault != 25)) ? ReasonTags : ReasonNone;
    if (!rst_ni) done1_q <= 1'b0;
  end

  // h1: the IP header comes to the front ---------------------------------------------------------
  logic [8*PacketBytes-1:0] packet2_q;
  logic [16:0]              have1, have2_q;   // bytes from the IP header on; top bit: sign
  logic                     done2_q, is_v6_2_q;
  logic [15:0]              last2_q;
  reason_e                  reason2_q;

  always_comb begin
    unique case (tags1_q)
      2'd0:    have1 = {1'b0, last1_q} - 17'd13;
      2'd1:    have1 = {1'b0, last1_q} - 17'd17;
      default: have1 = {1'b0, last1_q} - 17'd21;
    endcase
  end
  always_ff @(posedge clk_i) begin
    done2_q <= done1_q;
    unique case (tags1_q)
      2'd0:    packet2_q <= behind1_q[0 +: 8*PacketBytes];
      2'd1:    packet2_q <= behind1_q[8*TagBytes +: 8*PacketBytes];
      default: packet2_q <= behind1_q[16*TagBytes +: 8*PacketBytes];
    endcase
    have2_q   <= have1;
    is_v6_2_q <= v6_1_q;
    last2_q   <= last1_q;
    reason2_q <= reason1_q;
    if (reason1_q != ReasonDamaged) begin
      if (have1[16] && fault != 26) reason2_q <= ReasonLinkCut;
      else if (reason1_q == ReasonNone && !v4_1_q && !v6_1_q) reason2_q <= ReasonEtherType;
    end
    if (!rst_ni) done2_q <= 1'b0;
  end

  // h2: fields -----------------------------------------------------------------------------------
  localparam logic [16:0] FixedV4 = 17'd20;
  localparam logic [16:0] FixedV6 = 17'd40;
  logic        done3_q, is_v6_3_q, is_later3_q, no_length3_q;
  logic [7:0]  protocol3_q;
  logic [3:0]  header_words3_q;           // for IPv4
  logic [16:0] have3_q, declared3_q;      // after the fixed header; the top bit is the sign
  logic [15:0] total3_q, last3_q;
  logic [15:0] total2, payload2;
  reason_e     reason3_q;

  assign total2   = be16(packet2_q[16 +: 16]);
  assign payload2 = be16(packet2_q[32 +: 16]);
  always_ff @(posedge clk_i) begin
    done3_q     <= done2_q;
    is_v6_3_q   <= is_v6_2_q;
    addresses_o <= is_v6_2_q ? packet2_q[64 +: 256] : 256'(packet2_q[96 +: 64]);
    tos_o       <= is_v6_2_q ? {packet2_q[3:0], packet2_q[15:12]} : packet2_q[15:8];
    ttl_o       <= is_v6_2_q ? packet2_q[56 +: 8] : packet2_q[64 +: 8];
    rest_o      <= is_v6_2_q ? packet2_q[320 +: 8*RestBytes] : packet2_q[160 +: 8*RestBytes];
    protocol3_q <= is_v6_2_q ? packet2_q[48 +: 8] : packet2_q[72 +: 8];
    is_later3_q <= !is_v6_2_q && fault != 27 && (be16(packet2_q[48 +: 16]) & 16'h1fff) != '0;
    header_words3_q <= packet2_q[3:0];
    have3_q      <= have2_q - (is_v6_2_q ? FixedV6 : FixedV4);
    declared3_q  <= is_v6_2_q ? {1'b0, payload2} : {1'b0, total2} - FixedV4;
    total3_q     <= is_v6_2_q ? payload2 : total2;
    no_length3_q <= is_v6_2_q ? payload2 == '0 && packet2_q[48 +: 8] != ProtocolNoNext
                              : total2 == '0;
    last3_q      <= last2_q;
    reason3_q    <= reason2_q;
    if (reason2_q == ReasonNone && have2_q != '0 && fault != 30
        && packet2_q[7:4] != (is_v6_2_q ? 4'd6 : 4'd4)) begin
      reason3_q <= ReasonVersion;
    end
    if (!rst_ni) done3_q <= 1'b0;
  end

  // h3: lengths ----------------------------------------------------------------------------------
  logic [3:0]  words3;                    // words of options
  logic        short3, longer3;

  always_comb begin
    words3  = (is_v6_3_q || fault == 28) ? '0 : header_words3_q - 4'd5;
    // Options have up to 40 bytes: if the high bits are 0, comparing the low bits is enough.
    short3  = have3_q[16] || (have3_q[15:6] == '0 && have3_q[5:0] < {words3, 2'b00})
              || (!is_v6_3_q && header_words3_q < 4'd5)
              || (!is_v6_3_q && !no_length3_q
                  && (declared3_q[16] || (declared3_q[15:6] == '0
                                          && declared3_q[5:0] < {words3, 2'b00})));
    longer3 = declared3_q[15:0] > have3_q[15:0];
  end
  always_ff @(posedge clk_i) begin
    done_o      <= done3_q;
    is_v6_o     <= is_v6_3_q;
    protocol_o  <= protocol3_q;
    is_later_o  <= is_later3_q;
    words_o     <= words3;
    rest_end_o  <= (longer3 || fault == 29) ? have3_q[15:0] : declared3_q[15:0];
    length_o    <= 17'(total3_q) + (is_v6_3_q ? FixedV6 : '0);
    is_longer_o <= longer3;
    last_byte_o <= last3_q;
    reason_o    <= reason3_q;
    if (reason3_q == ReasonNone) begin
      if (short3)            reason_o <= ReasonIpHeader;
      else if (no_length3_q) reason_o <= ReasonNoLength;
    end
    if (!rst_ni) done_o <= 1'b0;
  end
endmodule
