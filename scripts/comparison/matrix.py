# SPDX-License-Identifier: Apache-2.0
"""The combinations of captures and options for `record`, `show`, `top` and `plan`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from comparison.definitions import all_definitions, write_all
from comparison.programs import Case

CAPTURES = (".pcap", ".pcapng", ".cap", ".trace", ".tcpdump", ".bz2", ".xz", ".gz", ".zst")
# --quick takes one of this many captures, besides the project's own.
QUICK_ONE_OF = 24
# Each capture is combined with one of this many definitions and views.
DEALT_TO = 3

SEED = ("--seed", "7")
OUTPUTS = ("-w", "a.csv", "-w", "a.jsonl", "-w", "a.parquet", "-w", "a.ipfix", "--ledger", "ledger.json")
# The order of records affects the compression of Parquet and the messages of IPFIX.
UNORDERED_OUTPUTS = ("-w", "a.csv", "-w", "a.jsonl", "--ledger", "ledger.json")
NO_TIMEOUTS = ("--idle-timeout", "none", "--active-timeout", "none", "--linger", "none")

OPTION_SETS: dict[str, tuple[str, ...]] = {
    "default": (),
    "one-thread": ("--threads", "1"),
    "two-threads": ("--threads", "2"),
    "three-threads": ("--threads", "3", "--microflow-slots", "64"),
    "slots-1": ("--microflow-slots", "1"),
    "slots-7": ("--microflow-slots", "7"),
    "slots-7-three-threads-biflow": ("--microflow-slots", "7", "--threads", "3", "--biflow"),
    "biflow": ("--biflow",),
    "decapsulate": ("--decapsulate",),
    "decapsulate-some-biflow": ("--decapsulate=gre,vxlan,gtp-u", "--biflow", "--threads", "2"),
    "icmp-ports": ("--icmp-ports",),
    "icmp-ports-biflow": ("--icmp-ports", "--biflow"),
    "reassemble": ("--reassemble-flows",),
    "reassemble-inside-biflow": ("--reassemble-flows", "--decapsulate", "--biflow"),
    "no-timeouts": NO_TIMEOUTS,
    "short-timeouts": ("--idle-timeout", "100ms", "--active-timeout", "1s", "--linger", "0"),
    "shortest-timeouts": ("--idle-timeout", "1ms", "--active-timeout", "5ms", "--linger", "2ms", "--microflow-slots", "7"),
    "few-flows": ("--max-flows", "16",),
    "few-flows-biflow": ("--max-flows", "64", "--biflow", "--threads", "2", "--idle-timeout", "none"),
    "filter": ("ip and (tcp or udp)",),
    "filter-words": ("not", "port", "53", "and", "len", ">", "100"),
    "export-ns": ("--export-time", "ns", "--enterprise-number", "4242", "--no-export-options"),
    "export-us": ("--export-time", "us", "--observation-domain", "9", "--biflow"),
    "other-seed": ("--seed", "18446744073709551615"),
}  # fmt: skip

QUERIES: tuple[tuple[str, ...], ...] = (
    ("a.parquet",),
    ("a.csv", "--group-by", "protocol,dst_port", "--by", "packets", "--top", "10"),
    ("a.jsonl", "--group-by", "time:1s", "--exact"),
    ("a.parquet", "--group-by", "src_addr/24,dst_addr/24", "--format", "csv"),
    ("a.parquet", "a.csv", "--where", "tcp and bytes > 100 or port 53", "--select", "all", "--top", "0", "--format", "json"),
)
QUERIES_OF_BIFLOWS: tuple[tuple[str, ...], ...] = (
    ("a.parquet", "--group-by", "src_addr", "--by", "total_packets"),
    ("a.csv", "--where", "duration > 10ms", "--by", "duration", "--ascending"),
    ("a.parquet", "--group-by", "time:10s,protocol", "--select", "reverse_bytes,tcp_flags,min_ttl", "--format", "csv"),
)
VIEWS = ("flows", "hosts", "protocols", "health")


@dataclass(frozen=True)
class Capture:
    """A capture file and its name in reports. The project's large ones are combined with every definition."""

    path: Path
    name: str
    is_own: bool


def captures_below(folder: Path, own: tuple[str, ...] = ()) -> list[Capture]:
    """All captures below a folder. Their names begin with the folder's name."""
    if not folder.is_dir():
        raise SystemExit(f"compare_programs: {folder} is no folder of captures")
    paths = sorted(path for path in folder.rglob("*") if path.suffix in CAPTURES and path.is_file())
    return [Capture(path.resolve(), str(path.relative_to(folder.parent)), path.name in own) for path in paths]


def quick_part(captures: list[Capture]) -> list[Capture]:
    """The captures that --quick uses."""
    return [capture for index, capture in enumerate(captures) if index % QUICK_ONE_OF == 0]


def cases_of(captures: list[Capture], folder: Path) -> Iterator[Case]:
    """All cases of captures. Definitions are written to the folder."""
    definitions = write_all(folder)
    for index, capture in enumerate(captures):
        yield from recorded(capture)
        yield from recorded_by_definitions(capture, index, definitions)
        yield from asked(capture, index, definitions)
        yield from watched(capture, index)


def record(capture: Capture, *options: str) -> tuple[str, ...]:
    """The command line that records a capture; a filter among the options has to come last."""
    seed = () if "--seed" in options else SEED
    return ("record", "-r", str(capture.path), *seed, *options)


def recorded(capture: Capture) -> Iterator[Case]:
    for name, options in OPTION_SETS.items():
        yield written(capture, name, options)
    yield Case("summary", f"{capture.name} [summary]", (record(capture),))
    yield Case("summary", f"{capture.name} [summary-biflow]", (record(capture, "--biflow", "--quiet"),))
    piped = ("record", "-r", "-", *SEED, *OUTPUTS, "--log-format", "json")
    yield Case("record", f"{capture.name} [pipe]", (piped,), stdin=capture.path)
    yield Case("record", f"{capture.name} [stdout]", (record(capture, "-q", "-w", "-", "--format", "csv"),))


def written(capture: Capture, name: str, options: tuple[str, ...]) -> Case:
    """A run that writes all outputs with a defined order."""
    unordered = options[options.index("--threads") + 1] != "1" if "--threads" in options else False
    outputs = UNORDERED_OUTPUTS if unordered else OUTPUTS
    return Case("record", f"{capture.name} [{name}]", (record(capture, *outputs, *options),), unordered=unordered)


def recorded_by_definitions(capture: Capture, index: int, definitions: dict[str, Path]) -> Iterator[Case]:
    for number, definition in enumerate(all_definitions()):
        if capture.is_own or (number + index) % DEALT_TO == 0:
            chosen = ("--definition", str(definitions[definition.name]), *definition.options)
            yield written(capture, f"definition {definition.name}", chosen)
        if capture.is_own and "--microflow-slots" in definition.options:
            at = definition.options.index("--microflow-slots")
            options = (*definition.options[:at], *definition.options[at + 2 :])
            chosen = ("--definition", str(definitions[definition.name]), *options)
            yield written(capture, f"definition {definition.name}, adaptive", chosen)


def asked(capture: Capture, index: int, definitions: dict[str, Path]) -> Iterator[Case]:
    """Records and queries of `show` on them, in turn also with custom definitions."""
    outputs = ("-q", "-w", "a.csv", "-w", "a.jsonl", "-w", "a.parquet")
    questions = dealt(QUERIES, capture, index)
    yield Case("show", f"{capture.name} [show]", (record(capture, *outputs), *questions))
    questions = dealt(QUERIES_OF_BIFLOWS, capture, index)
    yield Case("show", f"{capture.name} [show biflows]", (record(capture, *outputs, "--biflow"), *questions))
    names = [name for number, name in enumerate(definitions) if capture.is_own or (number + index) % 12 == 0]
    for name in (name for name in names if "biflow" not in name and "splt" not in name):
        steps = (
            record(capture, *outputs, "--definition", str(definitions[name])),
            ("show", "a.parquet", "--select", "all", "--top", "5"),
            ("show", "a.parquet", "--group-by", "dst_addr", "--format", "csv"),
        )
        yield Case("show", f"{capture.name} [show definition {name}]", steps)


def dealt(queries: tuple[tuple[str, ...], ...], capture: Capture, index: int) -> tuple[tuple[str, ...], ...]:
    """The queries that this capture is combined with."""
    turns = (query for number, query in enumerate(queries) if capture.is_own or (number + index) % DEALT_TO == 0)
    return tuple(("show", *query) for query in turns)


def watched(capture: Capture, index: int) -> Iterator[Case]:
    """The screens of `top` at the end and before it, and the planner."""
    for number, view in enumerate(VIEWS):
        if capture.is_own or (number + index) % DEALT_TO == 0:
            screen = ("top", "-r", str(capture.path), "--batch", "2", "--rows", "40", "--view", view)
            yield Case("top", f"{capture.name} [top {view}]", (screen,))
    if capture.is_own:
        # At forty times the pace of its packets.
        replay = ("top", "-r", str(capture.path), "--batch", "3", "--rows", "20", "--speed", "40")
        yield Case("top", f"{capture.name} [top replay]", (replay,))
    plan = ("plan", "-r", str(capture.path), "--seed", "3", "--links", "8")
    yield Case("plan", f"{capture.name} [plan]", (plan,) if index % 2 else ((*plan, "--json"),))
