#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of flow records into Kafka: the producer alone, the whole program, and goflow2 with IPFIX input.

    bench/kafka/run.py --turboflow target/release/turboflow --cost target/release/examples/kafka_cost [--repetitions 3]

Starts one broker on loopback (`scripts/install-test-tools.sh` fetches Kafka and goflow2) and ends it. Figures are
processor times: of the whole `turboflow record`, which also reads and meters a capture, and of goflow2, from its
start until the broker has acknowledged all records. `--cost` is the example of crates/kafka, with feature `kafka`.
"""

import argparse
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[2] / "target" / "tools"
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
PATIENCE_S = 120


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def java(main: str, *arguments: str) -> list[str]:
    return ["java", "-Xmx1g", "-cp", f"{TOOLS}/kafka/*", main, *arguments]


def until(what: str, is_so) -> None:
    start = time.monotonic()
    while not is_so():
        if time.monotonic() - start > PATIENCE_S:
            raise SystemExit(f"bench-kafka: waited {PATIENCE_S} s until {what}")
        time.sleep(0.05)


class Broker:
    """A single broker, which is also the controller. Topics have four partitions."""

    def __init__(self, folder: Path):
        self.port, controller = free_port(), free_port()
        settings = folder / "server.properties"
        settings.write_text(
            "process.roles=broker,controller\nnode.id=1\nnum.partitions=4\n"
            f"controller.quorum.voters=1@127.0.0.1:{controller}\ncontroller.listener.names=CONTROLLER\n"
            f"listeners=PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller}\n"
            f"advertised.listeners=PLAINTEXT://127.0.0.1:{self.port}\nlog.dirs={folder}/log\n"
            "offsets.topic.replication.factor=1\n")
        talk = (folder / "talk").open("w")
        form = java("kafka.tools.StorageTool", "format", "-t", "AAAAAAAAQACAAAAAAAAAAQ", "-c", str(settings))
        subprocess.run(form, check=True, stdout=talk, stderr=talk)
        self.child = subprocess.Popen(java("kafka.Kafka", str(settings)), stdout=talk, stderr=talk)
        until("the broker listens", self.listens)

    def listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def messages(self, topic: str) -> int:
        offsets = java("org.apache.kafka.tools.GetOffsetShell", "--bootstrap-server", f"127.0.0.1:{self.port}",
                       "--topic", topic)
        said = subprocess.run(offsets, capture_output=True, text=True).stdout
        return sum(int(line.rsplit(":", 1)[1]) for line in said.splitlines() if line.startswith(f"{topic}:"))


def processor_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


def run(command: list[str]) -> tuple[float, str]:
    """The processor time of a command in seconds, and its standard error."""
    with tempfile.TemporaryFile("w+") as said:
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said)
        _, status, usage = os.wait4(child.pid, 0)
        said.seek(0)
        text = said.read()
    if os.waitstatus_to_exitcode(status):
        raise SystemExit(f"bench-kafka: {' '.join(command)}: {text}")
    return usage.ru_utime + usage.ru_stime, text


def by_goflow2(broker: Broker, topic: str, flows: str, arguments: argparse.Namespace) -> tuple[float, int]:
    """The processor time of goflow2 in seconds, and how many of its messages the broker has (one per record)."""
    port, metrics = free_port(), free_port()

    def counted(name: str) -> float:
        page = urllib.request.urlopen(f"http://127.0.0.1:{metrics}/metrics").read().decode()
        return sum(float(number) for number in re.findall(rf"^{name}{{[^}}]*}} (\S+)$", page, re.M))

    def serves() -> bool:
        try:
            counted("goflow2")
            return True
        except OSError:
            return False

    collector = subprocess.Popen(
        [f"{TOOLS}/goflow2", "-listen", f"netflow://127.0.0.1:{port}?workers=1", "-addr", f"127.0.0.1:{metrics}",
         "-format", "bin", "-transport", "kafka", "-transport.kafka.brokers", f"127.0.0.1:{broker.port}",
         "-transport.kafka.topic", topic, "-transport.kafka.compression", "zstd", "-transport.kafka.flushfreq", "100ms"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until("goflow2 serves metrics", serves)
    run([arguments.turboflow, "replay", flows, "-w", f"ipfix+udp://127.0.0.1:{port}", "--rate", arguments.rate])
    records, found = -1.0, counted("goflow2_flow_process_nf_flowset_records_total")
    while found != records:
        time.sleep(2)
        records, found = found, counted("goflow2_flow_process_nf_flowset_records_total")
    took = processor_s(collector.pid)
    collector.terminate()
    collector.wait()
    return took, broker.messages(topic)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turboflow", required=True)
    parser.add_argument("--cost", required=True)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--rate", default="50k", help="records per second to goflow2, which loses some at higher rates")
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="bench-kafka-"))
    broker = Broker(folder)
    try:
        measure(broker, folder, arguments)
    finally:
        broker.child.kill()
        broker.child.wait()
        shutil.rmtree(folder)


def measure(broker: Broker, folder: Path, arguments: argparse.Namespace) -> None:
    at = f"kafka://127.0.0.1:{broker.port}"
    for number in range(arguments.repetitions):
        topics = [f"{at}/cost-{name}-{number}?records=100&compression={name}" for name in ("lz4", "zstd")]
        print(subprocess.run([arguments.cost, "2000000", *topics], check=True, capture_output=True, text=True).stdout,
              flush=True)
    capture = str(folder / "traffic.pcap")
    run([arguments.turboflow, "generate", "-w", capture, "--packets", "1M", "--flows", "500k", "--traffic", "uniform",
         "--snap-length", "64"])
    record, flows = [arguments.turboflow, "record", "-r", capture], str(folder / "flows.parquet")
    run([*record, "-w", flows])
    for number in range(arguments.repetitions):
        ours, said = run([*record, "-w", f"{at}/whole-{number}?records=100&compression=zstd"])
        records = int(re.search(r"([\d,]+) (?:flow )?records", said)[1].replace(",", ""))
        theirs, got = by_goflow2(broker, f"goflow2-{number}", flows, arguments)
        print(f"turboflow, capture to broker: {records} records, {ours:.2f} s, {records / ours / 1e6:.3f} M/s")
        print(f"goflow2, IPFIX to broker: {got} records, {theirs:.2f} s, {got / theirs / 1e6:.3f} M/s: "
              f"turboflow makes {records / ours / (got / theirs):.1f} times as many", flush=True)


main()
