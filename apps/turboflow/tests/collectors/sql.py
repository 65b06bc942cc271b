# SPDX-License-Identifier: Apache-2.0
"""Compares the answers of `turboflow sql` with DuckDB's on the same files.

    TURBOFLOW=PROGRAM python sql.py FLOWS.parquet BIFLOWS.parquet
"""

import csv
import os
import subprocess
import sys

import duckdb

FLOWS, BIFLOWS = sys.argv[1:3]
KEY = "src_addr, dst_addr, src_port, dst_port, protocol"
# Both engines accept these queries unchanged.
QUERIES = [
    "select src_addr, sum(bytes) b, count(*) n from flows group by 1 order by b desc, src_addr limit 10",
    "select protocol, dst_port, sum(packets) p from flows group by 1, 2",
    "select src_addr, count(distinct dst_port) ports from flows where protocol = 6 group by 1 having count(distinct dst_port) > 1",
    "select protocol, avg(bytes) a, min(bytes), max(bytes), median(bytes) m from flows group by 1",
    "select src_addr, bytes, row_number() over (partition by src_addr order by bytes desc, first_ns, dst_addr, src_port) r "
    "from flows qualify r <= 2",
    f"select {KEY}, bytes - coalesce(lag(bytes) over (partition by protocol order by bytes, first_ns, {KEY}), 0) d from flows",
    f"select {KEY}, f.bytes, b.bytes from flows f join biflows b using ({KEY})",
    f"select count(*) n from flows f left anti join biflows b using ({KEY})",
    "select src_addr from flows intersect select dst_addr from flows",
    "select src_addr, sum(bytes) b from flows where src_addr like '10.%' or dst_addr in "
    "(select dst_addr from biflows where bytes > 10000) group by 1",
    "with hosts as (select src_addr h, bytes from flows union all select dst_addr, bytes from flows) "
    "select h, sum(bytes) b from hosts group by h",
    "select case when bytes < 1000 then 'small' else 'large' end size, count(*) n, bit_or(tcp_flags) f from flows group by 1",
    "select count(*) n from flows where last_ns - first_ns > interval '1 second'",
    "select protocol, date_trunc('minute', first_ns) as start_ns, sum(bytes) b from flows group by 1, 2",
    "select count(*) n, min(bytes) from flows where bytes > (select avg(bytes) from biflows)",
    "select coalesce(reverse_bytes, 0) b, count(*) n from biflows group by 1 order by 2 desc, 1",
    "select round(bytes / packets, 3) a, upper(src_addr) u, length(dst_addr) l from flows where packets > 0",
]
# Queries that DuckDB writes differently. In DataFusion a quotient of integers is an integer, as in
# the standard.
THEIRS = {
    "bytes / packets": "bytes // packets",
    "left anti join": "anti join",
    "last_ns - first_ns > interval '1 second'": "epoch_ns(last_ns) - epoch_ns(first_ns) > 1000000000",
    "date_trunc('minute', first_ns)": "epoch_ns(first_ns) // 60000000000 * 60000000000",
}


def seen(value: object) -> object:
    """Makes values of both engines comparable: numbers are rounded to nine digits, and empty ones are None."""
    if value in (None, ""):
        return None
    try:
        return float(f"{float(value):.9g}")
    except ValueError:
        return value


def in_order(rows: list[tuple]) -> list[tuple]:
    return sorted(rows, key=repr)


connection = duckdb.connect()
connection.execute("set timezone = 'UTC'")
connection.execute(f"create view flows as select * from '{FLOWS}'")
connection.execute(f"create view biflows as select * from '{BIFLOWS}'")
for query in QUERIES:
    theirs = query
    for ours, other in THEIRS.items():
        theirs = theirs.replace(ours, other)
    expected = connection.execute(theirs).fetchall()
    command = [os.environ["TURBOFLOW"], "sql", query, FLOWS, "--table", f"biflows={BIFLOWS}", "--format", "csv"]
    answer = subprocess.run(command, check=False, capture_output=True, text=True)
    if answer.returncode:
        sys.exit(f"{query}: {answer.stderr}")
    got = list(csv.reader(answer.stdout.splitlines()))[1:]
    if in_order([tuple(map(seen, row)) for row in got]) != in_order([tuple(map(seen, row)) for row in expected]):
        sys.exit(f"{query}: sql {got[:5]}, DuckDB {expected[:5]}")
    if not got:
        sys.exit(f"{query}: no rows, which shows nothing")
print(f"{len(QUERIES)} queries, all equal")
