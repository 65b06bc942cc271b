# SPDX-License-Identifier: Apache-2.0
"""Cases to run, and the outcome of a run: exit code, both streams, and every file."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

# Everything that a run produces, by name: `exit`, `stdout`, `stderr` and the files.
Artifacts = dict[str, bytes]

# Metering a capture takes a fraction of a second.
PATIENCE_S = 120
# In memory if possible, because outputs are synchronised to disk when they are closed.
SCRATCH = next((folder for folder in ("/dev/shm",) if os.access(folder, os.W_OK)), None)


@dataclass(frozen=True)
class Case:
    """Commands that each program runs in its own empty folder.

    Files are written below that folder by relative names, and inputs are named by absolute paths
    that both programs share, so that names in messages and ledgers are equal.
    """

    kind: str
    name: str
    steps: tuple[tuple[str, ...], ...]
    stdin: Path | None = None
    # Differences in standard output and standard error are shown but not counted.
    only_words: bool = False
    # With several meter threads, the order of records depends on timing.
    unordered: bool = False


def environment() -> dict[str, str]:
    """A fixed environment: no locale, no time zone, no journal, no terminal width."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LD_LIBRARY_PATH") if name in os.environ}
    return kept | {"LC_ALL": "C", "TZ": "UTC", "RUST_BACKTRACE": "0"}


def run_case(program: Path, case: Case) -> Artifacts:
    """Runs all steps of a case in one new folder."""
    artifacts: Artifacts = {}
    with tempfile.TemporaryDirectory(prefix="turboflow-compare-", dir=SCRATCH) as folder:
        for number, step in enumerate(case.steps, 1):
            where = f" of step {number}" if number > 1 else ""
            ended = run_step([str(program), *step], Path(folder), case.stdin)
            for name, content in ended.items():
                artifacts[name + where] = content
        files = files_below(Path(folder))
    return artifacts | {name: in_order(name, content) if case.unordered else content for name, content in files.items()}


def in_order(name: str, content: bytes) -> bytes:
    """Sorts records, below the header of a CSV."""
    lines = content.splitlines(keepends=True)
    match Path(name).suffix:
        case ".csv":
            return b"".join([*lines[:1], *sorted(lines[1:])])
        case ".jsonl":
            return b"".join(sorted(lines))
    return content


def run_step(command: list[str], folder: Path, stdin: Path | None) -> Artifacts:
    """Runs one command to its end. The exit code of a command that hangs is `timeout`."""
    with open(stdin or os.devnull, "rb") as source:
        process = subprocess.Popen(
            command, cwd=folder, env=environment(), stdin=source, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        try:
            stdout, stderr = process.communicate(timeout=PATIENCE_S)
            code = exit_code(process.returncode)
        except subprocess.TimeoutExpired:
            process.kill()
            stdout, stderr = process.communicate()
            code = "timeout"
    return {"exit": code.encode(), "stdout": stdout, "stderr": stderr}


def exit_code(returned: int) -> str:
    """The exit code, or the name of the signal that ended the program."""
    return signal.Signals(-returned).name if returned < 0 else str(returned)


def files_below(folder: Path) -> Artifacts:
    """Every file, including hidden and unfinished ones."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}
