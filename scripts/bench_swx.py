#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The cost of the P4 program on DPDK's software pipeline: packets a second, and the time of each primitive.

As in table 4 of TurboFlow's paper, copies of one instruction are added to the program, and its rate is compared with
that of the unchanged program. Every round runs all variants, so that a slow moment of the machine affects all.

  bench_swx.py TURBOFLOW CAPTURE [--rounds 5] [--copies 100]
"""

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SPEC = Path(__file__).resolve().parent.parent / "engines/p4/compiled/pna/default.spec"
# The copies are inserted before this instruction, the first after the lane, because the fields that
# they overwrite are not used before it.
PLACE = "\tvalidate h.key\n"
PRIMITIVES = {
    "branch: jmpeq": "\tjmpeq BENCH_END h.lane.kind 0x77\n",
    "read a register: regrd": "\tregrd m.local_metadata_l2_length direction 0x5\n",
    "write a register: regwr": "\tregwr direction 0x5 m.local_metadata_l2_length\n",
    "modify a field: mov": "\tmov m.local_metadata_l2_length 0xE\n",
    "hash five words: hash crc32": None,  # the program's own
}


def variant(spec: str, instruction: str, copies: int) -> str:
    assert spec.count(PLACE) == 1
    end = "\tBENCH_END :" + PLACE
    return spec.replace(PLACE, instruction * copies + (end if "BENCH_END" in instruction else PLACE))


def seconds(command: list[str]) -> float:
    start = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.monotonic() - start


def packets(turboflow: str, capture: str) -> int:
    said = subprocess.run(
        [turboflow, "record", "-r", capture, "-w", "/dev/null", "--format", "csv"],
        check=True,
        capture_output=True,
        text=True,
    ).stderr
    return int(re.search(r"([\d,]+) packets", said)[1].replace(",", ""))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("turboflow")
    parser.add_argument("capture")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--copies", type=int, default=100)
    args = parser.parse_args()
    spec = SPEC.read_text()
    hash_line = re.search(r"\thash crc32 .*\n", spec)[0]
    programs = {"the program": spec}
    for name, instruction in PRIMITIVES.items():
        programs[name] = variant(spec, instruction or hash_line, args.copies)

    # Excludes the time to start the pipeline and its tables.
    record = [args.turboflow, "record", "--quiet", "--format", "csv", "-w", "/dev/null", "-r", args.capture]
    on_swx = [*record, "--engine", "p4", "--p4-pipeline", "swx"]
    took: dict[str, list[float]] = {name: [] for name in programs}
    starts, software = [], []
    with tempfile.TemporaryDirectory() as scratch:
        paths = {}
        for at, (name, text) in enumerate(programs.items()):
            paths[name] = Path(scratch) / f"{at}.spec"
            paths[name].write_text(text)
        for _ in range(args.rounds):
            starts.append(seconds([*on_swx, "-c", "1"]))
            software.append(seconds(record))
            for name, path in paths.items():
                took[name].append(seconds([*on_swx, "--p4-program", str(path)]))

    count = packets(args.turboflow, args.capture)
    start = statistics.median(starts)
    base = statistics.median(took["the program"]) - start
    print(f"{count} packets, median of {args.rounds} rounds; {start:.2f} s to start are taken off")
    print(f"software engine  {count / statistics.median(software) / 1e6:7.2f} M packets/s")
    print(f"SWX              {count / base / 1e6:7.2f} M packets/s, {base / count * 1e9:.0f} ns each")
    for name in PRIMITIVES:
        each = (statistics.median(took[name]) - start - base) / args.copies
        print(f"{name:30} {each / count * 1e9:6.1f} ns {-100 * each / (base + each):6.1f} % packets/s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
