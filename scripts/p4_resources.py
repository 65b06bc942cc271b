#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reports which resources of the chip the programs for Tofino use, from the logs of the compiler.

  p4_resources.py [--output FILE] NAME=FOLDER...

FOLDER is an output folder of `p4c --target tofino... -g`; NAME is PROGRAM:RECORD[:OPTION...] with
the record definition and the options of the preprocessor that it was compiled with, for example
turboflow:default:WITH_V6:SLOT_BITS=15. The report has the command that compiles the program, without
the folders of this machine.
"""

import argparse
import hashlib
import json
import pathlib
import re
import sys

SOURCES = pathlib.Path(__file__).parent.parent / "engines/p4/p4"
STAGES = {"tofino": 12, "tofino2": 20}
ARCHITECTURES = {"tofino": "tna", "tofino2": "t2na"}
# Columns of mau.resources.log: the name in the report, and how many a stage has.
RESOURCES = {
    "Logical TableID": ("logical_tables", 16),
    "Meter ALU": ("stateful_alus", 4),
    "VLIW Instr": ("vliw_instructions", 32),
    "SRAM": ("sram_blocks", 80),
    "Map RAM": ("map_rams", 48),
    "TCAM": ("tcam_blocks", 24),
    "Hash Bit": ("hash_bits", 416),
    "Hash Dist Unit": ("hash_distribution_units", 6),
    "Gateway": ("gateways", 16),
    "Exact Match Input xbar": ("exact_match_bytes", 128),
    "Ternary Match Input xbar": ("ternary_match_bytes", 66),
}
# Containers by kind: width in bits, and number.
CONTAINERS = {
    "tofino": {
        "normal": {8: 64, 16: 96, 32: 64},
        "tagalong": {8: 32, 16: 48, 32: 32},
    },
    "tofino2": {
        "normal": {8: 48, 16: 72, 32: 48},
        "mocha": {8: 16, 16: 24, 32: 16},
        "dark": {8: 16, 16: 24, 32: 16},
    },
}


def cells(line: str) -> list[str]:
    """The cells of a line of a table in the log."""
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def stage_rows(log: str) -> tuple[dict[str, int], int]:
    """The total of each column, and the number of stages in use, from the first table of the log."""
    lines = log.splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith("| Stage Number"))
    columns = cells(lines[start])[1:]
    totals = dict.fromkeys(columns, 0)
    used = 0
    for line in lines[start + 2 :]:
        values = cells(line)
        if not values[0].isdigit():
            break
        numbers = [int(value) for value in values[1:]]
        used += any(numbers)
        for column, number in zip(columns, numbers, strict=True):
            totals[column] += number
    return totals, used


def sources_sha256(record: str) -> str:
    """Identifies the sources of a program: the SHA-256 of sorted lines `PATH SHA256`, one per file."""
    paths = [
        *SOURCES.glob("tna/*.p4"),
        *SOURCES.glob("shared/*.p4"),
        SOURCES / f"shared/records/{record}/record.p4",
    ]
    lines = (
        f"{path.relative_to(SOURCES)} {hashlib.sha256(path.read_bytes()).hexdigest()}\n"
        for path in paths
    )
    return hashlib.sha256("".join(sorted(lines)).encode()).hexdigest()


def share(part: int, whole: int) -> float:
    """A share in percent with two decimals, as in the tables of the paper."""
    return round(100 * part / whole, 2)


def read(name: str, folder: pathlib.Path) -> dict:
    """The report on one program, from its compiler's output folder."""
    program, record, *options = name.split(":")
    manifest = json.loads((folder / "manifest.json").read_text())
    if not manifest["compilation_succeeded"]:
        raise SystemExit(f"{name}: not compiled")
    target = manifest["target"]
    [logs] = folder.glob("*/logs/mau.resources.log")
    totals, used = stage_rows(logs.read_text())
    metrics = json.loads((logs.parent / "metrics.json").read_text())

    report = {
        "program": program,
        "record": record,
        "options": options,
        "target": target,
        "compiler": manifest["compiler_version"],
        "command": " ".join(
            [
                f"p4c --target {target} --arch {ARCHITECTURES[target]} -g",
                f"-I ../shared/records/{record}",
                *(f"-D{option}" for option in options),
                f"{program}.p4",
            ]
        ),
        "sources_sha256": sources_sha256(record),
        "stages": {"used": used, "of": STAGES[target]},
    }
    for column, (key, stage) in RESOURCES.items():
        whole = stage * STAGES[target]
        report[key] = {
            "used": totals[column],
            "of": whole,
            "percent": share(totals[column], whole),
        }
    for kind, widths in CONTAINERS[target].items():
        bits = sum(
            width["containers_occupied"] * width["bit_width"]
            for width in metrics["phv"].get(kind, [])
        )
        whole = sum(width * count for width, count in widths.items())
        report[f"phv_{kind}_bits"] = {"used": bits, "of": whole, "percent": share(bits, whole)}
    for gress in ("ingress", "egress"):
        report[f"{gress}_parser_rows"] = {
            "used": metrics["parser"][gress]["tcam_rows"],
            "of": 256,
            "percent": share(metrics["parser"][gress]["tcam_rows"], 256),
        }
    return report


def toml_value(value) -> str:
    """Formats a value as TOML: a number, a string, a list of strings or a table of numbers."""
    match value:
        case dict():
            inner = ", ".join(f"{key} = {toml_value(item)}" for key, item in value.items())
            return f"{{ {inner} }}"
        case list():
            return f"[{', '.join(toml_value(item) for item in value)}]"
        case str():
            return json.dumps(value)
        case _:
            return str(value)


def main() -> None:
    """Writes the report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=pathlib.Path, help="file to write (default: standard output)")
    parser.add_argument("--note", help="a note about the compiler")
    parser.add_argument("programs", nargs="+", metavar="NAME=FOLDER")
    arguments = parser.parse_args()

    text = (
        "# SPDX-License-Identifier: Apache-2.0\n"
        "# Written by scripts/p4_resources.py: what each program takes of the chip, according to\n"
        "# the open compiler's logs. The command is to be run in engines/p4/p4/tna.\n"
    )
    if arguments.note:
        text += f"\nnote = {toml_value(arguments.note)}\n"
    for argument in arguments.programs:
        if not re.fullmatch(r"\w+:\w+(:[A-Z0-9_]+(=\d+)?)*=[^=]+", argument):
            parser.error(f"{argument}: not NAME=FOLDER")
        name, folder = argument.rsplit("=", 1)
        text += "\n[[program]]\n"
        for key, value in read(name, pathlib.Path(folder)).items():
            text += f"{key} = {toml_value(value)}\n"
    if arguments.output:
        arguments.output.write_text(text)
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
