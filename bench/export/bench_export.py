#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the export of flow records, side by side in one run: encoding, whole processes, live capture.

  bench_export.py CAPTURE [--repetitions 3] [--parts encode,process,live] [--turboflow PATH] [--lab PATH] [--runs DIRECTORY]

  encode   turboflow-lab bench export: records a second on one core, no socket
  process  a capture file to a collector on loopback: turboflow record, as fast as it goes and paced, and softflowd,
           each in turn; the collector counts the flow records, and missing ones are reported
  live     an interface (a veth pair in a network namespace; root): turboflow record -i and tcpdump -w /dev/null; and
           turboflow sending flow records to a collector there, with one reader and with two (the flow cache holds 20k flows,
           so that records are exported all the time); each in turn, at rising rates from one tcpreplay and several;
           drops are those that the kernel counts for each program

Standard output has one JSON object a row; DIRECTORY/DATE-MACHINE-export/ gets machine.md, command.txt, commit.txt,
raw.jsonl and summary.md. Exit codes: 0 fine; 1 paced flow records were lost; 2 could not run.
"""

import argparse
import datetime
import json
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/files"))
sys.dont_write_bytecode = True
from bench_files import CannotRun, flattened, found, machine, machine_label, packets_in, talk_of  # noqa: E402

RECEIVE_BUFFER_BYTES = 256 << 20
# Number of senders, packets per second of each (0: as fast as possible), and whether all processes share one processor.
# If they do, the listener, at niceness 19, gets a sixtieth of it or less, so it may lose packets that it would not lose
# on a processor of its own.
RATES = ((1, 100_000, False), (1, 200_000, False), (1, 0, False), (2, 0, False), (1, 0, True), (4, 0, True))
LIVE_PACKETS = 1_200_000
RING_MIB = 64
LISTENERS = ("turboflow", "tcpdump", "export_readers_1", "export_readers_2")
SEND = ("-w", "ipfix+udp://127.0.0.1:4739", "--max-flows", "20k", "--idle-timeout", "1s")
# Receives and discards, so that the sender gets no ICMP error for a closed port.
SINK = "import socket; s = socket.socket(type=socket.SOCK_DGRAM); s.bind(('127.0.0.1', 4739))\nwhile s.recv(65536): pass"
rows: list[dict] = []


def add(row: dict) -> None:
    rows.append(row)
    print(json.dumps(row), flush=True)


# --- the collector --------------------------------------------------------------------------------


class Collector:
    """Stores every datagram of IPFIX or NetFlow v9, and counts the flow records in them at the end."""

    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        forced = 33  # SO_RCVBUFFORCE
        try:
            self.socket.setsockopt(socket.SOL_SOCKET, forced, RECEIVE_BUFFER_BYTES)
        except PermissionError:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.datagrams: list[bytes] = []
        self.thread = threading.Thread(target=self.receive)
        self.thread.start()

    def receive(self) -> None:
        while datagram := self.socket.recv(65536):
            self.datagrams.append(datagram)

    def flow_records(self) -> int:
        self.socket.sendto(b"", ("127.0.0.1", self.port))
        self.thread.join()
        self.socket.close()
        lengths: dict[int, int] = {}
        return sum(self.records_in(datagram, lengths) for datagram in self.datagrams)

    @staticmethod
    def records_in(message: bytes, lengths: dict[int, int]) -> int:
        """The number of flow records. Options templates are not in `lengths`, so their data records do not count."""
        is_ipfix = message[1] == 10
        at, template_set, records = (16, 2, 0) if is_ipfix else (20, 0, 0)
        while at + 4 <= len(message):
            set_id, length = int.from_bytes(message[at : at + 2]), int.from_bytes(message[at + 2 : at + 4])
            body = message[at + 4 : at + length]
            if set_id == template_set:
                learn(body, lengths, is_ipfix)
            elif lengths.get(set_id):
                records += len(body) // lengths[set_id]
            at += max(length, 4)
        return records


def learn(body: bytes, lengths: dict[int, int], is_ipfix: bool) -> None:
    at = 0
    while at + 4 <= len(body):
        template, fields = int.from_bytes(body[at : at + 2]), int.from_bytes(body[at + 2 : at + 4])
        at, total = at + 4, 0
        for _ in range(fields):
            total += int.from_bytes(body[at + 2 : at + 4])
            at += 8 if is_ipfix and body[at] & 0x80 else 4
        if template >= 256:
            lengths[template] = total


# --- the parts ------------------------------------------------------------------------------------


def encode(lab: Path, repetitions: int) -> None:
    command = [str(lab), "bench", "export", "--items", "5M", "--repetitions", str(repetitions), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    for line in done.stdout.splitlines():
        add({"part": "encode"} | json.loads(line))


def whole(name: str, command: list[str], counted, packets: int, collector: Collector, round_number: int) -> None:
    """Measures a whole process, from before its start until after its end."""
    with tempfile.TemporaryFile("w+") as talk:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=talk, stderr=talk, stdin=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        talk.seek(0)
        said = talk.read()
    if process.returncode != 0:
        raise CannotRun(f"{' '.join(command)}: exit code {process.returncode}\n{said[-600:]}")
    sent, received = counted(said), collector.flow_records()
    row = {"part": "process", "tool": name, "round": round_number, "wall_s": round(wall_s, 4)}
    row |= {"user_s": round(usage.ru_utime, 3), "system_s": round(usage.ru_stime, 3), "packets": packets}
    add(row | {"records_sent": sent, "records_received": received, "packets_per_s": round(packets / wall_s)})


def process(program: Path, capture: Path, repetitions: int, paced: str) -> None:
    packets = packets_in(capture)
    with tempfile.TemporaryDirectory(prefix="bench-export-") as name:
        ledger = Path(name) / "ledger.json"

        def written(_said: str) -> int:
            return flattened(json.loads(ledger.read_text()))["records_written"]

        def of_softflowd(said: str) -> int:
            return found(r"^Flows exported: \d+ \((\d+) records", said, "softflowd")

        for round_number in range(1, repetitions + 1):
            for tool, rate in (("turboflow", None), ("turboflow_paced", paced)):
                collector = Collector()
                command = [str(program), "record", "-q", "-r", str(capture), "--ledger", str(ledger)]
                command += ["-w", f"ipfix+udp://127.0.0.1:{collector.port}"]
                command += ["--export-rate", rate] if rate else []
                whole(tool, command, written, packets, collector, round_number)
            if shutil.which("softflowd"):
                collector = Collector()
                command = ["softflowd", "-d", "-r", str(capture), "-n", f"127.0.0.1:{collector.port}", "-v", "10"]
                command += ["-m", "2000000", "-p", f"{name}/pid", "-c", "none"]
                whole("softflowd", command, of_softflowd, packets, collector, round_number)


def live(program: Path, repetitions: int) -> None:
    if os.geteuid() != 0 or not shutil.which("tcpreplay") or not shutil.which("tcpdump"):
        print("bench-export: live is left out: it needs root, tcpreplay and tcpdump", file=sys.stderr)
        return
    space = f"bench-export-{os.getpid()}"
    inside = ["ip", "netns", "exec", space]
    with tempfile.TemporaryDirectory(prefix="bench-export-") as name:
        traffic = Path(name) / "traffic.pcap"
        generate = ["generate", "-q", "-w", str(traffic), "--packets", "200k", "--traffic", "zipf"]
        subprocess.run([str(program), *generate], check=True)
        subprocess.run(["ip", "netns", "add", space], check=True)
        sink = None
        try:
            for command in (
                "link add va type veth peer name vb",
                "link set lo up",
                "link set va up",
                "link set vb up",
            ):
                subprocess.run([*inside, "ip", *command.split()], check=True)
            sink = subprocess.Popen([*inside, sys.executable, "-c", SINK])
            for round_number in range(1, repetitions + 1):
                for senders, rate, starved in RATES:
                    for tool in LISTENERS:
                        row = {"part": "live", "tool": tool, "round": round_number, "senders": senders}
                        row["starved"] = starved
                        add(row | at_rate(inside, program, Path(name), tool, senders, rate, starved))
        finally:
            if sink:
                sink.kill()
                sink.wait()
            subprocess.run(["ip", "netns", "delete", space], check=True)


def at_rate(
    inside: list[str], program: Path, work: Path, tool: str, senders: int, rate: int, starved: bool
) -> dict:
    ledger = work / "ledger.json"
    record = [str(program), "record", "-i", "vb", "--ring-size", f"{RING_MIB}MiB", "--ledger", str(ledger)]
    commands = {
        "turboflow": record,
        "export_readers_1": [*record, *SEND],
        "export_readers_2": [*record, *SEND, "--readers", "2"],
        "tcpdump": ["tcpdump", "-n", "-i", "vb", "-B", str(RING_MIB << 10), "-w", "/dev/null"],
    }
    speed = ["--pps", str(rate)] if rate else ["--topspeed"]
    if starved:
        inside = [*inside, "taskset", "-c", "0"]
    listen = [*inside, *(["nice", "-n", "19"] if starved else []), *commands[tool]]
    send = [*inside, "tcpreplay", "-q", "-i", "va", "--preload-pcap", "--loop", "0", "--limit", str(LIVE_PACKETS), *speed]
    with tempfile.TemporaryFile("w+") as talk:
        listener = subprocess.Popen(listen, stdout=talk, stderr=talk, stdin=subprocess.DEVNULL)
        time.sleep(1)
        start = time.perf_counter()
        replays = [
            subprocess.Popen([*send, str(work / "traffic.pcap")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for _ in range(senders)
        ]
        said = [replay.communicate()[0] for replay in replays]
        took_s = time.perf_counter() - start
        time.sleep(0.5)
        listener.send_signal(signal.SIGINT)
        _, _, usage = os.wait4(listener.pid, 0)
        talk.seek(0)
        heard = talk.read()
    sent = sum(found(r"Successful packets:\s+(\d+)", text, "tcpreplay") for text in said)
    if tool != "tcpdump":
        source = flattened(json.loads(ledger.read_text()))
        seen, dropped = source["source_seen"], source["source_dropped"]
    else:
        seen = found(r"^(\d+) packets received by filter", heard, "tcpdump")
        dropped = found(r"^(\d+) packets dropped by kernel", heard, "tcpdump")
    row = {"rate_asked": rate or "topspeed", "rate_offered": round(sent / took_s), "sent": sent, "seen": seen}
    if tool.startswith("export"):
        row |= {"records_sent": source["records_written"], "records_lost": source["records_dropped"]}
    return row | {"dropped": dropped, "processor_s": round(usage.ru_utime + usage.ru_stime, 2)}


# --- telling --------------------------------------------------------------------------------------


def of(part: str, **wanted) -> list[dict]:
    return [row for row in rows if row["part"] == part and all(row[key] == value for key, value in wanted.items())]


def summary() -> str:
    lines = []
    if encoded := of("encode"):
        lines += ["| encoded on one core | M records/s | ns a record | octets a record |", "|---|---|---|---|"]
        for row in encoded:
            rate, octets = row["items_per_s"] / 1e6, row["bytes_per_flow"]
            lines.append(f"| {row['design']} | {rate:.2f} | {row['ns_per_item']:.0f} | {octets:.1f} |")
        lines.append("")
    if of("process"):
        lines += ["| capture file to collector | wall s (median) | processor s | sent | received | softflowd takes |"]
        lines += ["|---|---|---|---|---|---|"]
        medians = {}
        for tool in dict.fromkeys(row["tool"] for row in of("process")):
            medians[tool] = statistics.median(row["wall_s"] for row in of("process", tool=tool))
        for tool, wall_s in medians.items():
            runs = of("process", tool=tool)
            processor = statistics.median(row["user_s"] + row["system_s"] for row in runs)
            sent, received = (sum(row[key] for row in runs) for key in ("records_sent", "records_received"))
            times = f"{medians['softflowd'] / wall_s:.1f} times as long" if "softflowd" in medians else ""
            lines.append(f"| {tool} | {wall_s:.3f} | {processor:.2f} | {sent} | {received} | {times} |")
        lines.append("")
    if of("live"):
        tools = ", ".join(LISTENERS)
        lines += [f"| senders, packets/s asked | offered: {tools} | dropped: {tools} | processor s |"]
        lines += ["|---|---|---|---|"]
        settings = dict.fromkeys((row["senders"], row["rate_asked"], row["starved"]) for row in of("live"))
        for senders, rate, starved in settings:
            setting = {"senders": senders, "rate_asked": rate, "starved": starved}
            at = [of("live", **setting, tool=tool) for tool in LISTENERS]
            offered = [str(round(statistics.median(row["rate_offered"] for row in runs))) for runs in at]
            drops = [" ".join(str(row["dropped"]) for row in runs) for runs in at]
            spent = [f"{statistics.median(row['processor_s'] for row in runs):.2f}" for runs in at]
            cells = [", ".join(cell) for cell in (offered, drops, spent)]
            where = ", one processor for all, listener nice 19" if starved else ""
            lines.append(f"| {senders} x {rate}{where} | {' | '.join(cells)} |")
    return "\n".join(lines).strip() + "\n"


def write_results(directory: Path, args: argparse.Namespace, load_before: tuple) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    facts = machine() | {
        "softflowd": talk_of("dpkg-query", "-W", "-f", "${Version}", "softflowd").strip() or "not here",
        "load average before": " ".join(f"{value:.2f}" for value in load_before),
        "load average after": " ".join(f"{value:.2f}" for value in os.getloadavg()),
        "capture": f"{args.capture.name}, {args.capture.stat().st_size} bytes, in the page cache",
    }
    if args.note:
        facts["note"] = args.note
    (directory / "machine.md").write_text("".join(f"- {name}: {value}\n" for name, value in facts.items()))
    shown = [word.replace(f"{ROOT}/", "") for word in sys.argv[2:]]
    (directory / "command.txt").write_text(f"bench/export/run.sh {args.capture.name} {' '.join(shown)}".strip() + "\n")
    changed = bool(talk_of("git", "-C", str(ROOT), "status", "--porcelain", "--untracked-files=no").strip())
    commit = talk_of("git", "-C", str(ROOT), "rev-parse", "HEAD").strip()
    (directory / "commit.txt").write_text(commit + (" (with uncommitted changes)" if changed else "") + "\n")
    (directory / "raw.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (directory / "summary.md").write_text(summary())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("capture", type=Path, help="classic pcap file, IP packets only")
    parser.add_argument("--repetitions", type=int, default=3, help="rounds (default 3)")
    parser.add_argument("--parts", default="encode,process,live", help="parts, separated by commas (default: all)")
    parser.add_argument("--paced", default="500k", metavar="RATE", help="--export-rate in the paced runs")
    parser.add_argument("--turboflow", type=Path, default=ROOT / "target/release/turboflow", metavar="PATH")
    parser.add_argument("--lab", type=Path, default=ROOT / "target/release/turboflow-lab", metavar="PATH")
    parser.add_argument("--runs", type=Path, default=ROOT / "bench/runs", help="where the result folder goes")
    parser.add_argument("--label", default=machine_label(), help="the machine in the folder's name")
    parser.add_argument("--note", help="a note about this run, such as that the machine was busy")
    args = parser.parse_args()
    load_before, parts = os.getloadavg(), args.parts.split(",")
    try:
        needed = [args.capture, args.turboflow] + [args.lab] * ("encode" in parts)
        for path in needed:
            if not path.is_file():
                raise CannotRun(f"{path}: no such file (make bench-export builds and generates)")
        if "encode" in parts:
            encode(args.lab.resolve(), args.repetitions)
        if "process" in parts:
            process(args.turboflow.resolve(), args.capture.resolve(), args.repetitions, args.paced)
        if "live" in parts:
            live(args.turboflow.resolve(), args.repetitions)
    except CannotRun as error:
        print(f"bench-export: {error}", file=sys.stderr)
        return 2
    directory = args.runs / f"{datetime.date.today()}-{args.label}-export"
    write_results(directory, args, load_before)
    print(f"results: {directory}", file=sys.stderr)
    lost = [row for row in of("process", tool="turboflow_paced") if row["records_sent"] != row["records_received"]]
    for row in lost:
        print(f"bench-export: of {row['records_sent']} records {row['records_received']} arrived", file=sys.stderr)
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
