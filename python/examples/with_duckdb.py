# SPDX-License-Identifier: Apache-2.0
"""Number and bytes of flows by the second in which they began, in SQL: `python with_duckdb.py office.pcap`."""

import sys

import duckdb
import turboflow

# DuckDB finds the records by the name of the variable, and reads them as they arrive.
flows = turboflow.read(sys.argv[1])
duckdb.sql("CREATE TABLE flows_kept AS SELECT * FROM flows")
print(duckdb.sql("""
    SELECT date_trunc('second', first_ns) AS second, count(*) AS flows, sum(bytes) AS bytes
    FROM flows_kept GROUP BY ALL ORDER BY second LIMIT 5
"""))
print("bytes in all:", duckdb.sql("SELECT sum(bytes) FROM flows_kept").fetchall()[0][0])
