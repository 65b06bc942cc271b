// SPDX-License-Identifier: Apache-2.0
// Nanoseconds of a PTP time of day: seconds * 10^9 + ns, with adders only (10^9 = 125^3 * 2^9).
//
// Latency 7 clocks, one time in every clock, no handshake. Fractions of a nanosecond are ignored.
module tf_time_of_day (
  input  logic        clk_i,
  input  logic [95:0] time_of_day_i,  // 48 bits of seconds, 32 of ns, 16 of 2^-16 ns
  output logic [63:0] time_o
);
  localparam int unsigned Bits = 64 - 9;
  logic [Bits-1:0] once_q [3], thrice_q [3], power_q [3];
  logic [31:0]     ns_q [6];

  // Times 125 is 128 times less 3 times; this is done three times.
  always_ff @(posedge clk_i) begin
    for (int i = 0; i < 3; i++) begin
      logic [Bits-1:0] of;
      of          = (i == 0) ? Bits'(time_of_day_i[95:48]) : power_q[i-1];
      once_q[i]   <= of;
      thrice_q[i] <= of + (of << 1);
      power_q[i]  <= (once_q[i] << 7) - thrice_q[i];
    end
    ns_q[0] <= time_of_day_i[47:16];
    for (int i = 1; i < 6; i++) ns_q[i] <= ns_q[i-1];
    time_o <= {power_q[2], 9'd0} + 64'(ns_q[5]);
  end
endmodule
