# SPDX-License-Identifier: Apache-2.0
"""Copies registers of an ECP5 netlist that many cells read: ecp5_fanout.py MOST IN.json OUT.json

A register that selects a whole record drives hundreds of cells, and its wire is as long as the record is wide. The
tools of FPGA vendors copy such registers. Yosys has no such pass, and merges copies that the source makes. Each copy
drives at most MOST cells, whose outputs are neighbouring bits.
"""

import json
import sys
from collections import defaultdict


def readers(module):
    """Inputs of cells by the net that drives them, and the nets that leave the module."""
    found = defaultdict(list)
    for name, cell in module["cells"].items():
        for port, nets in cell["connections"].items():
            if cell["port_directions"][port] != "output":
                for index, net in enumerate(nets):
                    found[net].append((name, port, index))
    leaving = {net for port in module["ports"].values() for net in port["bits"]}
    return found, leaving


def names(module):
    """Name and bit of each net that the source names."""
    found = {}
    for name, net in sorted(module["netnames"].items()):
        if not net.get("hide_name"):
            for bit, number in enumerate(net["bits"]):
                found.setdefault(number, (name, bit))
    return found


def place(cells, read_by, named, cell, depth=3):
    """Name and bit of what a cell drives, or of what is driven by that."""
    outputs = [
        net
        for port, nets in cells[cell]["connections"].items()
        if cells[cell]["port_directions"][port] == "output"
        for net in nets
    ]
    found = [named[net] for net in outputs if net in named]
    if not found and depth > 0:
        found = [place(cells, read_by, named, user, depth - 1) for net in outputs for user, _, _ in read_by[net][:1]]
    return min(found, default=("", 0))


def main():
    most = int(sys.argv[1])
    netlist = json.load(open(sys.argv[2], encoding="utf-8"))
    copies = registers = 0
    for module in netlist["modules"].values():
        cells = module["cells"]
        read_by, leaving = readers(module)
        named = names(module)
        unused = 1 + max(
            (net for cell in cells.values() for nets in cell["connections"].values() for net in nets if isinstance(net, int)),
            default=1,
        )
        for name in [name for name, cell in cells.items() if cell["type"] == "TRELLIS_FF"]:
            net = cells[name]["connections"]["Q"][0]
            uses = read_by[net]
            if len(uses) <= most or net in leaving:
                continue
            uses.sort(key=lambda use: (*place(cells, read_by, named, use[0]), use))
            parts = -(-len(uses) // most)
            registers += 1
            for part in range(1, parts):
                copy = json.loads(json.dumps(cells[name]))
                copy["connections"]["Q"] = [unused]
                cells[f"{name}$copy{part}"] = copy
                for user, port, index in uses[part * len(uses) // parts : (part + 1) * len(uses) // parts]:
                    cells[user]["connections"][port][index] = unused
                unused += 1
                copies += 1
    json.dump(netlist, open(sys.argv[3], "w", encoding="utf-8"))
    print(f"{copies} copies of {registers} registers that more than {most} inputs read")


if __name__ == "__main__":
    main()
