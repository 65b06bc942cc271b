# SPDX-License-Identifier: Apache-2.0
"""Compares Parquet files, as Iceberg tables and in DuckDB, with CSV files of the same records.

    python lakehouse.py ADD_FILES FOLDER

FOLDER has pairs TABLE-NUMBER.parquet and TABLE-NUMBER.csv.
"""

import csv
import ipaddress
import runpy
import sys
from collections import defaultdict
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.catalog import load_catalog

ADD_FILES, FOLDER = sys.argv[1], Path(sys.argv[2])
CATALOG = {"type": "sql", "uri": f"sqlite:///{FOLDER}/catalog.db", "warehouse": f"file://{FOLDER}/warehouse"}


def add_files(table: str, files: list[Path]) -> None:
    properties = [word for key, value in CATALOG.items() for word in ("--property", f"{key}={value}")]
    # All records of a sample are within one hour.
    partition = ["--partition", "first_time:hour"] if table.endswith(".flows") else []
    sys.argv = [ADD_FILES, table, *map(str, files), *properties, *partition]
    runpy.run_path(ADD_FILES, run_name="__main__")


def is_whole(text: str) -> bool:
    return text == "" or text.isdigit()


def sums_of_csv(files: list[Path]) -> tuple[int, dict]:
    """The number of records, and the sum of each column of integers."""
    rows = [row for file in files for row in csv.DictReader(file.open())]
    # A column without values may have any type.
    has_values = [name for name in rows[0] if any(row[name] for row in rows)]
    names = [name for name in has_values if all(is_whole(row[name]) for row in rows)]
    return len(rows), {name: sum(int(row[name] or 0) for row in rows) for name in names}


def check_derived(rows: pa.Table) -> None:
    """Times in microseconds and addresses as bytes agree with the columns that they are derived from."""
    names = set(rows.column_names)
    for name in rows.column_names:
        if name.endswith("_time"):
            source = name.removesuffix("_time")
            nanoseconds = rows[source if source in names else f"{source}_ns"]
            assert rows[name].type == pa.timestamp("us", "UTC"), rows[name].type
            assert pc.divide(nanoseconds, 1000).equals(rows[name].cast(pa.int64())), name
        if name.endswith("_bytes") and name.removesuffix("_bytes") in names:
            for text, octets in zip(rows[name.removesuffix("_bytes")].to_pylist(), rows[name].to_pylist()):
                address = ipaddress.IPv6Address(octets)
                assert str(address.ipv4_mapped or address) == text, (name, text, octets)


def main() -> None:
    tables = defaultdict(list)
    for file in sorted(FOLDER.glob("*.parquet")):
        tables[file.stem.rsplit("-", 1)[0]].append(file)
    catalog = load_catalog("default", **CATALOG)
    for name, files in tables.items():
        add_files(f"net.{name}", files)
        add_files(f"net.{name}", files)  # Nothing comes twice.
        records, sums = sums_of_csv([file.with_suffix(".csv") for file in files])
        table = catalog.load_table(f"net.{name}")
        assert len(table.spec().fields) == (name == "flows"), table.spec()
        rows = table.scan().to_arrow()
        assert rows.num_rows == records, (name, rows.num_rows, records)
        # Sums of times need more than 64 bits.
        got = {column: sum(value or 0 for value in rows[column].to_pylist()) for column in sums}
        assert got == sums, (name, got, sums)
        check_derived(rows)
        if {"dst_port", "packets"} <= sums.keys():
            some = table.scan(row_filter="dst_port = 443 and packets > 1").to_arrow()
            mask = pc.and_(pc.equal(rows["dst_port"], 443), pc.greater(rows["packets"], 1))
            assert some.num_rows == pc.sum(mask).as_py() > 0, (name, some.num_rows)
        wanted = ", ".join(f'coalesce(sum("{column}"), 0)::HUGEINT' for column in sums)
        listed = ", ".join(f"'{file}'" for file in files)
        answer = duckdb.sql(f"SELECT count(*), {wanted} FROM read_parquet([{listed}])").fetchall()[0]
        assert answer == (records, *sums.values()), (name, answer, sums)
    print(f"{len(tables)} tables, {sum(map(len, tables.values()))} files")


if __name__ == "__main__":
    main()
