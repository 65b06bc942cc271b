# SPDX-License-Identifier: Apache-2.0
"""Moves the registers behind block RAMs of an ECP5 netlist into the RAMs: ecp5_outreg.py IN.json OUT.json

Yosys does not use the output register of DP16KD, without which reading takes 4.3 ns of a clock. A port's register
is used if each of its outputs goes to one plain register and nowhere else: on the RAM's clock, always enabled, never
reset. Then the RAM gives in the same clock what the register gave.
"""

import json
import sys
from collections import defaultdict


def users(module):
    """Inputs of cells, and ports of the module, by the net that drives them."""
    found = defaultdict(list)
    for name, cell in module["cells"].items():
        for port, nets in cell["connections"].items():
            if cell["port_directions"][port] != "output":
                for net in nets:
                    found[net].append((name, port))
    for name, port in module["ports"].items():
        for net in port["bits"]:
            found[net].append((None, name))
    return found


def plain_register(cells, uses, clock):
    """The register that alone uses a net, if it is plain."""
    if len(uses) != 1 or uses[0][0] is None:
        return None
    name, port = uses[0]
    cell = cells[name]
    if cell["type"] != "TRELLIS_FF" or port not in ("DI", "M"):
        return None
    parameters, nets = cell["parameters"], cell["connections"]
    is_enabled = parameters.get("CEMUX", "1").strip() == "1" or nets.get("CE") == ["1"]
    is_reset = nets.get("LSR", ["0"]) != ["0"] or parameters.get("GSR") == "ENABLED"
    is_initial = parameters.get("REGSET", "RESET") == "RESET"
    is_rising = parameters.get("CLKMUX", "CLK") == "CLK"
    return name if is_enabled and not is_reset and is_initial and is_rising and nets["CLK"] == clock else None


def main():
    netlist = json.load(open(sys.argv[1], encoding="utf-8"))
    moved = rams = 0
    for module in netlist["modules"].values():
        cells = module["cells"]
        used_by = users(module)
        for ram in [cell for cell in cells.values() if cell["type"] == "DP16KD"]:
            for side in "AB":
                nets = ram["connections"]
                outputs = [port for port in nets if port.startswith("DO" + side) and used_by[nets[port][0]]]
                registers = [plain_register(cells, used_by[nets[port][0]], nets["CLK" + side]) for port in outputs]
                if not outputs or None in registers or nets["OCE" + side] != ["1"] or nets["RST" + side] != ["0"]:
                    continue
                ram["parameters"]["REGMODE_" + side] = "OUTREG"
                for port, register in zip(outputs, registers):
                    nets[port] = cells.pop(register)["connections"]["Q"]
                moved += len(outputs)
                rams += 1
    json.dump(netlist, open(sys.argv[2], "w", encoding="utf-8"))
    print(f"{moved} registers moved into {rams} block RAMs")


if __name__ == "__main__":
    main()
