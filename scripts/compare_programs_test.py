#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that compare_programs.py reports all differences and nothing else. Programs are shell scripts."""

from __future__ import annotations

import contextlib
import io
import tempfile
import time
import unittest
from dataclasses import replace
from pathlib import Path

from comparison.collectors import untimed, untimed_stream
from comparison.differences import Report, read_intended
from comparison.live import untimed_csv, untimed_ledger
from comparison.programs import Case, run_case

RECORDS = "src_addr,packets\n192.0.2.1,3\n192.0.2.2,5\n"
WORDS = "turboflow: tables of 7 MiB; seed 7\nturboflow: 8 packets (1 kB) in 0.02 s, 865 k/s: 8 recorded\n"
RECORD = Case("record", "made", (("record",),))


def program(folder: Path, name: str, records: str = RECORDS, words: str = WORDS, code: int = 0, output: str = "a.csv") -> Path:
    """A program that writes records, prints words and exits with a code."""
    path = folder / name
    path.write_text(f"#!/bin/sh\nprintf '{records}' > {output}\nprintf '{words}' >&2\nexit {code}\n")
    path.chmod(0o755)
    return path


class TwoPrograms(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        self.intended = self.folder / "intended.toml"
        self.intended.write_text("")

    def compared(self, after: Path, case: Case = RECORD) -> tuple[int, list[str]]:
        """The exit code of a comparison with the unchanged program, and what it printed."""
        before = program(self.folder, "before")
        report = Report(self.folder / "report")
        report.add(case, run_case(before, case), run_case(after, case), read_intended(self.intended))
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            report.write()
            code = report.close()
        return code, printed.getvalue().splitlines()

    def test_one_program_does_not_differ_from_itself(self) -> None:
        code, printed = self.compared(program(self.folder, "after"))
        self.assertEqual(code, 0)
        self.assertEqual(printed[-1], "1 runs compared, 0 differ (0 intended, 0 in words only)")

    def test_one_digit_of_one_record_is_found(self) -> None:
        code, printed = self.compared(program(self.folder, "after", records=RECORDS.replace(",5", ",6")))
        self.assertEqual(code, 1)
        self.assertEqual(printed[0], "DIFFERS record-a.csv: made: 2 lines")
        diff = (self.folder / "report" / "record-a.csv.diff").read_text()
        self.assertIn("-192.0.2.2,5\n+192.0.2.2,6\n", diff)

    def test_a_line_end_is_found(self) -> None:
        code, printed = self.compared(program(self.folder, "after", records=RECORDS.rstrip()))
        self.assertEqual((code, printed[0]), (1, "DIFFERS record-a.csv: made: 2 lines"))

    def test_another_name_of_a_file_is_found(self) -> None:
        code, printed = self.compared(program(self.folder, "after", output="b.csv"))
        self.assertEqual((code, len([line for line in printed if line.startswith("DIFFERS")])), (1, 2))

    def test_elapsed_time_is_no_difference_and_a_size_is(self) -> None:
        later = WORDS.replace("0.02 s, 865 k/s", "12.31 s, 1.4 M/s")
        self.assertEqual(self.compared(program(self.folder, "after", words=later))[0], 0)
        larger = WORDS.replace("7 MiB", "8 MiB")
        self.assertEqual(self.compared(program(self.folder, "after", words=larger))[0], 1)

    def test_words_of_refusals_are_shown_and_their_exit_codes_count(self) -> None:
        refusal = replace(RECORD, kind="refusal", only_words=True)
        code, printed = self.compared(program(self.folder, "after", words="other"), refusal)
        self.assertEqual((code, printed[-1]), (0, "1 runs compared, 1 differ (0 intended, 1 in words only)"))
        self.assertEqual(self.compared(program(self.folder, "after", code=2), refusal)[0], 1)

    def test_order_is_no_difference_where_several_threads_meter(self) -> None:
        header, first, second = RECORDS.splitlines(keepends=True)
        after = program(self.folder, "after", records=header + second + first)
        self.assertEqual(self.compared(after)[0], 1)
        self.assertEqual(self.compared(after, replace(RECORD, unordered=True))[0], 0)

    def test_what_is_intended_covers_its_own_lines_alone(self) -> None:
        entry = '[[difference]]\nwhat = "record-stderr"\npattern = "tables of [78] MiB"\nwhy = "larger"\n'
        self.intended.write_text(entry)
        larger = WORDS.replace("7 MiB", "8 MiB")
        code, printed = self.compared(program(self.folder, "after", words=larger))
        self.assertEqual((code, printed[-1]), (0, "1 runs compared, 1 differ (1 intended, 0 in words only)"))
        and_more = larger.replace("8 recorded", "7 recorded")
        self.assertEqual(self.compared(program(self.folder, "after", words=and_more))[0], 1)
        self.intended.write_text(entry.replace("record-stderr", "show-stderr"))
        self.assertEqual(self.compared(program(self.folder, "after", words=larger))[0], 1)

    def test_numbers_count_among_other_words(self) -> None:
        entry = '[[difference]]\nwhat = "*-stderr"\npattern = "^turboflow: tables of ([0-9]+) MiB"\n'
        self.intended.write_text(entry + 'instead = "turboflow: \\\\1 MiB of tables"\nwhy = "other words"\n')
        other = WORDS.replace("tables of 7 MiB", "7 MiB of tables")
        code, printed = self.compared(program(self.folder, "after", words=other))
        self.assertEqual((code, printed[-1]), (0, "1 runs compared, 1 differ (1 intended, 0 in words only)"))
        larger = other.replace("7 MiB", "8 MiB")
        self.assertEqual(self.compared(program(self.folder, "after", words=larger))[0], 1)

    def test_an_entry_without_a_reason_is_refused(self) -> None:
        self.intended.write_text('[[difference]]\nwhat = "*"\npattern = ""\nwhy = " "\n')
        with self.assertRaises(SystemExit):
            read_intended(self.intended)

    def test_a_comparison_of_nothing_fails(self) -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(Report(self.folder / "report").close(), 1)


class Untimed(unittest.TestCase):
    def test_only_the_time_of_a_message_is_left_out(self) -> None:
        message = b"\0\x0a\0\x14" + b"\1\2\3\4" + b"\0\0\0\7\0\0\0\5" + b"data"
        self.assertEqual(untimed(message), message[:4] + b"TIME" + message[8:])
        self.assertEqual(untimed(b"\0\x09" + message[2:]), b"\0\x09" + message[2:])
        now = b"\0\x09\0\4" + b"\1\2\3\4" + int(time.time()).to_bytes(4, "big") + b"data"
        self.assertEqual(untimed(now), now[:4] + b"UPTIMEOF" + now[12:])
        self.assertEqual(untimed_stream(message + message + b"cut"), 2 * untimed(message) + b"cut")

    def test_only_times_are_left_out_of_live_records(self) -> None:
        text = "src_addr,sizes,first_ns,packets\n192.0.2.2,[1;2],17,5\n192.0.2.1,[3],18,4\n"
        self.assertEqual(untimed_csv(text).splitlines()[1:], ["192.0.2.1,[3],4", "192.0.2.2,[1;2],5"])
        ledger = untimed_ledger('{"packets_received": 5, "microflows_merged": 3}')
        self.assertIn('"packets_received": 5', ledger)
        self.assertIn('"microflows_merged": "TIMED"', ledger)


if __name__ == "__main__":
    unittest.main()
