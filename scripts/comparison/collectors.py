# SPDX-License-Identifier: Apache-2.0
"""Exported messages: every message of IPFIX and NetFlow, over UDP and TCP."""

from __future__ import annotations

import contextlib
import ctypes
import socket
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from comparison.matrix import SEED, Capture
from comparison.programs import Artifacts, Case, run_case

# Placeholder for the collector's port, which differs from case to case.
PORT = "4739"
DOMAIN = ("--observation-domain", "5")
# SO_RCVBUFFORCE of <asm/socket.h>, which needs root; and a buffer for everything that a capture
# gives.
RECEIVE_BUFFER_FORCED = 33
RECEIVE_BUFFER_BYTES = 32 << 20
# Silence after the end of the program that means that everything has arrived.
SILENCE_S = 0.05

OPTION_SETS: dict[str, tuple[str, ...]] = {
    "ipfix+udp": (),
    "ipfix+udp records": ("--no-export-options", "--export-mtu", "600"),
    "ipfix+udp ns": ("--export-time", "ns", "--biflow", "--enterprise-number", "4242"),
    "ipfix+tcp": (),
    "ipfix+tcp us": ("--export-time", "us", "--icmp-ports"),
    "netflow9+udp": (),
    "netflow9+udp records": ("--no-export-options", "--export-mtu", "512"),
    "netflow5+udp": (),
}


def cases_of_collectors(own: list[Capture], corpus: list[Capture], quick: bool) -> Iterator[Case]:
    """Every kind of message of some captures."""
    chosen = own if quick else [*own, *corpus[:: max(1, len(corpus) // 40)]]
    for capture in chosen:
        for name, options in OPTION_SETS.items():
            target = f"{name.split()[0]}://127.0.0.1:{PORT}"
            sent = ("record", "-r", str(capture.path), *SEED, *DOMAIN, *options, "-w", target, "--ledger", "ledger.json")
            yield Case("collector", f"{capture.name} [{name}]", (sent,))


def run_with_collector(program: Path, case: Case) -> Artifacts:
    """Runs a case that exports to a collector. The messages are artifacts, in order."""
    is_tcp = "+tcp" in case.name
    with Collector(is_tcp) as collector:
        (step,) = case.steps
        here = tuple(word.replace(f":{PORT}", f":{collector.port}") for word in step)
        artifacts = run_case(program, Case(case.kind, case.name, (here,)))
    received = untimed_stream(collector.received) if is_tcp else b"".join(map(untimed, collector.messages))
    lengths = " ".join(str(len(message)) for message in collector.messages)
    name = f":{collector.port}".encode()
    artifacts = {what: content.replace(name, f":{PORT}".encode()) for what, content in artifacts.items()}
    return artifacts | {"messages": received} | ({} if is_tcp else {"messages.csv": lengths.encode()})


def untimed(message: bytes) -> bytes:
    """A message without its export time: in IPFIX (RFC 7011, section 3.1) always, in NetFlow v9 (RFC 3954,
    section 5.1) if it is the wall clock. Other headers have times derived from the flows."""
    if message[:2] == b"\0\x0a":
        return message[:4] + b"TIME" + message[8:]
    if message[:2] == b"\0\x09" and is_of_the_day(message[8:12]):
        return message[:4] + b"UPTIMEOF" + message[12:]
    return message


def is_of_the_day(seconds: bytes) -> bool:
    return abs(int.from_bytes(seconds, "big") - time.time()) < 3600


def untimed_stream(stream: bytes) -> bytes:
    """Consecutive messages without their export times."""
    messages = []
    while len(stream) >= 16:
        (length,) = struct.unpack_from("!H", stream, 2)
        if length < 16:
            break
        messages.append(untimed(stream[:length]))
        stream = stream[length:]
    return b"".join(messages) + stream


class Collector:
    """Listens on a free port, and stores everything received."""

    def __init__(self, is_tcp: bool) -> None:
        self.is_tcp = is_tcp
        self.messages: list[bytes] = []
        self.socket = socket.socket(type=socket.SOCK_STREAM if is_tcp else socket.SOCK_DGRAM)
        if not is_tcp:
            with contextlib.suppress(PermissionError):
                self.socket.setsockopt(socket.SOL_SOCKET, RECEIVE_BUFFER_FORCED, RECEIVE_BUFFER_BYTES)
        self.socket.bind(("127.0.0.1", 0))
        self.port: int = self.socket.getsockname()[1]
        self.has_ended = threading.Event()
        self.thread = threading.Thread(target=self.receive_stream if is_tcp else self.receive)

    @property
    def received(self) -> bytes:
        return b"".join(self.messages)

    def __enter__(self) -> Self:
        self.socket.settimeout(SILENCE_S)
        if self.is_tcp:
            self.socket.listen()
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.has_ended.set()
        self.thread.join()
        self.socket.close()

    def receive(self) -> None:
        while True:
            try:
                self.messages.append(self.socket.recv(1 << 16))
            except TimeoutError:
                if self.has_ended.is_set():
                    return

    def receive_stream(self) -> None:
        while True:
            try:
                connection, _ = self.socket.accept()
            except TimeoutError:
                if self.has_ended.is_set():
                    return
                continue
            with connection:
                connection.settimeout(None)
                while piece := connection.recv(1 << 16):
                    self.messages.append(piece)


def enter_namespace(name: str) -> None:
    """Moves this thread into a network namespace. Sockets it opens stay in that namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open(f"/run/netns/{name}") as namespace:
        if libc.setns(namespace.fileno(), 0x4000_0000) != 0:
            raise OSError(ctypes.get_errno(), "setns")
