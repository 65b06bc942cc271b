// SPDX-License-Identifier: Apache-2.0
// A memory with one write port with lane enables and one read port, on one clock.
//
// Read data comes one clock after the address. If a lane is written in the clock in which it is
// read, its data is undefined: users forward what they wrote. Other lanes of that row read
// correctly. There are two ways to get this (docs/fpga.md says which family guarantees what):
// - The lanes are one memory, each padded to whole bytes with its own write enables. If both ports
//   access the same row, only the bytes being written read as undefined, in any write mode. Without
//   no_rw_check, Yosys would also have to choose the mode that reads first.
// - Apart: each lane is its own memory. Nothing is required of a row that is being written.
// Only this module, tf_delay and tf_queue depend on the family.
module tf_ram #(
  parameter int unsigned Lanes    = 1,
  parameter int unsigned LaneBits = 8,
  parameter int unsigned AddrBits = 6,
  parameter bit          Apart    = 1'b0
) (
  input  logic                           clk_i,
  input  logic [Lanes-1:0]               write_i,
  input  logic [AddrBits-1:0]            write_addr_i,
  input  logic [Lanes-1:0][LaneBits-1:0] write_data_i,
  input  logic [AddrBits-1:0]            read_addr_i,
  output logic [Lanes-1:0][LaneBits-1:0] read_data_o
);
  localparam int unsigned Bits = Lanes * LaneBits;

`ifdef VERILATOR
  // A lane that is written while it is read gives the complement of its old value, so that tests
  // notice a missing forward.
  logic [Bits-1:0] mem [2**AddrBits];
  logic [Bits-1:0] mask, flip;
  always_comb begin
    for (int l = 0; l < Lanes; l++) mask[l*LaneBits +: LaneBits] = {LaneBits{write_i[l]}};
    flip = (write_addr_i == read_addr_i) ? mask : '0;
  end
  always_ff @(posedge clk_i) begin
    if (write_i != '0) begin
      mem[write_addr_i] <= (mem[write_addr_i] & ~mask) | (write_data_i & mask);
    end
    read_data_o <= mem[read_addr_i] ^ flip;
  end
`else
  // Separate memories up to this depth are made of LUTs. They would leave most of a block empty,
  // and the block RAMs of one stage would be up to 60 columns apart (docs/fpga.md).
  localparam int unsigned LutAddrBits = 6;
  if (Apart || Lanes == 1) begin : g_apart
    for (genvar l = 0; l < Lanes; l++) begin : g_lane
      if (Apart && AddrBits <= LutAddrBits) begin : g_luts
        (* ram_style = "distributed", no_rw_check *) logic [LaneBits-1:0] mem [2**AddrBits];
        always_ff @(posedge clk_i) if (write_i[l]) mem[write_addr_i] <= write_data_i[l];
        always_ff @(posedge clk_i) read_data_o[l] <= mem[read_addr_i];
      end else begin : g_block
        (* ram_style = "block", no_rw_check *) logic [LaneBits-1:0] mem [2**AddrBits];
        always_ff @(posedge clk_i) if (write_i[l]) mem[write_addr_i] <= write_data_i[l];
        always_ff @(posedge clk_i) read_data_o[l] <= mem[read_addr_i];
      end
    end
  end else begin : g_rows
    // A byte of block RAM has nine bits.
    localparam int unsigned ByteBits  = 9;
    localparam int unsigned LaneBytes = (LaneBits + ByteBits - 1) / ByteBits;
    localparam int unsigned Bytes     = Lanes * LaneBytes;
    (* ram_style = "block" *) logic [Bytes*ByteBits-1:0] mem [2**AddrBits];
    logic [Lanes-1:0][LaneBytes*ByteBits-1:0] padded, row_q;
    for (genvar l = 0; l < Lanes; l++) begin : g_lane
      assign padded[l]      = (LaneBytes*ByteBits)'(write_data_i[l]);
      assign read_data_o[l] = row_q[l][LaneBits-1:0];
    end
    always_ff @(posedge clk_i) begin
      for (int b = 0; b < Bytes; b++) begin
        if (write_i[b/LaneBytes]) begin
          mem[write_addr_i][b*ByteBits +: ByteBits]
            <= padded[b/LaneBytes][(b%LaneBytes)*ByteBits +: ByteBits];
        end
      end
    end
    always_ff @(posedge clk_i) row_q <= mem[read_addr_i];
  end
`endif
endmodule
