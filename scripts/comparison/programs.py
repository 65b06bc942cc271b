# SPDX-License-Identifier: Apache-2.0
"""What is run, and what a run leaves: exit code, both streams, and every file."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

# Everything that a run leaves, by name: `exit`, `stdout`, `stderr` and the files.
Artifacts = dict[str, bytes]

# A run of a capture takes a fraction of a second.
PATIENCE_S = 120
# In memory where that can be: outputs are synchronised to a disk at their end.
SCRATCH = next((folder for folder in ("/dev/shm",) if os.access(folder, os.W_OK)), None)


@dataclass(frozen=True)
class Case:
    """Commands that both programs are given, each program in an empty folder of its own.

    Files are written below that folder by relative names, and inputs are named by absolute paths
    that both programs share, so that names in messages and ledgers need no normalising.
    """

    kind: str
    name: str
    steps: tuple[tuple[str, ...], ...]
    stdin: Path | None = None
    # Differences of the words on standard output and standard error are shown and not counted.
    only_words: bool = False
    # Several threads meter: which of them hands over its records first is a matter of time.
    unordered: bool = False


def environment() -> dict[str, str]:
    """The same for every run: no locale, no time zone, no journal, no width of a terminal."""
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
    """Records sorted, below the header of a CSV."""
    lines = content.splitlines(keepends=True)
    match Path(name).suffix:
        case ".csv":
            return b"".join([*lines[:1], *sorted(lines[1:])])
        case ".jsonl":
            return b"".join(sorted(lines))
    return content


def run_step(command: list[str], folder: Path, stdin: Path | None) -> Artifacts:
    """Runs one command to its end; a command that does not end has the exit code `timeout`."""
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
    """The number, or the name of the signal that ended the program."""
    return signal.Signals(-returned).name if returned < 0 else str(returned)


def files_below(folder: Path) -> Artifacts:
    """Every file, hidden and unfinished ones included."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}
