#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adds Parquet files of `turboflow record --parquet-types lake` to an Iceberg table, without copying them.

    contrib/lakehouse/add_files.py net.flows FILE... [--partition first_time:hour]
        [--catalog NAME] [--property KEY=VALUE]...

If the table does not exist, it is created with the columns of the first file. Files that are already in
the table are skipped, so a call can be repeated. Needs pyiceberg and pyarrow.
"""

import argparse
import os

import pyarrow.parquet as pq
from pyiceberg.catalog import load_catalog
from pyiceberg.transforms import DayTransform, HourTransform

TRANSFORMS = {"hour": HourTransform(), "day": DayTransform()}


def address(file: str) -> str:
    """The file's name in the table. It is absolute, because readers may run in other folders."""
    return file if "://" in file else os.path.abspath(file)


def main() -> None:
    parser = argparse.ArgumentParser(description="Adds Parquet files of turboflow to an Iceberg table.")
    parser.add_argument("table", help="table, such as net.flows")
    parser.add_argument("files", nargs="+", metavar="FILE", help="Parquet file written with --parquet-types lake")
    parser.add_argument("--catalog", default="default", help="a catalog in pyiceberg's configuration")
    parser.add_argument("--property", action="append", default=[], metavar="KEY=VALUE", help="catalog property")
    parser.add_argument("--partition", metavar="COLUMN:UNIT", help="for a new table: first_time:hour or first_time:day")
    given = parser.parse_args()
    catalog = load_catalog(given.catalog, **dict(one.split("=", 1) for one in given.property))
    catalog.create_namespace_if_not_exists(given.table.rsplit(".", 1)[0])
    # The definition in a file's metadata does not apply to the whole table: other runs may have
    # another one.
    schema = pq.read_schema(given.files[0]).remove_metadata()
    is_new = not catalog.table_exists(given.table)
    table = catalog.create_table_if_not_exists(given.table, schema=schema)
    if is_new and given.partition:
        column, unit = given.partition.split(":")
        with table.update_spec() as spec:
            spec.add_field(column, TRANSFORMS[unit], f"{column}_{unit}")
    known = set(table.inspect.files()["file_path"].to_pylist()) if table.current_snapshot() else set()
    added = [file for file in map(address, given.files) if file not in known]
    if added:
        # Duplicates have been removed above, with one query instead of one per file.
        table.add_files(added, check_duplicate_files=False)
    print(f"{given.table}: {len(added)} files added, {len(given.files) - len(added)} were there")


if __name__ == "__main__":
    main()
