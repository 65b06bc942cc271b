// SPDX-License-Identifier: Apache-2.0
// Tests remove one forward at a time (+fault=N) and check that this is noticed. So do proofs
// (TF_FAULT). Not in a bitstream.
`ifdef TF_FAULTS
  int unsigned fault = 0;
  initial begin
    if ($value$plusargs("fault=%d", fault) == 0) fault = 0;
  end
`elsif TF_FAULT
  localparam int unsigned fault = `TF_FAULT;
`else
  localparam int unsigned fault = 0;
`endif
