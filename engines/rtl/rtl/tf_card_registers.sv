// SPDX-License-Identifier: Apache-2.0
// The card's own registers, whose addresses are listed in tf_card.
//
// A write or a read is executed in the clock in which it arrives. Its answer stays until it is
// taken.
module tf_card_registers (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic              write_i,
  input  logic [11:0]       write_addr_i,
  input  logic [31:0]       write_data_i,
  output logic              bvalid_o,
  input  logic              bready_i,
  input  logic              read_i,
  input  logic [11:0]       read_addr_i,
  output logic              rvalid_o,
  input  logic              rready_i,
  output logic [31:0]       read_data_o,
  output logic              ends_o,
  output logic [63:0]       end_o,
  input  logic [17:0][63:0] counters_i
);
  logic [31:0] high_q;   // of the counter whose low word was read
  logic [4:0]  counter;

  assign counter = read_addr_i[7:3];
  always_ff @(posedge clk_i) begin
    bvalid_o <= write_i | (bvalid_o & !bready_i);
    rvalid_o <= read_i | (rvalid_o & !rready_i);
    if (write_i) begin
      unique case (write_addr_i)
        12'h008: ends_o       <= write_data_i[0];
        12'h010: end_o[31:0]  <= write_data_i;
        12'h014: end_o[63:32] <= write_data_i;
        default: ;
      endcase
    end
    if (read_i) begin
      read_data_o <= '0;
      if (read_addr_i == 12'h000) read_data_o <= 32'h7466_0002;
      if (read_addr_i == 12'h008) read_data_o <= {31'd0, ends_o};
      if (read_addr_i[11:8] == 4'h1 && counter < 5'd18) begin
        read_data_o <= read_addr_i[2] ? high_q : counters_i[counter][31:0];
        if (!read_addr_i[2]) high_q <= counters_i[counter][63:32];
      end
    end
    if (!rst_ni) begin
      bvalid_o <= 1'b0;
      rvalid_o <= 1'b0;
      ends_o   <= 1'b0;
      end_o    <= '0;
    end
  end
endmodule
