# SPDX-License-Identifier: Apache-2.0
"""Truncated, modified and compressed captures, and other files. They are made reproducibly from good ones."""

from __future__ import annotations

import gzip
import random
from collections.abc import Iterator
from pathlib import Path

from comparison.matrix import NO_TIMEOUTS, OUTPUTS, SEED, Capture
from comparison.programs import Case

# Longer captures are truncated to this.
LARGEST_BYTES = 200_000
CUTS = (0, 1, 4, 12, 20, 23, 24, 25, 30, 39, 40, 41, 60, 100)
FLIPS = 6


def cases_of_damage(captures: list[Capture], folder: Path) -> Iterator[Case]:
    """Every damaged form of these captures, and inputs that are not captures."""
    for index, capture in enumerate(captures):
        for form, content in damaged_forms(capture.path.read_bytes()[:LARGEST_BYTES], index):
            path = folder / f"{index}-{form}{capture.path.suffix}"
            path.write_bytes(content)
            command = ("record", "-r", str(path), *SEED, *OUTPUTS)
            yield Case("damage", f"{capture.name} [{form}]", (command, (*command, "--biflow", *NO_TIMEOUTS)))
    yield from no_captures(captures[0], folder)


def damaged_forms(whole: bytes, seed: int) -> Iterator[tuple[str, bytes]]:
    """Names and contents."""
    chance = random.Random(seed)
    yield from ((f"cut-{length}", whole[:length]) for length in CUTS)
    yield from ((f"cut-behind-{tail}", whole[:-tail]) for tail in (1, 7, 15, 16, 17, 60))
    for number in range(FLIPS):
        changed = bytearray(whole)
        for _ in range(1 + 4 * number):
            # Only the beginning is damaged, because headers matter more than payload.
            changed[chance.randrange(min(len(changed), 300 + 2_000 * number))] ^= 1 << chance.randrange(8)
        yield f"flipped-{number}", bytes(changed)
    yield "inside-out", whole[len(whole) // 2 :] + whole[: len(whole) // 2]
    yield "twice", whole + whole
    yield "zeros-behind", whole + bytes(1_000)
    packed = gzip.compress(whole, mtime=0)
    yield "packed", packed
    yield "packed-and-cut", packed[: len(packed) * 2 // 3]
    yield "packed-and-changed", packed[:100] + b"\xff\xff" + packed[102:]


def no_captures(capture: Capture, folder: Path) -> Iterator[Case]:
    """Refused inputs, and several inputs of which one is damaged."""
    text, cut, radio = folder / "text.pcap", folder / "one-cut.pcap", folder / "radio.pcap"
    text.write_text("this is no capture at all, is it? it is not\n")
    whole = capture.path.read_bytes()
    cut.write_bytes(whole[: len(whole) // 2 + 3])
    radio.write_bytes(whole[:20] + (127).to_bytes(4, "little") + whole[24:])
    good = str(capture.path)
    for name, inputs in {
        "missing": ("none.pcap",),
        "missing-behind": (good, "none.pcap"),
        "folder": (str(folder),),
        "text": (str(text),),
        "link-type": (str(radio),),
        "several-of-which-one-is-cut": (str(cut), good),
        "twice": (good, good),
        "stdin-twice": ("-", "-"),
        "empty-stdin": ("-",),
        "device": ("/dev/null",),
    }.items():
        yield Case("damage", f"no capture [{name}]", (("record", "-r", *inputs, *SEED, *OUTPUTS),))
    full = ("record", "-r", good, *SEED, "-w", "/dev/full", "--format", "csv", "-w", "a.csv", "--ledger", "ledger.json")
    yield Case("damage", "no capture [full device]", (full,))
