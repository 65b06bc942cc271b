# SPDX-License-Identifier: Apache-2.0
"""Compares the engine in the kernel with an empty XDP program, and with capture by a ring.

Prints a JSON object a row: those of `turboflow-lab bench --engine xdp`, and for each way of metering a veth pair, how
many packets a second one processor received, and the time that kernel and process spent. That processor does all the
work of receiving, in kernel and process. A sender on the other processor sends as fast as it can, which is faster
than the receiver in each of these ways: packets that find the queue of the link full are lost, and not counted.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile

NAMESPACE = f"turboflow-bench-{os.getpid()}"
SENDS, METERS = "va", "vb"
# The processors of the two ends.
SENDER, RECEIVER = "0", "1"
# Rounds before the measured one, in which the flow cache grows to its final size. The rarest of a million flows are
# seen late, and later still if packets are lost: with capture by a ring, the cache grows for the last time in the
# sixth round.
WARM_UPS = 6
# Name, and options of `turboflow record`.
WAYS = [
    ("software", []),
    ("xdp_per_cpu", ["--engine", "xdp"]),
    ("xdp_row_lock", ["--engine", "xdp", "--table", "row-lock"]),
    ("xdp_per_cpu_drop", ["--engine", "xdp", "--xdp-drop"]),
    ("xdp_row_lock_drop", ["--engine", "xdp", "--table", "row-lock", "--xdp-drop"]),
]
# Programs that do nothing (nothing.bpf.c): they show the most that the link can carry, however it is metered.
CEILINGS = [("nothing_pass", "xdp_pass"), ("nothing_drop", "xdp_drop")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turboflow", default="target/release/turboflow")
    parser.add_argument("--lab", default="target/release/turboflow-lab")
    parser.add_argument("--flows", default="1M", help="number of flows that are sent, Internet-like")
    parser.add_argument("--packets", type=int, default=20_000_000, help=f"packets, sent {WARM_UPS + 1} times a run")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--parts", default="cost,link", help="parts to run: cost, link")
    arguments = parser.parse_args()
    program, lab = os.path.abspath(arguments.turboflow), os.path.abspath(arguments.lab)
    if "cost" in arguments.parts:
        costs = ["bench", "--engine", "xdp", "--json", "--flows", "16K,1M", "--items", "1M"]
        subprocess.run([lab, *costs], check=True)
    if "link" in arguments.parts:
        with Link():
            measure(program, lab, arguments)


class Link:
    """A veth pair in a network namespace of its own. No program is attached to either end."""

    def __enter__(self):
        run("ip", "netns", "add", NAMESPACE)
        run("ip", "-n", NAMESPACE, "link", "add", SENDS, "type", "veth", "peer", "name", METERS)
        inside("bash", "-c", "for f in /proc/sys/net/ipv6/conf/*/disable_ipv6; do echo 1 > $f; done")
        for end in (SENDS, METERS):
            run("ip", "-n", NAMESPACE, "link", "set", end, "up")
        # Without GRO, an end that has no XDP program loses frames that are redirected to it.
        inside("ethtool", "-K", METERS, "gro", "on")
        # Packets are received by a kernel thread, not by the sending process.
        inside("bash", "-c", f"echo 1 > /sys/class/net/{METERS}/threaded")
        return self

    def __exit__(self, *_):
        subprocess.run(["ip", "netns", "del", NAMESPACE], check=False)


def run(*words):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def inside(*words):
    run("ip", "netns", "exec", NAMESPACE, *words)


def measure(program, lab, arguments):
    rounds = {name: [] for name, _ in WAYS}
    ceilings = {name: [] for name, _ in CEILINGS}
    for _ in range(arguments.repetitions):
        # In turns, so that other work on the machine disturbs all of them alike.
        for name, options in WAYS:
            rounds[name].append(once(program, lab, options, arguments))
        for name, section in CEILINGS:
            ceilings[name].append(send_to(section, lab, arguments))
    for name, results in rounds.items():
        print(json.dumps(summary(name, arguments, results)), flush=True)
    for name, rates in ceilings.items():
        row = {"bench": "link", "design": name, "flows": arguments.flows, "packets_sent": arguments.packets}
        row |= {"packets_received_per_s": round(statistics.median(rates)), "runs": rates}
        print(json.dumps(row), flush=True)


def send_to(section, lab, arguments):
    """Packets per second that arrive at an XDP program that does nothing."""
    with tempfile.TemporaryDirectory() as folder:
        compiled = os.path.join(folder, "nothing.o")
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "nothing.bpf.c")
        include = f"-I/usr/include/{os.uname().machine}-linux-gnu"
        run("clang", "-O2", "-g", "-target", "bpf", include, "-c", source, "-o", compiled)
        link = ["ip", "-n", NAMESPACE, "link", "set", METERS, "xdp"]
        run(*link, "obj", compiled, "sec", section)
        try:
            return watched_send(lab, arguments)["received_per_s"]
        finally:
            run(*link, "off")


def frames_taken():
    """Frames that XDP programs at the metered end have received so far."""
    words = ["ip", "netns", "exec", NAMESPACE, "ethtool", "-S", METERS]
    listed = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    counters = (line.split(":") for line in listed.splitlines() if "rx_queue" in line)
    return sum(int(count) for name, count in counters if name.strip().endswith("xdp_packets"))


def watched_send(lab, arguments):
    """Sends all packets. Returns how many were received, at what rate, and the kernel's processor time for it."""
    threads = receiving_threads()
    assert threads, f"no thread of the kernel receives at {METERS}: Linux 5.12 has them"
    for thread in threads:
        run("taskset", "-p", "-c", RECEIVER, thread)
    before, spent_s = frames_taken(), -threads_s(threads)
    sent = send(lab, arguments)
    received, spent_s = frames_taken() - before, spent_s + threads_s(threads)
    return {
        "sent_per_s": sent["items_per_s"],
        "received": received,
        "received_per_s": sent["items_per_s"] * received / arguments.packets,
        "kernel_s": spent_s,
    }


def receiving_threads():
    """The process IDs of the kernel threads that receive at the metered end."""
    listed = subprocess.run(["ps", "-eo", "pid,comm"], check=True, capture_output=True, text=True).stdout
    words = (line.split(None, 1) for line in listed.splitlines()[1:])
    return [number for number, name in words if name.startswith(f"napi/{METERS}-")]


def threads_s(threads):
    return sum(ran_ns(f"/proc/{thread}/schedstat") for thread in threads) / 1e9


def send(lab, arguments):
    """Sends all packets, and returns what the sender measured."""
    words = ["bench", "--engine", "xdp", "--json", "--send", SENDS]
    words += ["--flows", arguments.flows, "--items", str(arguments.packets)]
    prefix = ["ip", "netns", "exec", NAMESPACE, "taskset", "-c", SENDER]
    return json.loads(subprocess.run([*prefix, lab, *words], check=True, capture_output=True).stdout)


def once(program, lab, options, arguments):
    with tempfile.TemporaryDirectory() as folder:
        ledger = os.path.join(folder, "ledger.json")
        words = ["record", "-i", METERS, "-w", "/dev/null", "--format", "csv", "--ledger", ledger]
        words += ["--idle-timeout", "60s", *options]
        prefix = ["ip", "netns", "exec", NAMESPACE, "taskset", "-c", RECEIVER]
        metering = subprocess.Popen(prefix + [program, *words], stderr=subprocess.PIPE, text=True)
        for line in metering.stderr:
            if "seed" in line:
                break
        for _ in range(WARM_UPS):
            watched_send(lab, arguments)
        spent_s = -processor_s(metering.pid)
        measured = watched_send(lab, arguments)
        spent_s += processor_s(metering.pid)
        metering.send_signal(signal.SIGINT)
        metering.stderr.read()
        metering.wait()
        with open(ledger, encoding="utf-8") as file:
            counted = json.load(file)
    evicted = sum(counted["microflows_evicted"].values())
    return measured | {
        "seen_in_all": counted["source_seen"],
        "dropped_in_all": counted["source_dropped"],
        "microflows_in_all": evicted,
        "process_s": spent_s,
        "balanced": counted["balanced"],
    }


def processor_s(pid):
    """Processor time of all threads of a process so far, from schedstat: accounting by clock ticks would miss threads
    that sleep in step with the ticks."""
    tasks = f"/proc/{pid}/task"
    return sum(ran_ns(os.path.join(tasks, task, "schedstat")) for task in os.listdir(tasks)) / 1e9


def ran_ns(path):
    with open(path, encoding="ascii") as file:
        return int(file.read().split()[0])


def summary(name, arguments, results):
    assert all(result["balanced"] for result in results), results
    def median(of):
        return statistics.median(of(result) for result in results)

    return {
        "bench": "link",
        "design": name,
        "flows": arguments.flows,
        "packets_sent": arguments.packets,
        "packets_received_per_s": round(median(lambda one: one["received_per_s"])),
        "process_ns_per_packet": round(median(lambda one: one["process_s"] * 1e9 / max(one["received"], 1)), 2),
        "kernel_ns_per_packet": round(median(lambda one: one["kernel_s"] * 1e9 / max(one["received"], 1)), 2),
        "microflows_per_packet": round(median(lambda one: one["microflows_in_all"] / max(one["seen_in_all"], 1)), 4),
        "runs": results,
    }


if __name__ == "__main__":
    sys.exit(main())
