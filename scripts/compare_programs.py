#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs two builds of turboflow over a corpus of captures, and lists all differences in their outputs.

  compare_programs.py BEFORE AFTER [--captures DIR]... [--intended FILE] [--jobs 2] [--quick]

Compares, byte by byte: for files, records (CSV, JSON lines, Parquet, IPFIX), ledgers, standard output,
standard error and exit codes; messages to collectors; `show`, `top`, `plan`, `definition`, `generate`;
live records, ledgers and metrics with both engines on a veth pair (root). Of help and refusals, only
the exit codes count; differences in wording are shown.

Diffs are in the report's folder, one file per group. Exit code 0: all differences are intended or in
wording only. 1: there are other differences, or the run was stopped. 2: it could not run.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from comparison.collectors import cases_of_collectors, run_with_collector
from comparison.commands import cases_of_commands
from comparison.damage import cases_of_damage
from comparison.differences import Intended, Report, read_intended
from comparison.live import compare_live
from comparison.matrix import Capture, captures_below, cases_of, quick_part
from comparison.programs import Artifacts, Case, run_case

ROOT = Path(__file__).resolve().parent.parent
CORPUS = ROOT.parent / "shared" / "captures"
OWN = ("office.pcap", "two-links.pcapng")
PARTS = ("captures", "damage", "commands", "collectors", "live")
# Number of cases submitted ahead of the running ones, per job.
AHEAD = 4

Runner = Callable[[Path, Case], Artifacts]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, metavar="BEFORE", help="the program to compare with")
    parser.add_argument("after", type=Path, metavar="AFTER", help="the program to compare")
    parser.add_argument("--captures", type=Path, action="append", metavar="DIR",
        help="a folder of captures, in addition to samples/; repeat for more (default: ../shared/captures)")  # fmt: skip
    parser.add_argument("--intended", type=Path, default=ROOT / "scripts/intended_differences.toml", metavar="FILE",
        help="file of intended differences (default: scripts/intended_differences.toml)")  # fmt: skip
    parser.add_argument("--report", type=Path, default=Path("target/compare-programs"), metavar="DIR",
        help="folder for the diffs (default: target/compare-programs)")  # fmt: skip
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="cases to run at the same time (default: 2)")
    parser.add_argument("--quick", action="store_true", help="run only some of the corpus and of the live runs")
    parser.add_argument("--only", action="append", choices=PARTS, help="only this part; repeat for more (default: all)")
    args = parser.parse_args()
    for program in (args.before, args.after):
        if not os.access(program, os.X_OK):
            parser.error(f"{program} is not a program")
    return args


def find_captures(args: argparse.Namespace) -> tuple[list[Capture], list[Capture]]:
    """The project's large samples, and all others."""
    samples = captures_below(ROOT / "samples", OWN)
    own = [capture for capture in samples if capture.is_own]
    folders = args.captures
    if folders is None and not CORPUS.is_dir():
        print(f"compare_programs: no captures at {CORPUS}: those of samples/ are all", file=sys.stderr)
    folders = folders or [CORPUS] * CORPUS.is_dir()
    corpus = [capture for capture in samples if not capture.is_own]
    corpus += [capture for folder in folders for capture in captures_below(folder.resolve())]
    return own, quick_part(corpus) if args.quick else corpus


def compare(cases: Iterable[Case], run: Runner, args: argparse.Namespace, report: Report, known: list[Intended]) -> None:
    """Runs both programs on all cases, several at a time, and reports the differences."""
    before, after = args.before.resolve(), args.after.resolve()

    def both(case: Case) -> tuple[Case, Artifacts, Artifacts]:
        return case, run(before, case), run(after, case)

    with ThreadPoolExecutor(args.jobs) as pool:
        for case, old, new in in_turn(pool, both, iter(cases), args.jobs * AHEAD):
            report.add(case, old, new, known)
            show_progress(report)
    clear_progress()


def in_turn(pool: ThreadPoolExecutor, both: Callable, cases: Iterator[Case], ahead: int) -> Iterator:
    """Results in the order of the cases. At most `ahead` cases are submitted, which bounds memory."""
    running = [pool.submit(both, case) for case in itertools.islice(cases, ahead)]
    while running:
        yield running.pop(0).result()
        running += [pool.submit(both, case) for case in itertools.islice(cases, 1)]


def show_progress(report: Report) -> None:
    runs, differences = sum(report.compared.values()), len(report.found)
    if sys.stderr.isatty() and runs % 20 == 0:
        print(f"\r{runs} runs, {differences} differences", end="", file=sys.stderr, flush=True)
    elif runs % 2000 == 0:
        print(f"{runs} runs, {differences} differences", file=sys.stderr, flush=True)


def clear_progress() -> None:
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr)


def main() -> int:
    args = parse_arguments()
    known = read_intended(args.intended) if args.intended.exists() else []
    own, corpus = find_captures(args)
    report = Report(args.report)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="turboflow-compare-inputs-") as folder:
        try:
            for part in args.only or PARTS:
                begun = time.monotonic()
                compare_part(part, own, corpus, Path(folder), args, report, known)
                print(f"{part}: {time.monotonic() - begun:.0f} s", file=sys.stderr)
        except KeyboardInterrupt:
            report.is_whole = False
    report.write()
    code = report.close()
    print(f"{len(own) + len(corpus)} captures, {time.monotonic() - started:.0f} s, diffs in {args.report}", file=sys.stderr)
    return code


def compare_part(
    part: str, own: list[Capture], corpus: list[Capture], made: Path,
    args: argparse.Namespace, report: Report, known: list[Intended],
) -> None:  # fmt: skip
    """Compares one part, whose generated inputs are written to a folder."""
    sample = next(capture.path for capture in own if capture.path.name == OWN[0])
    match part:
        case "captures":
            compare(cases_of([*own, *corpus], made), run_case, args, report, known)
        case "damage":
            compare(cases_of_damage(damaged(own, corpus, args.quick), made), run_case, args, report, known)
        case "commands":
            compare(cases_of_commands(sample, made), run_case, args, report, known)
        case "collectors":
            compare(cases_of_collectors(own, corpus, args.quick), run_with_collector, args, report, known)
        case "live":
            compare_live(args.before.resolve(), args.after.resolve(), sample, made, args.quick, report, known)


def damaged(own: list[Capture], corpus: list[Capture], quick: bool) -> list[Capture]:
    """The captures that are damaged: some of every kind."""
    return own if quick else [*own, *corpus[:: max(1, len(corpus) // 10)]]


if __name__ == "__main__":
    sys.exit(main())
