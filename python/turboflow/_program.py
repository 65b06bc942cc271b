# SPDX-License-Identifier: Apache-2.0
"""Finds and runs the program `turboflow`, and passes on its messages."""

import os
import shutil
import subprocess
import sysconfig
import tempfile
import weakref
from pathlib import Path
from typing import BinaryIO

# How long a program that was asked to end may take, in seconds.
PATIENCE_SECONDS = 5


class TurboflowError(Exception):
    """The program could not run, or ended early. The text is its message, if it wrote one."""


class TurboflowWarning(UserWarning):
    """Something was damaged or lost, so records may be missing. The text says what.

    All records that could be made have been returned.
    """


def program() -> str:
    """The path of the program.

    This is the environment variable `TURBOFLOW` if it is set, or else the program in this Python
    environment, or else the one in `PATH`. Raises `TurboflowError` if there is none.
    """
    if given := os.environ.get("TURBOFLOW"):
        return given
    name = "turboflow" + (sysconfig.get_config_var("EXE") or "")
    # Wheels install programs into `scripts`; `pip install --user` and `--target` use the other
    # folders.
    folders = [
        sysconfig.get_path("scripts"),
        sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user")),
        Path(__file__).parent.parent / "bin",
    ]
    for folder in folders:
        if folder and (path := Path(folder) / name).is_file():
            return str(path)
    if found := shutil.which("turboflow"):
        return found
    raise TurboflowError("the program `turboflow` is not in this environment: install the wheel again")


class Running:
    """A running program that writes to a pipe. It is stopped when this object is deleted."""

    def __init__(self, arguments: list[str]):
        # Unlike a pipe, a file holds any number of messages without being read meanwhile.
        self._said = tempfile.TemporaryFile()
        try:
            self._process = subprocess.Popen(
                [program(), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=self._said,
            )
        except OSError as error:
            raise TurboflowError(f"cannot start {program()}: {error}") from error
        self.output = self._process.stdout
        self._stop = weakref.finalize(self, _end, self._process, self._said)

    def end(self) -> tuple[int, str]:
        """Closes the pipe and waits for the program to end. Returns its exit code and its messages."""
        self.output.close()
        code = self._process.wait()
        self._said.seek(0)
        text = self._said.read().decode("utf-8", "replace")
        self._stop()
        lines = [line.removeprefix("turboflow: ") for line in text.splitlines()]
        return code, "\n".join(line for line in lines if line)


def _end(process: subprocess.Popen, said: BinaryIO) -> None:
    process.stdout.close()
    said.close()
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
