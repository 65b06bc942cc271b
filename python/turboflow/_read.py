# SPDX-License-Identifier: Apache-2.0
"""Reads captures into Arrow."""

import os
import tempfile
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Optional, Union

import pyarrow as pa

from turboflow._features import FEATURE_SETS
from turboflow._program import Running, TurboflowError, TurboflowWarning

Paths = Union[str, os.PathLike, Iterable[Union[str, os.PathLike]]]

# Options that this module sets itself, or that make no sense when records go to Python.
OWN_OPTIONS = {
    "read", "write", "format", "quiet", "log_format", "definition", "biflow", "print_config", "interface",
    "cpu_port", "rotate", "rotate_size", "keep", "keep_size", "parquet_types", "time", "names", "help",
}  # fmt: skip


def read(
    path: Paths,
    definition: Union[str, os.PathLike, None] = None,
    biflow: Optional[bool] = None,
    filter: Optional[str] = None,
    **options,
) -> pa.RecordBatchReader:
    """Reads the flow records of a capture. Several captures are read as one stream of packets.

    `definition`: the record definition, as a file, as its text (of several lines), or as the name of
    a feature set ("nfstream", "cicflowmeter"). `biflow`: whether both directions of a conversation
    are in one record; with a feature set they always are. `filter`: a filter in tcpdump's language;
    only packets that match it are metered. Further options are those of `turboflow record`, without
    leading dashes and with `_` instead of `-`: `idle_timeout="5s"`, `icmp_ports=True`.

    Records arrive while the program runs. The program ends when the reader is closed or dropped. If
    something was damaged or lost, a `TurboflowWarning` follows the last record; all records that
    could be made are returned.

    Raises `TurboflowError` with the program's message if it cannot run, `TypeError` for an option
    that has no use here, and `ValueError` if there is no capture, or `biflow=False` is given with a
    feature set. Reading raises `TurboflowError` if the program ends early.
    """
    features = FEATURE_SETS.get(definition) if isinstance(definition, str) else None
    if features and biflow is False:
        raise ValueError(f"the features of {definition} are those of both directions: leave biflow=False out")
    arguments = ["record", "--quiet", "--log-format=text", "--write=-", "--format=arrow"]
    defaults = features.options if features else {}
    for name, value in {**defaults, **options}.items():
        arguments += _words(name, value)
    if biflow or features:
        arguments.append("--biflow")
    paths = [path] if isinstance(path, (str, os.PathLike)) else list(path)
    if not paths:
        raise ValueError("no capture to read: give a path, or a list of paths")
    with tempfile.TemporaryDirectory(prefix="turboflow-") as folder:
        if definition is not None:
            file = features.definition if features else _definition_file(definition, folder)
            arguments.append(f"--definition={file}")
        # The prefix `./` keeps a path from being parsed as an option.
        arguments += ["--read", *(os.path.join(".", os.fspath(one)) for one in paths)]
        if filter is not None:
            arguments += ["--", filter]
        # The schema arrives once the program has read the definition.
        stream = _Records(Running(arguments), features)
    return pa.RecordBatchReader.from_batches(stream.schema, stream)


class _Records:
    """An iterator over batches as the program writes them. At the end, it warns or raises if the
    exit code is not 0."""

    def __init__(self, running: Running, features):
        self._running = running
        self._features = features
        try:
            self._stream = pa.ipc.open_stream(running.output)
        except (pa.ArrowInvalid, EOFError, OSError) as error:
            _, said = running.end()
            raise TurboflowError(said or f"it wrote no records: {error}") from None
        own = self._stream.schema
        self.schema = features.schema if features else own

    def __iter__(self):
        return self

    def __next__(self) -> pa.RecordBatch:
        try:
            batch = self._stream.read_next_batch()
        except StopIteration:
            self._ended()
            raise
        except (pa.ArrowInvalid, EOFError, OSError) as error:
            code, said = self._running.end()
            raise TurboflowError(said or f"it ended early ({code}): {error}") from None
        return self._features.convert(batch) if self._features else batch

    def _ended(self) -> None:
        code, said = self._running.end()
        if code == 1:
            warnings.warn(TurboflowWarning(said or "something was lost"), stacklevel=3)
        elif code != 0:
            raise TurboflowError(said or f"the program ended with {code}")


def _words(name: str, value) -> list[str]:
    """An option as arguments of the program."""
    if name in OWN_OPTIONS:
        raise TypeError(f"read() has no option {name}: records go to Python, from captures")
    flag = "--" + name.replace("_", "-")
    if value is None or value is False:
        return []
    if value is True:
        return [flag]
    values = value if isinstance(value, (list, tuple)) else [value]
    return [f"{flag}={os.fspath(one) if isinstance(one, os.PathLike) else one}" for one in values]


def _definition_file(definition: Union[str, os.PathLike], folder: str) -> str:
    """The path of a definition. A text is written to a file in `folder` first."""
    if isinstance(definition, str) and "\n" in definition:
        file = Path(folder) / "definition.toml"
        file.write_text(definition, encoding="utf-8")
        return str(file)
    return os.fspath(definition)
