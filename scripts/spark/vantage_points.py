#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A small network for scripts/try-spark.sh: what six vantage points see of the same packets, and the true flows.

    vantage_points.py make FOLDER            writes the captures and truth.json
    vantage_points.py check FOLDER TABLE     compares the Iceberg table in the folder TABLE with truth.json (pyiceberg)

Packets pass an edge, a spine and an exit; each lowers the TTL by one. In a tenth of the flows, a spine is chosen at
random for each packet. One packet in a hundred is lost on each link. Flows last for up to four minutes, longer than
the active timeout, with pauses below the idle timeout.
"""

import collections
import json
import random
import struct
import sys
from pathlib import Path

FLOWS, LENGTH_S, LOSS, HOP_NS = 4_000, 240, 100, 20_000
START_NS = 1_767_225_600_000_000_000


def frame(flow: int, length: int, ttl: int) -> bytes:
    source, port = struct.pack(">BBH", 10, 1, flow // 4), 1024 + flow
    packet = struct.pack(">BBHHHBBH", 0x45, 0, length, 0, 0, ttl, 17, 0) + source + bytes((10, 2, 0, flow % 251))
    return b"\2\0\0\0\0\1\2\0\0\0\0\2\x08\0" + packet + struct.pack(">HHHH", port, 443, length - 20, 0)


def times(draw: random.Random) -> list[int]:
    """The times of a flow's packets, in ns from the start. Pauses are shorter than the idle timeout."""
    now, last = draw.randrange(LENGTH_S * 10**9 // 2), LENGTH_S * 10**9
    found = []
    while now < last and len(found) < 40:
        found.append(now)
        now += draw.randrange(1, 20 * 10**9)
    return found


def make(folder: Path) -> None:
    draw = random.Random(7)
    seen = collections.defaultdict(list)
    truth, packets = {}, collections.Counter()
    for flow in range(FLOWS):
        sums, hops = [0, 0], [0, 0, 0]
        is_sprayed = flow % 10 == 0
        for at in times(draw):
            length = draw.randrange(60, 1400)
            sums = [sums[0] + 1, sums[1] + length]
            spine = draw.randrange(2) if is_sprayed else flow // 7 % 2
            for hop, name in enumerate((f"edge{flow % 2}", f"spine{spine}", f"exit{flow // 3 % 2}")):
                if hop and draw.randrange(LOSS) == 0:
                    break
                hops[hop] += 1
                packets[name] += 1
                seen[name].append((START_NS + at + hop * HOP_NS, frame(flow, length, 64 - hop), length + 14))
        key = f"10.1.{flow // 4 >> 8}.{flow // 4 & 255} 10.2.0.{flow % 251} {1024 + flow}"
        # If no packet of a flow reached a hop, the path ends before it.
        truth[key] = [*sums, sums[0] - min(count for count in hops if count)]
    # A much later packet, so that all flows end.
    seen["clock"].append((START_NS + 3600 * 10**9, frame(60_000, 60, 64), 74))
    for name, frames in seen.items():
        with (folder / f"{name}.pcap").open("wb") as file:
            file.write(struct.pack("<IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 96, 1))
            for at, data, length in sorted(frames):
                file.write(struct.pack("<IIII", at // 10**9, at % 10**9, len(data), length) + data)
    (folder / "truth.json").write_text(json.dumps(truth))
    print(f"{FLOWS} flows, {sum(sums[0] for sums in truth.values())} packets, {sum(packets.values())} sightings")


def check(folder: Path, table: Path) -> None:
    from pyiceberg.table import StaticTable

    newest = max((table / "metadata").glob("v*.metadata.json"), key=lambda file: int(file.name[1:].split(".")[0]))
    rows = StaticTable.from_metadata(str(newest)).scan().to_arrow().to_pylist()
    truth, found = json.loads((folder / "truth.json").read_text()), collections.defaultdict(lambda: [0, 0, 0])
    for row in rows:
        key = f"{row['src_addr']} {row['dst_addr']} {row['src_port']}"
        for at, name in enumerate(("packets", "bytes", "lost")):
            found[key][at] += row[name]
    differ = [key for key in truth.keys() | found.keys() if truth.get(key) != found.get(key)]
    sums = [sum(row[name] for row in rows) for name in ("packets", "bytes", "lost", "records")]
    print(f"{len(rows)} flows of the network, {sums[0]} packets, {sums[1]} bytes, {sums[2]} lost, "
          f"of {sums[3]} records: {len(differ)} keys differ")
    for key in differ[:5]:
        print(key, truth.get(key), found.get(key))
    sys.exit(1 if differ or len(rows) != len(truth) else 0)


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(Path(sys.argv[2]))
    else:
        check(Path(sys.argv[2]), Path(sys.argv[3]))
