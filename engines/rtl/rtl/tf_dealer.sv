// SPDX-License-Identifier: Apache-2.0
// Gives packets to the meter of their family, decides for every frame whether the host gets it
// whole, and begins cells of 2**CellBits ns, in both meters at the same time.
//
// Handshakes are valid/ready; no valid waits for its ready. Within a cell, it takes a packet in
// every clock. If a meter does not take its packet, all later packets wait, so both meters have the
// same cells.
module tf_dealer
  import tf_frame_pkg::*;
#(
  parameter int unsigned CellBits = 27   // at most 29: a cell is shorter than 1 s
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  // From the parser.
  input  logic              valid_i,
  output logic              ready_o,
  input  parsed_t           parsed_i,
  input  logic [63:0]       time_i,
  // No more packets will come: the last cell ends at end_i.
  input  logic              ends_i,
  input  logic [63:0]       end_i,
  // Descriptors, for the meters of IPv4 (0) and IPv6 (1).
  output logic [1:0]        meter_valid_o,
  input  logic [1:0]        meter_ready_i,
  output logic [1:0][511:0] meter_data_o,
  // To tf_aside.
  output logic              said_o,
  input  logic              said_ready_i,
  // Counters: frames for the host by reason (0: packets for the meters), and packets that declare
  // more bytes than their frame has.
  output logic [9:0][63:0]  handed_o,
  output logic [63:0]       longer_o
);
  typedef enum logic [2:0] {Dealing, Beginning, Closing, Ending, Ended} state_e;
  state_e              state_d, state_q;
  logic [63:CellBits]  cell_d, cell_q;
  logic [1:0]          told_d, told_q;   // meters that have been told of the cell
  logic                is_packet, is_due, all_told, taken;

  assign is_packet = parsed_i.reason == ReasonNone;
  assign is_due    = is_packet && time_i[63:CellBits] > cell_q;
  assign all_told  = &(told_q | meter_ready_i);
  assign taken     = valid_i & ready_o;
  assign said_o    = taken;

  always_comb begin
    state_d = state_q;
    cell_d  = cell_q;
    told_d  = '0;
    meter_valid_o   = '0;
    meter_data_o[0] = packet_descriptor(parsed_i, time_i);
    meter_data_o[1] = meter_data_o[0];
    ready_o = 1'b0;
    unique case (state_q)
      Dealing: begin
        if (valid_i && is_due) begin
          state_d = Beginning;
        end else if (valid_i) begin
          meter_valid_o[parsed_i.is_v6] = is_packet & said_ready_i;
          ready_o = said_ready_i & (!is_packet | meter_ready_i[parsed_i.is_v6]);
        end else if (ends_i) begin
          state_d = Closing;
        end
      end
      // The packet that waits here is the first of its cell.
      Beginning: begin
        meter_valid_o = ~told_q;
        meter_data_o  = {2{cell_descriptor({time_i[63:CellBits], CellBits'(0)}, 1'b0)}};
        told_d        = told_q | meter_ready_i;
        if (all_told) begin
          told_d  = '0;
          cell_d  = time_i[63:CellBits];
          state_d = Dealing;
        end
      end
      // A cell without packets, which empties the line of earlier records; then the mark of the
      // end.
      Closing: begin
        meter_valid_o = ~told_q;
        meter_data_o  = {2{cell_descriptor(end_i, 1'b0)}};
        told_d        = told_q | meter_ready_i;
        if (all_told) begin
          told_d  = '0;
          state_d = Ending;
        end
      end
      Ending: begin
        meter_valid_o = ~told_q;
        meter_data_o  = {2{cell_descriptor(end_i, 1'b1)}};
        told_d        = told_q | meter_ready_i;
        if (all_told) state_d = Ended;
      end
      default: ;   // Ended
    endcase
  end

  always_ff @(posedge clk_i) begin
    state_q <= state_d;
    cell_q  <= cell_d;
    told_q  <= told_d;
    for (int i = 0; i < 10; i++) begin
      if (taken && parsed_i.reason == reason_e'(i)) handed_o[i] <= handed_o[i] + 64'd1;
    end
    if (taken && is_packet && parsed_i.is_longer) longer_o <= longer_o + 64'd1;
    if (!rst_ni) begin
      state_q  <= Dealing;
      cell_q   <= '0;
      told_q   <= '0;
      handed_o <= '0;
      longer_o <= '0;
    end
  end
endmodule
