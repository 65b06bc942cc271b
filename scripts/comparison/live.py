# SPDX-License-Identifier: Apache-2.0
"""Interfaces: both engines at one end of a veth pair, while a capture is replayed into the other.

Times differ from run to run, and so do evictions of microflow records by age. Timeouts are off, so that
a flow is one record at any pace. Records are compared without their times, in any order. Ledger and
metrics are read when all packets have arrived, and compared without the time-dependent counters named
below.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from comparison.collectors import enter_namespace
from comparison.definitions import FIVE_TUPLE, FREE, TAGGED, Definition, Feature
from comparison.differences import Intended, Report
from comparison.matrix import NO_TIMEOUTS, SEED
from comparison.programs import Artifacts, Case, environment, exit_code

NEAR, FAR = "va", "vb"
METRICS_PORT = 9414
PATIENCE_S = 60
# Metrics and ledger keys whose values depend on the arrival times of packets.
TIMED = ("microflows_evicted", "microflows_merged", "microflows_resident")
TIMED_METRIC = re.compile(rf"^(turboflow_(?:{'|'.join(TIMED)})\S*) \d+$", re.MULTILINE)
# Columns of live records that depend on time.
TIMED_COLUMNS = re.compile(r"(_ns$|gap|duration|rate|timestamp)")

# Without gaps, because their number of digits changes the size of the outputs.
BY_SIZE = Definition("live-by-size", FIVE_TUPLE, (
    *FREE, Feature("list", "payload_length", k=20), Feature("variance", "frame_length"), Feature("histogram", "ip_length"),
    Feature("last", "tcp_sequence"), Feature("bit_or", "tcp_options"),
))  # fmt: skip
BY_TAG = Definition("live-by-tag", TAGGED, (
    Feature("count"), Feature("max", "tcp_acknowledgement"), Feature("mean", "payload_length"),
))  # fmt: skip


@dataclass(frozen=True)
class Scenario:
    """The options with which the program listens."""

    name: str
    # Options that only interfaces have.
    listening: tuple[str, ...] = ()
    # Options that files have, too.
    options: tuple[str, ...] = ()
    definition: Definition | None = None
    is_quick: bool = False
    is_service: bool = False

    def is_ordered(self) -> bool:
        """Whether the length of IPFIX is reproducible. With lists, or with records of several threads, it
        depends on the order of records, which depends on timing."""
        return not (self.definition or "--threads" in self.options or "--readers" in self.listening)


@dataclass(frozen=True)
class Expected:
    """Counters when all packets of a capture have arrived."""

    packets: int
    flows: int


XDP = ("--engine", "xdp")
SCENARIOS = (
    Scenario("software", is_quick=True),
    Scenario("software, three threads", (), ("--threads", "3")),
    Scenario("software, two readers", ("--readers", "2"), ("--biflow",)),
    Scenario("software, seven slots", ("--snap-length", "128", "--no-promiscuous"), ("--microflow-slots", "7")),
    Scenario("software, inside, by size", (), ("--decapsulate", "--reassemble-flows", "--icmp-ports"), BY_SIZE),
    Scenario("software, by tag", (), (), BY_TAG),
    Scenario("software, filter", (), ("vlan",)),
    Scenario("xdp", XDP, is_quick=True),
    Scenario("xdp, two threads, row lock", (*XDP, "--table", "row-lock"), ("--threads", "2", "--microflow-slots", "7")),
    Scenario("xdp, generic, one slot", (*XDP, "--xdp-mode", "generic"), ("--microflow-slots", "1")),
    Scenario("xdp, coarse clock, drop", (*XDP, "--xdp-clock", "coarse", "--xdp-drop")),
    Scenario("xdp, by size", XDP, (), BY_SIZE, is_quick=True),
    Scenario("xdp, by tag", XDP, (), BY_TAG),
    Scenario("service", is_service=True),
    Scenario("service, xdp", XDP, is_service=True),
)


class Link:
    """A silent veth pair in its own network namespace."""

    def __init__(self) -> None:
        self.namespace = f"turboflow-compare-{os.getpid()}"
        checked("ip", "netns", "add", self.namespace)
        try:
            self.shell("for f in /proc/sys/net/ipv6/conf/*/disable_ipv6; do echo 1 > $f; done")
            self.shell(f"ip link add {NEAR} type veth peer name {FAR}")
            for end in (NEAR, FAR, "lo"):
                self.shell(f"ip link set {end} up")
            for end in (NEAR, FAR):
                # Tags stay in the frames, where both engines read them.
                self.shell(f"ip link set {end} mtu 65535; ethtool -K {end} rxvlan off txvlan off")
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        subprocess.run(["ip", "netns", "del", self.namespace], check=False)

    def inside(self, *command: str) -> list[str]:
        return ["ip", "netns", "exec", self.namespace, *command]

    def shell(self, script: str) -> None:
        checked(*self.inside("sh", "-c", script))

    def replay(self, capture: Path) -> None:
        """Sends all packets from one CPU. A veth pair has a queue per CPU, so several CPUs would reorder."""
        checked(*self.inside("taskset", "-c", "0", "tcpreplay", "-q", "--pps", "10000", "-i", NEAR, str(capture)))

    def page(self, path: str) -> str | None:
        """A page of the program's HTTP server; None while it does not answer."""
        answer: list[str | None] = [None]

        def ask() -> None:
            enter_namespace(self.namespace)
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{METRICS_PORT}{path}", timeout=5) as reply:
                    answer[0] = reply.read().decode()
            except (urllib.error.URLError, OSError):
                pass

        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()
        return answer[0]


def checked(*command: str) -> None:
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        raise SystemExit(f"compare_programs: {' '.join(command)}: {ended.stderr.strip()}")


def why_not() -> str | None:
    """The reason why a link is not possible here; None if it is possible."""
    if os.geteuid() != 0:
        return "it needs root, to make a network namespace"
    lacks = [program for program in ("ip", "ethtool", "tcpreplay", "taskset") if shutil.which(program) is None]
    return f"{', '.join(lacks)} is not here; scripts/install-test-tools.sh installs it" if lacks else None


def compare_live(
    before: Path, after: Path, capture: Path, folder: Path, quick: bool, report: Report, known: list[Intended]
) -> None:
    """Every scenario with both programs, one after the other."""
    if reason := why_not():
        print(f"compare_programs: SKIPPED: interfaces were not compared: {reason}", file=sys.stderr)
        return
    link = Link()
    try:
        for scenario in SCENARIOS:
            if quick and not scenario.is_quick:
                continue
            command = command_of(scenario, folder)
            expected = expected_of(before, capture, shape_of(scenario, folder))
            old, new = (listen(program, command, link, lambda: link.replay(capture), expected) for program in (before, after))
            report.add(Case("live", f"[{scenario.name}]", (command,)), old, new, known)
        compare_senders(before, after, folder, link, report, known)
    finally:
        link.close()


def compare_senders(before: Path, after: Path, folder: Path, link: Link, report: Report, known: list[Intended]) -> None:
    """Compares sending: each program sends in turn, and the earlier one listens."""
    traffic = ("--packets", "3k", "--flows", "300", "--udp-share", "0.3", "--vlan-share", "0.2", "--seed", "5")
    sent, command = folder / "sent.pcap", ("generate", "-i", NEAR, "--speed", "max", *traffic)
    checked(str(before), "generate", "-q", "-w", str(sent), *traffic)
    expected = expected_of(before, sent, ())
    listening = command_of(SCENARIOS[0], folder)

    def listened(sender: Path) -> Artifacts:
        said: Artifacts = {}

        def send() -> None:
            ended = subprocess.run(link.inside(str(sender), *command), capture_output=True, check=False, env=environment())
            said["stderr of the sender"] = ended.stderr
            said["exit of the sender"] = exit_code(ended.returncode).encode()

        return listen(before, listening, link, send, expected) | said

    report.add(Case("live", "[generate]", (command,)), listened(before), listened(after), known)


def expected_of(program: Path, capture: Path, shape: tuple[str, ...]) -> Expected:
    """Metered packets and flows of a capture, according to the program."""
    with tempfile.TemporaryDirectory() as folder:
        recorded = ["record", "-q", "-r", str(capture), "-w", "a.csv", "--ledger", "ledger.json", *NO_TIMEOUTS, *shape]
        subprocess.run([str(program), *recorded], cwd=folder, check=True)
        ledger = json.loads(Path(folder, "ledger.json").read_text())
    return Expected(ledger["packets_received"] - ledger["packets_filtered"], ledger["flows_opened"])


def shape_of(scenario: Scenario, folder: Path) -> tuple[str, ...]:
    """The options that define flows and select packets; a filter comes last."""
    if not scenario.definition:
        return scenario.options
    path = folder / f"{scenario.definition.name}.toml"
    path.write_text(scenario.definition.to_toml())
    return ("--definition", str(path), *scenario.options)


def command_of(scenario: Scenario, folder: Path) -> tuple[str, ...]:
    outputs = ("a.csv", "a.jsonl", *(("a.ipfix",) if scenario.is_ordered() else ()))
    if not scenario.is_service:
        written = [word for output in outputs for word in ("-w", output)]
        served = ("--ledger", "ledger.json", "--metrics", f"127.0.0.1:{METRICS_PORT}")
        shape = shape_of(scenario, folder)
        return ("record", "-i", FAR, *SEED, *NO_TIMEOUTS, *written, *served, *scenario.listening, *shape)
    lines = [f'interface = ["{FAR}"]', f"write = {json.dumps(outputs)}", 'ledger = "ledger.json"', f"seed = {SEED[1]}"]
    lines += [f'{name.removeprefix("--")} = "none"' for name in NO_TIMEOUTS[::2]]
    lines += ['engine = "xdp"'] * ("xdp" in scenario.listening)
    path = folder / f"{scenario.name}.toml"
    path.write_text("\n".join(lines) + "\n")
    return ("run", "--config", str(path))


def listen(program: Path, command: tuple[str, ...], link: Link, send: Callable[[], None], expected: Expected) -> Artifacts:
    """Listens while packets are sent, reads the metrics when all have arrived, and ends the program."""
    with tempfile.TemporaryDirectory(prefix="turboflow-compare-") as name:
        folder = Path(name)
        with open(folder / ".stderr", "wb") as stderr:
            process = subprocess.Popen(
                link.inside(str(program), *command), cwd=folder, env=environment(),
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr,
            )  # fmt: skip
            try:
                artifacts = while_it_listens(process, link, send, expected)
                process.terminate()
                artifacts["exit"] = exit_code(process.wait(PATIENCE_S)).encode()
            except subprocess.TimeoutExpired:
                artifacts = {"exit": b"timeout"}
            finally:
                process.kill()
                process.wait()
        return artifacts | left_behind(folder)


def while_it_listens(process: subprocess.Popen, link: Link, send: Callable[[], None], expected: Expected) -> Artifacts:
    wait_for(process, lambda: link.page("/metrics"))
    send()
    values = {"packets_received_total": expected.packets, "flows_resident": expected.flows}
    lines = [f"\nturboflow_{name} {value}\n" for name, value in values.items()]

    def all_of_it() -> str | None:
        page = link.page("/metrics")
        return page if page and all(line in page for line in lines) else None

    page = wait_for(process, all_of_it) or link.page("/metrics") or "no page"
    health = link.page("/healthz") or "no page"
    return {"page.metrics": TIMED_METRIC.sub(r"\1 TIMED", page).encode(), "health.metrics": health.encode()}


def wait_for(process: subprocess.Popen, look: Callable[[], str | None]) -> str | None:
    """Polls `look` until it returns a value; None on a timeout, or if the program has ended."""
    gives_up = time.monotonic() + PATIENCE_S
    while time.monotonic() < gives_up and process.poll() is None:
        if found := look():
            return found
        time.sleep(0.02)
    return None


def left_behind(folder: Path) -> Artifacts:
    artifacts: Artifacts = {"stderr": (folder / ".stderr").read_bytes()}
    readers = {".csv": untimed_csv, ".jsonl": untimed_lines, ".json": untimed_ledger}
    for path in sorted(path for path in folder.iterdir() if path.name != ".stderr"):
        read = readers.get(path.suffix)
        # Only the length of IPFIX is compared, because it contains times everywhere.
        artifacts[path.name] = read(path.read_text()).encode() if read else f"{path.stat().st_size} bytes".encode()
    return artifacts


def untimed_csv(text: str) -> str:
    """Records without their times, sorted."""
    header, *lines = text.splitlines()
    names = header.split(",")
    kept = [index for index, column in enumerate(names) if not TIMED_COLUMNS.search(column)]
    rows = sorted(",".join(split_csv(line)[index] for index in kept) for line in lines)
    return "\n".join([header, *rows]) + "\n"


def split_csv(line: str) -> list[str]:
    """The cells of a CSV line, in which only lists are quoted."""
    return [cell.group(1) for cell in re.finditer(r'("[^"]*"|[^,]*)(?:,|$)', line)]


def untimed_lines(text: str) -> str:
    records = (json.loads(line) for line in text.splitlines())
    kept = ({name: value for name, value in record.items() if not TIMED_COLUMNS.search(name)} for record in records)
    return "\n".join(sorted(json.dumps(record) for record in kept)) + "\n"


def untimed_ledger(text: str) -> str:
    """The ledger without its time-dependent values."""
    ledger = json.loads(text)
    for name in TIMED:
        if name in ledger:
            ledger[name] = "TIMED"
    return json.dumps(ledger, indent=2) + "\n"
