// SPDX-License-Identifier: Apache-2.0
// A keyed hash: bit i is the parity of the key under the seed from bit i on (Toeplitz).
//
// For a random seed, the hashes of two different keys agree in n bits with probability 2^-n
// (XOR-universal). It only needs XORs, while SAPTM's unit multiplies (SAPTM, section 3.5,
// Figure 9).
// Latency 4 clocks, one key in every clock, no handshake.
module tf_hash_toeplitz #(
  parameter int unsigned KeyBits  = 104,
  parameter int unsigned HashBits = 25
) (
  input  logic                          clk_i,
  input  logic [KeyBits+HashBits-2:0]   seed_i,
  input  logic [KeyBits-1:0]            key_i,
  output logic [HashBits-1:0]           hash_o
);
  // Parities of four bits at a time, three times; then of the remaining bits.
  localparam int unsigned Parts1 = (KeyBits + 3) / 4;
  localparam int unsigned Parts2 = (Parts1 + 3) / 4;
  localparam int unsigned Parts3 = (Parts2 + 3) / 4;

  for (genvar i = 0; i < HashBits; i++) begin : g_bit
    logic [4*Parts1-1:0] masked;
    logic [Parts1-1:0]   parts1_d, parts1_q;
    logic [Parts2-1:0]   parts2_d, parts2_q;
    logic [Parts3-1:0]   parts3_d, parts3_q;
    logic [4*Parts2-1:0] wide1;
    logic [4*Parts3-1:0] wide2;
    logic                hash_q;

    always_comb begin
      masked = (4*Parts1)'(key_i & seed_i[i +: KeyBits]);
      wide1  = (4*Parts2)'(parts1_q);
      wide2  = (4*Parts3)'(parts2_q);
      for (int j = 0; j < Parts1; j++) parts1_d[j] = ^masked[4*j +: 4];
      for (int j = 0; j < Parts2; j++) parts2_d[j] = ^wide1[4*j +: 4];
      for (int j = 0; j < Parts3; j++) parts3_d[j] = ^wide2[4*j +: 4];
    end
    always_ff @(posedge clk_i) begin
      parts1_q <= parts1_d;
      parts2_q <= parts2_d;
      parts3_q <= parts3_d;
      hash_q   <= ^parts3_q;
    end
    assign hash_o[i] = hash_q;
  end
endmodule
