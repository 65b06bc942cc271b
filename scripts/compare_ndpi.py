#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the applications that `turboflow record --dpi` finds with those of nDPI 5.0, as a second oracle.

nDPI 5.0 is part of the package `nfstream` on PyPI, which has its own meter. It is not run in CI.

  python3 -m venv venv && venv/bin/pip install nfstream==6.6.0
  venv/bin/python scripts/compare_ndpi.py TURBOFLOW FOLDER_OF_CAPTURES
"""

import argparse
import csv
import io
import subprocess
import sys
from collections import Counter
from pathlib import Path

try:
    import nfstream
except ImportError:
    sys.exit("compare_ndpi: the Python package nfstream is missing: pip install nfstream==6.6.0")

# Timeouts that end no flow before its capture ends.
FOREVER_S = 10**9
# Packets of a TCP flow that `--dpi` inspects.
PACKETS = 32


def key(a: tuple[str, int], b: tuple[str, int], protocol: int) -> tuple:
    return (*sorted((a, b)), protocol)


def ours(turboflow: str, capture: Path) -> dict[tuple, tuple[str, int]]:
    """The application and the number of packets of each flow, both directions together."""
    timeouts = [part for name in ("idle-timeout", "active-timeout", "linger") for part in (f"--{name}", "none")]
    command = [turboflow, "record", "-q", "-r", str(capture), "--dpi", "--biflow", *timeouts, "-w", "-"]
    text = subprocess.run([*command, "--format", "csv"], check=True, capture_output=True, text=True).stdout
    flows = {}
    for row in csv.DictReader(io.StringIO(text)):
        ends = [(row[f"{end}_addr"], int(row[f"{end}_port"])) for end in ("src", "dst")]
        flow = key(*ends, int(row["protocol"]))
        packets = int(row["packets"]) + int(row["reverse_packets"] or 0)
        flows[flow] = (row["application"], packets + flows.get(flow, ("", 0))[1])
    return flows


def theirs(capture: Path) -> dict[tuple, tuple[str, int]]:
    flows = {}
    timeouts = {"idle_timeout": FOREVER_S, "active_timeout": FOREVER_S}
    for row in nfstream.NFStreamer(source=str(capture), n_dissections=PACKETS, n_meters=1, **timeouts):
        flow = key((row.src_ip, row.src_port), (row.dst_ip, row.dst_port), row.protocol)
        name = row.application_name
        flows[flow] = (name, row.bidirectional_packets + flows.get(flow, ("", 0))[1])
    return flows


def table(title: str, heads: list[str], rows: list[tuple]) -> None:
    print(f"\n{title}\n")
    for row in [heads, *rows]:
        print("  ".join(f"{str(cell):<32}" if index < len(row) - 2 else f"{cell!s:>9}" for index, cell in enumerate(row)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("turboflow")
    parser.add_argument("captures", type=Path)
    args = parser.parse_args()
    captures = sorted(path for path in args.captures.rglob("*") if path.suffix in (".pcap", ".pcapng"))
    if not captures:
        sys.exit(f"compare_ndpi: {args.captures} has no captures")
    pairs, pair_packets, alone = Counter(), Counter(), Counter()
    unlike = 0
    for capture in captures:
        mine, other = ours(args.turboflow, capture), theirs(capture)
        alone.update({"ours": len(mine.keys() - other.keys()), "nDPI 5.0": len(other.keys() - mine.keys())})
        for flow in mine.keys() & other.keys():
            pair = (mine[flow][0], other[flow][0])
            pairs[pair] += 1
            pair_packets[pair] += mine[flow][1]
            unlike += mine[flow][1] != other[flow][1]
    total = pairs.total()
    same = sum(flows for (mine, other), flows in pairs.items() if mine == other)
    print(f"{len(captures)} captures; {total} flows of both; {same} have one name, {total - same} another")
    print(f"flows that only one has: ours {alone['ours']}, nfstream with nDPI 5.0 {alone['nDPI 5.0']}")
    print(f"flows of both with another number of packets: {unlike}")
    protocols = Counter(), Counter()
    for (mine, other), flows in pairs.items():
        protocols[0][mine] += flows
        protocols[1][other] += flows
    names = sorted(set(protocols[0]) | set(protocols[1]))
    rows = [(name, protocols[0][name], protocols[1][name]) for name in names]
    equal = [name for name, mine, other in rows if mine == other]
    table("Flows by name, where they differ", ["name", "ours", "nDPI 5.0"], [row for row in rows if row[1] != row[2]])
    print(f"\nThe same number of flows: {', '.join(equal)}")
    differing = [(*pair, flows, pair_packets[pair]) for pair, flows in pairs.most_common() if pair[0] != pair[1]]
    table("Flows that have another name", ["ours", "nDPI 5.0", "flows", "packets"], differing)


if __name__ == "__main__":
    main()
