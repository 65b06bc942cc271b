# SPDX-License-Identifier: Apache-2.0
"""Tests `turboflow.read` in an environment with the wheel: `python reading.py SAMPLES`."""

import csv
import gc
import io
import os
import subprocess
import sys
import threading
import unittest
import warnings
from pathlib import Path

import pyarrow as pa
import turboflow

SAMPLES = Path(sys.argv.pop())
OFFICE = SAMPLES / "office.pcap"
EXAMPLES = Path(__file__).parent.parent / "examples"


def captures() -> list[Path]:
    found = [*SAMPLES.glob("*.pcap*"), *SAMPLES.glob("cases/*.pcap*")]
    assert len(found) > 50, found
    return sorted(found)


def as_csv(path, *options: str) -> tuple[list[str], list[tuple]]:
    """The column names and the sorted rows that the program writes as CSV."""
    arguments = [turboflow.program(), "record", "-q", "-r", path, "-w", "-", "--format", "csv", *options]
    text = subprocess.run(arguments, capture_output=True, text=True).stdout
    names, *rows = csv.reader(io.StringIO(text))
    return names, sorted(map(tuple, rows))


def text(value) -> str:
    """Formats a value as the program does in CSV."""
    if value is None:
        return ""
    if isinstance(value, list):
        return "[" + ";".join(map(text, value)) + "]"
    return str(value)


def as_rows(table: pa.Table) -> list[tuple]:
    columns = []
    for column in table.columns:
        is_time = pa.types.is_timestamp(column.type)
        columns.append(map(text, (column.cast(pa.int64()) if is_time else column).to_pylist()))
    return sorted(zip(*columns))


def silent(path, **options) -> pa.Table:
    """All records of a capture that may be damaged. Warnings are ignored."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", turboflow.TurboflowWarning)
        return turboflow.read(path, **options).read_all()


def children() -> set[str]:
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


class Reading(unittest.TestCase):
    def test_the_program_is_that_of_the_wheel(self):
        self.assertEqual(Path(turboflow.program()).parent, Path(sys.executable).parent)

    def test_records_equal_the_csv_on_every_sample(self):
        for path in captures():
            for biflow in (False, True) if path == OFFICE else (False,):
                names, rows = as_csv(path, *(["--biflow"] if biflow else []))
                table = silent(path, biflow=biflow)
                self.assertEqual(table.column_names, names, path)
                self.assertEqual(as_rows(table), rows, path)

    def test_several_captures_are_one_stream(self):
        both = [OFFICE, SAMPLES / "two-links.pcapng"]
        packets = [sum(silent(one)["packets"].to_pylist()) for one in (*both, both)]
        self.assertEqual(packets[2], packets[0] + packets[1])

    def test_a_definition_is_a_text_or_a_file_and_options_are_those_of_the_program(self):
        definition = '[[feature]]\nname = "lengths"\nop = "list"\nof = "ip_length"\nk = 3\n'
        table = silent(OFFICE, definition=definition, active_timeout="1s", linger="none", icmp_ports=True)
        Path("own.toml").write_text(definition)
        options = ["--definition", "own.toml", "--active-timeout", "1s", "--linger", "none", "--icmp-ports"]
        self.assertEqual(as_rows(table), as_csv(OFFICE, *options)[1])
        again = silent(OFFICE, definition=Path("own.toml"), active_timeout="1s", linger="none", icmp_ports=True)
        self.assertEqual(as_rows(again), as_rows(table))

    def test_a_filter_selects_packets(self):
        table = silent(OFFICE, filter="udp port 53")
        self.assertEqual(set(table["protocol"].to_pylist()), {17})
        self.assertEqual(as_rows(table), as_csv(OFFICE, "udp port 53")[1])

    def test_what_the_program_refuses_is_an_exception_with_its_words(self):
        for options, words in [
            ({"path": "absent.pcap"}, "absent.pcap"),
            ({"path": OFFICE, "definition": "[[feature]]\nop = 1\n"}, "line 1"),
            ({"path": OFFICE, "idle_timeout": "soon"}, "soon"),
            ({"path": OFFICE, "no_such_thing": True}, "--no-such-thing"),
        ]:
            with self.assertRaises(turboflow.TurboflowError) as raised:
                turboflow.read(**options)
            self.assertIn(words, str(raised.exception))
        with self.assertRaises(TypeError):
            turboflow.read(OFFICE, write="flows.csv")
        with self.assertRaises(ValueError):
            turboflow.read([])
        self.assertEqual(children(), set())

    def test_damage_is_a_warning_and_the_records_are_there(self):
        Path("cut.pcap").write_bytes(OFFICE.read_bytes()[:5000])
        with self.assertWarns(turboflow.TurboflowWarning) as warned:
            table = turboflow.read("cut.pcap").read_all()
        self.assertIn("packet 41", str(warned.warning))
        self.assertEqual(as_rows(table), as_csv("cut.pcap")[1])
        self.assertGreater(table.num_rows, 0)
        with warnings.catch_warnings():
            warnings.simplefilter("error", turboflow.TurboflowWarning)
            self.assertGreater(turboflow.read(OFFICE).read_all().num_rows, 0)
            with self.assertRaises(turboflow.TurboflowWarning):
                turboflow.read("cut.pcap").read_all()

    def test_the_program_ends_with_its_reader(self):
        for number, end in enumerate((lambda reader: reader.close(), lambda _: None)):
            # The program waits for more of a capture that never ends.
            endless = f"endless-{number}.pcap"
            os.mkfifo(endless)
            pipe = os.open(endless, os.O_RDWR)
            threading.Thread(target=os.write, args=(pipe, OFFICE.read_bytes()), daemon=True).start()
            reader = turboflow.read(endless)
            self.assertEqual(len(children()), 1)
            end(reader)
            del reader
            gc.collect()
            self.assertEqual(children(), set())

    def test_examples_read_what_the_program_writes(self):
        names, rows = as_csv(OFFICE)
        total = sum(int(row[names.index("bytes")]) for row in rows)
        for example in sorted(EXAMPLES.glob("*.py")):
            ran = subprocess.run([sys.executable, example, OFFICE], capture_output=True, text=True)
            self.assertEqual(ran.returncode, 0, ran.stderr)
            self.assertIn(f"bytes in all: {total}\n", ran.stdout, example.name)

    def test_feature_sets_have_every_packet(self):
        for name, (there, back) in {
            "nfstream": ("src2dst_packets", "dst2src_packets"),
            "cicflowmeter": ("Total Fwd Packet", "Total Bwd packets"),
        }.items():
            for path in [OFFICE, *captures()[::10]]:
                table = silent(path, definition=name)
                plain = silent(path, biflow=True)
                ours = sum(plain["packets"].to_pylist()) + sum(plain["reverse_packets"].to_pylist())
                theirs = sum(table[there].to_pylist()) + sum(table[back].to_pylist())
                self.assertEqual(theirs, ours, path)
            self.assertEqual(table.schema, turboflow.FEATURE_SETS[name].schema)
            listed = ", ".join(turboflow.unavailable(name)).split(", ")
            self.assertEqual(set(listed) & set(table.column_names), set())
        with self.assertRaises(ValueError):
            turboflow.read(OFFICE, definition="nfstream", biflow=False)

    def test_features_of_a_flow_are_as_computed_by_hand(self):
        # One TCP connection: SYN, SYN+ACK, ACK and so on, of known sizes.
        table = silent(OFFICE, definition="cicflowmeter")
        rows = table.to_pylist()
        tcp = [row for row in rows if row["Protocol"] == 6]
        self.assertGreater(len(tcp), 10)
        for row in tcp:
            count = row["Total Fwd Packet"] + row["Total Bwd packets"]
            length = row["Total Length of Fwd Packet"] + row["Total Length of Bwd Packet"]
            self.assertAlmostEqual(row["Packet Length Mean"], length / count)
            if row["Flow Duration"] > 0:
                self.assertAlmostEqual(row["Flow IAT Mean"] * (count - 1) / row["Flow Duration"], 1, places=2)
        self.assertTrue(all(row["SYN Flag Count"] == 0 for row in rows if row["Protocol"] != 6))
        self.assertIn(2, {row["SYN Flag Count"] for row in tcp})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
