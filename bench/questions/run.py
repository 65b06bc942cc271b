#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares queries of a Parquet file in `turboflow show`, `turboflow sql` (if installed), DuckDB and Polars.

Each query is a whole process; `sql`, DuckDB and Polars have one thread.

    target/tools/python-lakehouse/bin/python bench/questions/run.py PROGRAM FLOWS.parquet [REPETITIONS]

Prints, for each program, the minimum processor time in seconds, including the start of the process, and the wall time
and peak memory of that run. `show` computes more columns than the others: share, first and last.
scripts/install-test-tools.sh installs DuckDB and Polars.
"""

import os
import subprocess
import sys
import time

PROGRAM, FILE = sys.argv[1:3]
REPETITIONS = int(sys.argv[3]) if len(sys.argv) > 3 else 3
SUMS = "count(*) as records, sum(packets) as packets, sum(bytes) as bytes"
# The question, the arguments of `show`, and the query in SQL, with `{bucket}` in place of a time bucket.
QUESTIONS = [
    ("20 largest sources", ["--group-by", "src_addr", "--top", "20"],
     f"select src_addr, {SUMS} from flows group by src_addr order by bytes desc limit 20"),
    ("buckets of 10 ms, spread", ["--group-by", "time:10ms", "--top", "0"],
     f"select {{bucket}} as start, {SUMS} from flows group by start order by start"),
    ("buckets of 10 ms, whole records", ["--group-by", "first_ns:10ms", "--top", "0"],
     f"select {{bucket}} as start, {SUMS} from flows group by start order by start"),
    ("20 largest ports", ["--group-by", "protocol,dst_port", "--top", "20"],
     f"select protocol, dst_port, {SUMS} from flows group by protocol, dst_port order by bytes desc limit 20"),
    ("TCP and port 443", ["--where", "tcp and port 443", "--top", "1"],
     f"select {SUMS} from flows where protocol = 6 and (src_port = 443 or dst_port = 443)"),
]
DUCKDB = """
import duckdb
connection = duckdb.connect()
connection.execute("set threads = 1")
connection.execute("create view flows as select * from '{file}'")
connection.execute({sql!r}).fetchall()
"""
POLARS = """
import polars
context = polars.SQLContext(flows=polars.scan_parquet('{file}'))
context.execute({sql!r}, eager=True)
"""
BUCKET = "time_bucket(interval '10 milliseconds', first_ns::timestamp)"


def measured(command: list[str]) -> tuple[float, float, int]:
    """Processor time (s), wall time (s) and peak memory (KiB) of the run with the least processor time."""
    runs = []
    for _ in range(REPETITIONS):
        start = time.monotonic()
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, env={**os.environ, "POLARS_MAX_THREADS": "1"})
        _, status, usage = os.wait4(child.pid, 0)
        if os.waitstatus_to_exitcode(status):
            return (float("nan"), float("nan"), 0)
        runs.append((usage.ru_utime + usage.ru_stime, time.monotonic() - start, usage.ru_maxrss))
    return min(runs)


def row(name: str, figures: tuple[float, float, int], basis: float | None) -> None:
    processor, wall, memory = figures
    times = f"{processor / basis:6.2f} times DuckDB" if basis else ""
    print(f"  {name:10} {processor:7.2f} s processor {wall:7.2f} s wall {memory // 1024:6} MiB {times}", flush=True)


def main() -> None:
    for what, arguments, sql in QUESTIONS:
        print(what)
        code = DUCKDB.format(file=FILE, sql=sql.format(bucket=BUCKET))
        duckdb = measured([sys.executable, "-c", code])
        show = measured([PROGRAM, "show", FILE, "--format", "csv", *arguments])
        row("show", show, duckdb[0])
        row("DuckDB", duckdb, None)
        query = sql.format(bucket="date_bin(interval '10 milliseconds', first_ns)")
        row("sql", measured([PROGRAM, "sql", query, FILE, "--format", "csv", "--threads", "1"]), duckdb[0])
        code = POLARS.format(file=FILE, sql=sql)
        if "{bucket}" not in sql:
            row("Polars", measured([sys.executable, "-c", code]), None)


main()
