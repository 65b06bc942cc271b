# SPDX-License-Identifier: Apache-2.0
"""Differences between two runs, intended differences, and the report."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections import Counter
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from comparison.programs import Artifacts, Case

# Maximum lines of one difference in a report, and of one group on the terminal.
EXCERPT_LINES = 60
SHOWN_OF_A_GROUP = 12
TEXTS = (".csv", ".jsonl", ".json", ".metrics", ".toml")


@dataclass(frozen=True)
class Rule:
    """A part of a program's output that differs from run to run."""

    why: str
    pattern: re.Pattern[bytes]
    instead: bytes

    def apply(self, text: bytes) -> bytes:
        return self.pattern.sub(self.instead, text)


# Applied to standard output and standard error only. Files are compared as they are.
RULES = (
    Rule("elapsed time and rate", re.compile(rb" in \d+\.\d\d s, [\d.,]+( [kMGT])?/s"), b" in TIME, RATE/s"),
    Rule("rate of sending", re.compile(rb" sent in \d+\.\d+ s: [^\n]*"), b" sent in TIME: RATE"),
    Rule("elapsed time, JSON", re.compile(rb'"seconds":[\d.e-]+'), b'"seconds":TIME'),
    Rule("time of a line, JSON", re.compile(rb'"time":"[^"]+Z"'), b'"time":"TIME"'),
)


def normalised(content: bytes) -> bytes:
    for rule in RULES:
        content = rule.apply(content)
    return content


@dataclass(frozen=True)
class Intended:
    """An intended difference, in the artifacts of some groups.

    With `instead`, it is a rewording: the earlier program's text is compared with its words replaced,
    so that numbers among them still count. Without, all changed lines have to match the pattern.
    """

    what: str
    pattern: re.Pattern[str]
    why: str
    instead: str | None = None

    def concerns(self, group: str) -> bool:
        return fnmatchcase(group, self.what)

    def covers(self, group: str, line: str) -> bool:
        return self.instead is None and self.concerns(group) and self.pattern.search(line) is not None

    def reworded(self, group: str, text: str) -> str:
        return text if self.instead is None or not self.concerns(group) else self.pattern.sub(self.instead, text)


def read_intended(path: Path) -> list[Intended]:
    """The `[[difference]]` entries of a file, each with `what`, `pattern`, `why` and optionally `instead`."""
    found = []
    for entry in tomllib.loads(path.read_text()).get("difference", []):
        if set(entry) - {"instead"} != {"what", "pattern", "why"} or not entry["why"].strip():
            raise SystemExit(f"compare_programs: {path}: an entry has `what`, `pattern` and `why`, not {entry}")
        pattern = re.compile(entry["pattern"], re.MULTILINE)
        found.append(Intended(entry["what"], pattern, entry["why"], entry.get("instead")))
    return found


@dataclass(frozen=True)
class Difference:
    """One artifact of one case that differs."""

    case: Case
    artifact: str
    # The changed lines, `-` before and `+` after, with their context.
    diff: tuple[str, ...]
    intended: bool

    @property
    def group(self) -> str:
        return group_of(self.case, self.artifact)

    @property
    def only_words(self) -> bool:
        return self.case.only_words and is_stream(self.artifact)

    @property
    def counts(self) -> bool:
        return not self.intended and not self.only_words

    def changed(self) -> int:
        return sum(is_change(line) for line in self.diff)


def is_stream(artifact: str) -> bool:
    return artifact.split(" of ")[0] in ("stdout", "stderr")


def is_text(artifact: str) -> bool:
    return is_stream(artifact) or artifact.startswith("exit") or artifact.endswith(TEXTS)


def group_of(case: Case, artifact: str) -> str:
    """The group of an artifact, such as `record-a.csv`. Reports are sorted by it, and `what` names it."""
    return f"{case.kind}-{artifact.split(' of ')[0]}".replace("/", "_")


def is_change(line: str) -> bool:
    return line[:1] in ("-", "+") and not line.startswith(("--- ", "+++ "))


def differences(case: Case, before: Artifacts, after: Artifacts, intended: list[Intended]) -> list[Difference]:
    """All differences between two runs of a case."""
    found = []
    for artifact in sorted(before.keys() | after.keys()):
        old, new = before.get(artifact), after.get(artifact)
        if is_stream(artifact) and old is not None and new is not None:
            old, new = normalised(old), normalised(new)
        if old == new:
            continue
        group = group_of(case, artifact)
        reworded = rewording(group, artifact, old, intended)
        # If a rewording explains the difference, the diff shows it. Otherwise it shows what remains
        # after the rewording.
        diff = tuple(diff_of(artifact, old if reworded == new else reworded, new))
        changes = [line for line in diff if is_change(line)]
        meant = reworded == new or all(any(one.covers(group, line) for one in intended) for line in changes)
        found.append(Difference(case, artifact, diff, meant))
    return found


def rewording(group: str, artifact: str, old: bytes | None, intended: list[Intended]) -> bytes | None:
    """The earlier program's output in the later program's wording."""
    if old is None or not is_text(artifact):
        return old
    text = old.decode(errors="surrogateescape")
    for one in intended:
        text = one.reworded(group, text)
    return text.encode(errors="surrogateescape")


def diff_of(artifact: str, old: bytes | None, new: bytes | None) -> list[str]:
    if old is None or new is None:
        sign, content = ("+", new) if old is None else ("-", old)
        return [f"{sign}{artifact} is only there {'after' if old is None else 'before'}: {len(content or b'')} bytes"]
    if is_text(artifact):
        lines = [content.decode(errors="backslashreplace").splitlines() for content in (old, new)]
        diff = list(difflib.unified_diff(*bounded(*lines), "before", "after", n=2, lineterm=""))
        # The bytes differ but the lines do not: line ends, or bytes that are not text.
        return diff or bytes_differ(old, new)
    return bytes_differ(old, new)


def bounded(old: list[str], new: list[str]) -> tuple[list[str], list[str]]:
    """The lines from the first difference on. Their number is limited, because comparing is quadratic."""
    shorter = min(len(old), len(new))
    first = next((index for index in range(shorter) if old[index] != new[index]), shorter)
    span = slice(max(0, first - 2), first + 400)
    return (old[span], new[span]) if max(len(old), len(new)) > 400 else (old, new)


def bytes_differ(old: bytes, new: bytes) -> list[str]:
    shorter = min(len(old), len(new))
    first = next((index for index in range(shorter) if old[index] != new[index]), shorter)
    window = slice(max(0, first - 8), first + 24)
    return [
        f"@@ byte {first} @@",
        f"-{len(old)} bytes, ... {old[window].hex(' ')}",
        f"+{len(new)} bytes, ... {new[window].hex(' ')}",
    ]


@dataclass
class Report:
    """All differences, one file per group."""

    folder: Path
    compared: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    bytes_compared: int = 0
    found: list[Difference] = field(default_factory=list)
    is_whole: bool = True

    def add(self, case: Case, before: Artifacts, after: Artifacts, intended: list[Intended]) -> None:
        if case.kind == "definition" and before["exit"] != b"0":
            # Otherwise every run with it would be refused, and nothing compared.
            raise SystemExit(f"compare_programs: BEFORE refuses {case.name}: {before['stderr'].decode()}")
        self.compared[case.kind] += 1
        self.bytes_compared += sum(len(content) for content in before.values())
        self.codes.update(content.decode() for name, content in before.items() if name.startswith("exit"))
        self.found += differences(case, before, after, intended)

    def write(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        for old in self.folder.glob("*.diff"):
            old.unlink()
        by_group: dict[str, list[Difference]] = {}
        for difference in self.found:
            by_group.setdefault(difference.group, []).append(difference)
        for group, found in sorted(by_group.items()):
            path = self.folder / f"{group}.diff"
            path.write_text("".join(entry(difference) for difference in found))
            for difference in found[:SHOWN_OF_A_GROUP]:
                print(f"{label(difference)} {group}: {difference.case.name}: {difference.changed()} lines")
            if len(found) > SHOWN_OF_A_GROUP:
                print(f"  and {len(found) - SHOWN_OF_A_GROUP} more in {path}")

    def close(self) -> int:
        """Prints a summary and the closing line, and returns the exit code."""
        print("compared: " + ", ".join(f"{count} {kind}" for kind, count in sorted(self.compared.items())))
        codes = ", ".join(f"{code} of {count}" for code, count in sorted(self.codes.items()))
        print(f"exit codes: {codes}; {self.bytes_compared / 1e6:.0f} MB of output")
        runs = sum(self.compared.values())
        cases = {difference.case for difference in self.found}
        unintended = {difference.case for difference in self.found if difference.counts}
        words = {difference.case for difference in self.found if difference.only_words and not difference.intended}
        intended = len(cases - unintended - words)
        print(f"{runs} runs compared, {len(cases)} differ ({intended} intended, {len(words - unintended)} in words only)")
        if not self.is_whole:
            print("stopped before all was compared")
        return 1 if unintended or not runs or not self.is_whole else 0


def label(difference: Difference) -> str:
    if difference.intended:
        return "intended"
    return "words" if difference.only_words else "DIFFERS"


def entry(difference: Difference) -> str:
    lines = [f"=== {label(difference)} {difference.case.name} {difference.artifact}"]
    lines += ["    turboflow " + " ".join(step) for step in difference.case.steps]
    lines += difference.diff[:EXCERPT_LINES]
    if len(difference.diff) > EXCERPT_LINES:
        lines.append(f"... and {len(difference.diff) - EXCERPT_LINES} lines more")
    return "\n".join(lines) + "\n\n"
