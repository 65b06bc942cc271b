#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles the P4 programs of engines/p4 with the compilers that are installed here.

Writes engines/p4/compiled/FOLDER/NAME.EXTENSION for each record definition NAME, and
engines/p4/compiled/MANIFEST.toml, which says what each of them was made of. A test compares it with the sources.

The compilers are looked up in the folder that the environment variable P4C_BIN names, or in PATH. Missing compilers
are named, and their artefacts stay as they are.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Callable, NamedTuple

ROOT = Path(__file__).resolve().parent.parent / "engines" / "p4"
SOURCES = ROOT / "p4"
COMPILED = ROOT / "compiled"
MANIFEST = COMPILED / "MANIFEST.toml"


def as_it_is(text: str) -> str:
    return text


def without_places(text: str) -> str:
    """Removes the source lines and paths from bmv2's JSON, and writes one member per line."""

    def strip(value):
        if isinstance(value, dict):
            return {key: strip(of) for key, of in value.items() if key != "source_info"}
        if isinstance(value, list):
            return [strip(of) for of in value]
        return value

    program = strip(json.loads(text))
    del program["program"]
    members = (f"{json.dumps(key)}: {json.dumps(of, separators=(',', ':'))}" for key, of in program.items())
    return "{\n" + ",\n".join(members) + "\n}\n"


class Target(NamedTuple):
    """How a program is compiled for one target, and where its artefact goes."""

    sources: str  # folder below p4/
    compiler: str
    options: list[str]
    artefact: str  # below compiled/
    finish: Callable[[str], str]
    is_behind_queue: bool = False


# Inputs that are known only behind a queue.
QUEUE_INPUTS = {"egress_interface", "hop_latency", "queue_depth"}

TARGETS = [
    # The excluded pass gives every use of a variable a copy of its own, but DPDK's pipeline can address only the
    # first 256 bytes of metadata.
    Target(
        "pna",
        "p4c-dpdk",
        ["--arch", "pna", "--excludeMidendPasses", "P4::LocalCopyPropagation"],
        "pna/{name}.spec",
        as_it_is,
    ),
    Target("v1model", "p4c-bm2-ss", ["--std", "p4-16"], "v1model/{name}.json", without_places),
    Target(
        "v1model", "p4c-bm2-ss", ["--std", "p4-16", "-DINLINE"], "v1model/{name}-inline.json", without_places
    ),
    Target(
        "v1model", "p4c-bm2-ss", ["--std", "p4-16", "-DBATCH"], "v1model/{name}-batch.json", without_places
    ),
    Target(
        "v1model",
        "p4c-bm2-ss",
        ["--std", "p4-16", "-DBEHIND_QUEUE"],
        "v1model/{name}.json",
        without_places,
        is_behind_queue=True,
    ),
]


def inputs_of(definition: str) -> set[str]:
    text = (SOURCES / "shared/records" / definition / "record.p4").read_text()
    return set(re.findall(r"FEATURE\(\w+, \w+, (\w+)\)", text))


def installed(compiler: str) -> str | None:
    return shutil.which(compiler, path=os.environ.get("P4C_BIN") or None)


def version(compiler: str) -> str:
    said = subprocess.run([compiler, "--version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
    return re.search(r"Version (\S+ \(SHA: \w+)", said)[1] + ")"


def included(file: Path, folders: list[Path], found: list[Path]) -> list[Path]:
    """A source file and the files of this project that it includes, in the order in which the compiler reads them."""
    if file not in found:
        found.append(file)
        for name in re.findall(r'^#include "(.*?)"', file.read_text(), re.MULTILINE):
            places = (folder / name for folder in [file.parent, *folders])
            included(next(place.resolve() for place in places if place.exists()), folders, found)
    return found


def sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def compile_one(target: Target, definition: str) -> dict:
    """Writes the artefact of a definition. Returns its row of the manifest."""
    folder = SOURCES / target.sources
    record = f"../shared/records/{definition}"
    arguments = [*target.options, "-I", record, "turboflow.p4"]
    compiler = installed(target.compiler)
    artefact = target.artefact.format(name=definition)
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "out"
        subprocess.run([compiler, *arguments, "-o", out], cwd=folder, check=True)
        text = target.finish(out.read_text())
    path = COMPILED / artefact
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    sources = included(folder / "turboflow.p4", [(folder / record).resolve()], [])
    return {
        "artefact": artefact,
        "folder": f"p4/{target.sources}",
        "command": " ".join([target.compiler, *arguments, "-o", path.name]),
        "compiler": f"{target.compiler} {version(compiler)}",
        "sha256": sha256(path),
        "sources": [(str(source.relative_to(ROOT)), sha256(source)) for source in sources],
    }


def row(entry: dict) -> str:
    plain = "".join(f"{key} = {json.dumps(of)}\n" for key, of in entry.items() if key != "sources")
    sources = "".join(f'    {{ path = "{path}", sha256 = "{hash}" }},\n' for path, hash in entry["sources"])
    return f"\n[[artefact]]\n{plain}sources = [\n{sources}]\n"


def earlier_rows() -> dict[str, dict]:
    if not MANIFEST.exists():
        return {}
    rows = tomllib.loads(MANIFEST.read_text()).get("artefact", [])
    for entry in rows:
        entry["sources"] = [(source["path"], source["sha256"]) for source in entry["sources"]]
    return {entry["artefact"]: entry for entry in rows}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("artefact", nargs="*", help="compile only these artefacts, as the manifest names them")
    only = parser.parse_args().artefact
    rows = earlier_rows()
    definitions = sorted(path.parent.name for path in SOURCES.glob("shared/records/*/record.p4"))
    missing = set()
    for target in TARGETS:
        for definition in definitions:
            artefact = target.artefact.format(name=definition)
            inputs = inputs_of(definition)
            is_of_target = bool(inputs & QUEUE_INPUTS) == target.is_behind_queue
            if not is_of_target or only and artefact not in only:
                continue
            if installed(target.compiler):
                rows[artefact] = compile_one(target, definition)
            else:
                missing.add(target.compiler)
    MANIFEST.write_text(
        "# SPDX-License-Identifier: Apache-2.0\n"
        "# Written by scripts/p4_compile.py: the compiled programs, and what they were made of. Paths are those below\n"
        "# engines/p4; the command runs in `folder`.\n" + "".join(row(rows[artefact]) for artefact in sorted(rows))
    )
    for compiler in sorted(missing):
        print(f"p4_compile: {compiler} is not installed; say P4C_BIN=FOLDER", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
