#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times flow meters on capture files, as whole processes, side by side in one run.

  bench_files.py CAPTURE... [--repetitions 5] [--turboflow PATH] [--require-ratio 10] [--runs DIRECTORY]

Every round runs each tool once, in turn, so that a busy minute of the machine affects all of them. The
packets that a tool counted are compared with those in the file: a run that lost packets has no result.
Standard output has the table; DIRECTORY/DATE-MACHINE-files/ gets machine.md, command.txt, commit.txt,
raw.csv and summary.md. Exit codes: 0 fine; 1 a tool lost packets or the ratio was missed; 2 could not run.

What each tool does in the measured time:
  turboflow  reads, meters, writes Parquet                          default options
  biflows    as turboflow, with --biflow                            not compared with the others, which make uniflows
  dd         only reads the file                                    blocks of 256 KiB: the limit for any reader
  nfpcapd    reads, meters, writes its nfcapd file, uncompressed    -e 3600,1800: no active timeout cuts (1.7.1
                                                                    counts nothing above 3600)
  softflowd  reads, meters, sends NetFlow v9 to a socket on         -m 8000000: its default of 8,192 flows would
             loopback that is not read                              expire most of them at once
  argus      reads, meters, writes its own file                     -S 3600: no intermediate status records
"""

import argparse
import csv
import datetime
import json
import mmap
import multiprocessing
import os
import platform
import re
import shutil
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 1800
PCAP_MAGICS = {0xA1B2C3D4: "<", 0xA1B23C4D: "<", 0xD4C3B2A1: ">", 0x4D3CB2A1: ">"}
COLUMNS = (
    "capture tool version round wall_s user_s system_s max_resident_bytes packets_in_file packets_counted records "
    "output_bytes packets_per_s"
).split()


class CannotRun(Exception):
    """The benchmark cannot run here. The program prints why and exits with 2."""


@dataclass
class Tool:
    """A flow meter: how to start it, how to find out what it counted, and what it wrote."""

    name: str
    version: str
    command: Callable[[Path], list[str]]
    counted: Callable[[Path, str], tuple[int, int]]  # work directory, its messages -> packets, records
    output: str  # name under the work directory; empty if it writes nothing
    is_rival: bool = True  # whether turboflow is compared with it
    rows: list[dict] = field(default_factory=list)


# --- the tools ------------------------------------------------------------------------------------


def talk_of(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def found(pattern: str, text: str, what: str) -> int:
    match = re.search(pattern, text, re.MULTILINE)
    if not match:
        raise CannotRun(f"{what}: no count in its output:\n{text[-600:]}")
    return int(match[1])


def debian_version(package: str) -> str:
    return talk_of("dpkg-query", "-W", "-f", "${Version}", package).strip() or "unknown"


def turboflow(program: Path, capture: Path, *options: str) -> Tool:
    def counted(work: Path, _talk: str) -> tuple[int, int]:
        ledger = flattened(json.loads((work / "ledger.json").read_text()))
        return ledger["packets_recorded"], ledger["records_written"]

    def command(work: Path) -> list[str]:
        outputs = ["-w", str(work / "out.parquet"), "--ledger", str(work / "ledger.json")]
        return [str(program), "record", "-r", str(capture), *outputs, *options, "--quiet"]

    name = "biflows" if options else "turboflow"
    version = talk_of(str(program), "-V").split()[-1]
    return Tool(name, version, command, counted, "out.parquet", is_rival=False)


def reading(capture: Path, packets: int) -> Tool:
    def command(_work: Path) -> list[str]:
        return ["dd", f"if={capture}", "of=/dev/null", "bs=256K"]

    return Tool("dd", debian_version("coreutils"), command, lambda _work, _talk: (packets, 0), "", is_rival=False)


def flattened(tree: dict) -> dict:
    """All leaves of a nested object, by name without the path."""
    leaves = {}
    for name, value in tree.items():
        leaves |= flattened(value) if isinstance(value, dict) else {name: value}
    return leaves


def nfpcapd(capture: Path) -> Tool:
    def command(work: Path) -> list[str]:
        (work / "flows").mkdir()
        return ["nfpcapd", "-r", str(capture), "-w", str(work / "flows"), "-e", "3600,1800"]

    def counted(work: Path, _talk: str) -> tuple[int, int]:
        totals = talk_of("nfdump", "-I", "-R", str(work / "flows"))
        return found(r"^Packets: (\d+)", totals, "nfdump"), found(r"^Flows: (\d+)", totals, "nfdump")

    return Tool("nfpcapd", debian_version("nfdump"), command, counted, "flows")


def softflowd(capture: Path, collector_port: int) -> Tool:
    def command(work: Path) -> list[str]:
        # Has no control socket: at the end of a file, softflowd 1.1.0 may wait for ever for a client of it.
        files = ["-p", str(work / "pid"), "-c", "none"]
        send = ["-n", f"127.0.0.1:{collector_port}", "-v", "9"]
        return ["softflowd", "-d", "-r", str(capture), *send, "-m", "8000000", *files]

    def counted(_work: Path, talk: str) -> tuple[int, int]:
        ignored = found(r"^Ignored packets: (\d+)", talk, "softflowd")
        records = found(r"^Flows exported: \d+ \((\d+) records", talk, "softflowd")
        return found(r"^Packets processed: (\d+)", talk, "softflowd") - ignored, records

    return Tool("softflowd", debian_version("softflowd"), command, counted, "")


def argus(capture: Path) -> Tool:
    def command(work: Path) -> list[str]:
        return ["argus", "-S", "3600", "-r", str(capture), "-w", str(work / "out.argus")]

    def counted(work: Path, _talk: str) -> tuple[int, int]:
        totals = talk_of("racount", "-r", str(work / "out.argus"))
        return found(r"^\s+sum\s+\d+\s+(\d+)", totals, "racount"), found(r"^\s+sum\s+(\d+)", totals, "racount")

    return Tool("argus", debian_version("argus-server"), command, counted, "out.argus")


def present_tools(program: Path, capture: Path, packets: int, collector_port: int) -> list[Tool]:
    tools = [turboflow(program, capture), turboflow(program, capture, "--biflow"), reading(capture, packets)]
    if shutil.which("nfpcapd") and shutil.which("nfdump"):
        tools.append(nfpcapd(capture))
    if shutil.which("softflowd"):
        tools.append(softflowd(capture, collector_port))
    if shutil.which("argus") and shutil.which("racount"):
        tools.append(argus(capture))
    return tools


# --- measuring ------------------------------------------------------------------------------------


def packets_in(capture: Path) -> int:
    """Counts the packets of a classic pcap file. Reading all of it also brings the file into the page cache."""
    with open(capture, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as octets:
        order = PCAP_MAGICS.get(struct.unpack_from("<I", octets)[0])
        if order is None:
            raise CannotRun(f"{capture}: not a classic pcap file, which is what all of these tools read")
        captured_length = struct.Struct(order + "8xI4x")
        at, count, end = 24, 0, len(octets)
        while at + 16 <= end:
            at += 16 + captured_length.unpack_from(octets, at)[0]
            count += 1
        return count


def run_once(tool: Tool, capture: str, round_number: int, packets: int) -> None:
    """Measures a whole process, from before its start until after its end."""
    with tempfile.TemporaryDirectory(prefix="bench-files-") as name:
        work = Path(name)
        command = tool.command(work)
        with open(work / "talk", "w+", encoding="utf-8") as talk:
            start = time.perf_counter()
            process = subprocess.Popen(command, stdout=talk, stderr=talk, stdin=subprocess.DEVNULL)
            watchdog = threading.Timer(LIMIT_S, process.kill)
            watchdog.start()
            _, status, usage = os.wait4(process.pid, 0)
            wall_s = time.perf_counter() - start
            watchdog.cancel()
            process.returncode = os.waitstatus_to_exitcode(status)
            talk.seek(0)
            said = talk.read()
        if process.returncode != 0:
            raise CannotRun(f"{' '.join(command)}: exit code {process.returncode}\n{said[-600:]}")
        counted, records = tool.counted(work, said)
        row = (capture, tool.name, tool.version, round_number, f"{wall_s:.4f}", f"{usage.ru_utime:.4f}", f"{usage.ru_stime:.4f}")
        row += (usage.ru_maxrss * 1024, packets, counted, records, size_of(work, tool.output))
        tool.rows.append(dict(zip(COLUMNS, (*row, round(packets / wall_s)), strict=True)))
        print(f"  {capture}, round {round_number}: {tool.name:<10} {wall_s:8.3f} s, {counted} packets", file=sys.stderr)


def size_of(work: Path, output: str) -> int:
    if not output:
        return 0
    path = work / output
    return sum(file.stat().st_size for file in ([path] if path.is_file() else path.rglob("*")) if file.is_file())


# --- telling --------------------------------------------------------------------------------------


def column(tool: Tool, name: str) -> list[float]:
    return [float(row[name]) for row in tool.rows]


def processor_s(tool: Tool) -> float:
    return statistics.median(map(sum, zip(column(tool, "user_s"), column(tool, "system_s"), strict=True)))


def rival(tools: list[Tool]) -> Tool | None:
    """The fastest of the other flow meters, by median wall time."""
    rivals = [tool for tool in tools if tool.is_rival]
    return min(rivals, key=lambda tool: statistics.median(column(tool, "wall_s")), default=None)


def ratio(tools: list[Tool], other: Tool) -> float:
    return statistics.median(column(other, "wall_s")) / statistics.median(column(tools[0], "wall_s"))


def summary(tools: list[Tool]) -> str:
    lines = [
        "| tool | wall s: min | median | max | Mpackets/s (median) | processor s (median) | peak memory MB | records |"
        " packets counted | turboflow is faster by |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for tool in tools:
        wall = column(tool, "wall_s")
        rate = float(tool.rows[0]["packets_in_file"]) / statistics.median(wall) / 1e6
        counted = "all" if not losses([tool]) else "NOT ALL"
        faster = "" if tool is tools[0] else f"{ratio(tools, tool):.2f}x"
        lines.append(
            f"| {tool.name} {tool.version} | {min(wall):.3f} | {statistics.median(wall):.3f} | {max(wall):.3f} | {rate:.2f} "
            f"| {processor_s(tool):.3f} | {max(column(tool, 'max_resident_bytes')) / 1e6:.0f} "
            f"| {tool.rows[0]['records']} | {counted} | {faster} |"
        )
    return "\n".join(lines) + "\n"


def losses(tools: list[Tool]) -> list[str]:
    return [
        f"{row['capture']}: {row['tool']}, round {row['round']}: counted {row['packets_counted']} of {row['packets_in_file']} packets"
        for tool in tools
        for row in tool.rows
        if row["packets_counted"] != row["packets_in_file"]
    ]


def first_line(path: str, pattern: str) -> str:
    try:
        match = re.search(pattern, Path(path).read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        match = None
    return match[1].strip() if match else "unknown"


def last_level_cache() -> str:
    """Reads sysfs, because on some processors /proc/cpuinfo has the size of another cache."""
    caches = sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"))
    return caches[-1].read_text(encoding="utf-8").strip() if caches else "unknown"


def machine() -> dict[str, str]:
    memory_kb = first_line("/proc/meminfo", r"^MemTotal:\s+(\d+)")
    return {
        "processor": first_line("/proc/cpuinfo", r"^model name\s*:\s*(.*)") or platform.machine(),
        "family, model, stepping": ", ".join(
            first_line("/proc/cpuinfo", rf"^{name}\s*:\s*(\d+)$") for name in ("cpu family", "model", "stepping")
        ),
        "logical processors": str(os.cpu_count()),
        "last-level cache": last_level_cache(),
        "memory": f"{int(memory_kb) / 1024**2:.1f} GiB" if memory_kb.isdigit() else memory_kb,
        "system": first_line("/etc/os-release", r'^PRETTY_NAME="(.*)"'),
        "kernel": platform.release().split("-")[0],
        "python": platform.python_version(),
    }


def machine_label() -> str:
    """A name of the machine's processor model for paths, without the host name."""
    words = re.sub(r"\((R|TM)\)|\bCPU\b|@.*", "", machine()["processor"])
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-") or "unknown"


@dataclass
class Benched:
    """A capture, and the tools that have read it with their results."""

    capture: Path
    tools: list[Tool]

    @property
    def packets(self) -> int:
        return self.tools[0].rows[0]["packets_in_file"]


def write_results(directory: Path, benched: list[Benched], load_before: tuple) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    facts = machine() | {
        "load average before": " ".join(f"{value:.2f}" for value in load_before),
        "load average after": " ".join(f"{value:.2f}" for value in os.getloadavg()),
    }
    for each in benched:
        size = each.capture.stat().st_size
        facts[each.capture.name] = f"{each.packets} packets, {size} bytes, in the page cache"
    (directory / "machine.md").write_text("".join(f"- {name}: {value}\n" for name, value in facts.items()))
    names = " ".join(each.capture.name for each in benched)
    options = " ".join(word for word in sys.argv[1:] if not word.endswith(".pcap"))
    commands = [f"bench/files/run.sh {names} {options}".strip()]
    for each in benched:
        commands += commands_of(each)
    (directory / "command.txt").write_text("\n".join(commands) + "\n")
    changed = bool(talk_of("git", "-C", str(ROOT), "status", "--porcelain", "--untracked-files=no").strip())
    commit = talk_of("git", "-C", str(ROOT), "rev-parse", "HEAD").strip()
    (directory / "commit.txt").write_text(commit + (" (with uncommitted changes)" if changed else "") + "\n")
    with open(directory / "raw.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(row for each in benched for tool in each.tools for row in tool.rows)
    (directory / "summary.md").write_text(report(benched))


def commands_of(benched: Benched) -> list[str]:
    commands = []
    with tempfile.TemporaryDirectory() as name:
        for tool in benched.tools:
            command = " ".join(tool.command(Path(name))).replace(name, "WORK")
            commands.append(command.replace(str(benched.capture), benched.capture.name).replace(f"{ROOT}/", ""))
            shutil.rmtree(Path(name) / "flows", ignore_errors=True)
    return commands


def report(benched: list[Benched]) -> str:
    heads = (f"{each.capture.name}, {each.packets:,} packets:\n\n" for each in benched)
    return "\n".join(head + summary(each.tools) for head, each in zip(heads, benched, strict=True))


# --- the program ----------------------------------------------------------------------------------


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("captures", type=Path, nargs="+", metavar="CAPTURE", help="classic pcap file, IP packets only")
    parser.add_argument("--repetitions", type=int, default=5, help="rounds (default 5)")
    parser.add_argument("--skip", action="append", default=[], metavar="CAPTURE:TOOL", help="leave a tool out, such as scan-5m:argus")
    parser.add_argument("--turboflow", type=Path, default=ROOT / "target/release/turboflow", metavar="PATH")
    parser.add_argument("--require-ratio", type=float, metavar="X",
                        help="exit with 1 if turboflow is less than X times as fast as the fastest other tool")
    parser.add_argument("--runs", type=Path, default=ROOT / "bench/runs", help="where the result folder goes")
    parser.add_argument("--label", default=machine_label(), help="the machine in the folder's name (default: its processor)")
    return parser.parse_args()


def bench_one(args: argparse.Namespace, capture: Path) -> Benched:
    # Counts in another process, because counting maps the file into memory: the measured peak memory of a tool is at
    # least that of this process, its parent.
    with multiprocessing.get_context("spawn").Pool(1) as counter:
        packets = counter.apply(packets_in, (capture,))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as collector:  # bound, but never read, so it costs no time
        collector.bind(("127.0.0.1", 0))
        tools = present_tools(args.turboflow.resolve(), capture, packets, collector.getsockname()[1])
        tools = [tool for tool in tools if f"{capture.stem}:{tool.name}" not in args.skip]
        for round_number in range(1, args.repetitions + 1):
            for tool in tools:
                run_once(tool, capture.stem, round_number, packets)
    return Benched(capture, tools)


def bench(args: argparse.Namespace) -> int:
    for path in (*args.captures, args.turboflow):
        if not path.is_file():
            raise CannotRun(f"{path}: no such file (cargo build --release makes turboflow, turboflow generate a capture)")
    load_before = os.getloadavg()
    benched = [bench_one(args, capture.resolve()) for capture in args.captures]
    directory = args.runs / f"{datetime.date.today()}-{args.label}-files"
    write_results(directory, benched, load_before)
    print(report(benched))
    print(f"results: {directory}", file=sys.stderr)
    complaints = [loss for each in benched for loss in losses(each.tools)]
    for each in benched:
        fastest = rival(each.tools)
        if args.require_ratio and fastest and ratio(each.tools, fastest) < args.require_ratio:
            found = f"{ratio(each.tools, fastest):.1f}x of {fastest.name}, {args.require_ratio:g}x wanted"
            complaints.append(f"{each.capture.name}: {found}")
    for complaint in complaints:
        print(f"bench-files: {complaint}", file=sys.stderr)
    return 1 if complaints else 0


def main() -> int:
    try:
        return bench(parse_arguments())
    except CannotRun as error:
        print(f"bench-files: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
