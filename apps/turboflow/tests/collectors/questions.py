# SPDX-License-Identifier: Apache-2.0
"""Asks random questions of `turboflow show`, and compares its answers with DuckDB's on the same records.

    TURBOFLOW=PROGRAM python questions.py COUNT FLOWS.parquet BIFLOWS.parquet

DuckDB also writes a third file, beside the first one, with columns of texts, floats and missing values. DuckDB
filters and aggregates; this script does what DuckDB cannot do (order addresses, add empty time buckets).
"""

import csv
import ipaddress
import os
import subprocess
import sys
from random import Random

import duckdb

SEED = 36
COUNT, FLOWS, BIFLOWS = int(sys.argv[1]), sys.argv[2], sys.argv[3]
SECOND = 10**9
WITH_PORTS = "protocol in (6, 17, 33, 132, 136)"
PORTS = [22, 53, 80, 443, 5353, 8080, 40_000]
NUMBERS = {
    "src_port": PORTS,
    "dst_port": PORTS,
    "protocol": [1, 6, 17, 58],
    "packets": [1, 2, 5, 20],
    "bytes": [60, 100, 1_000, 20_000],
    "tcp_flags": [0, 2, 18, 27],
    "end_reason": [1, 3, 4],
}
# Each key in the language of questions, in SQL, and the type of its values.
KEYS = {
    **{name: (name, "number") for name in NUMBERS if name not in ("packets", "bytes")},
    "src_addr": ("src_addr", "address"),
    "dst_addr": ("dst_addr", "address"),
    "src_addr/24": ("masked(src_addr, 24, 64)", "network"),
    "dst_addr/8/32": ("masked(dst_addr, 8, 32)", "network"),
    "bytes:1k": ("bytes // 1000 * 1000", "number"),
    "packets:5": ("packets // 5 * 5", "number"),
    "duration:100ms": ("duration // 100000000 * 100000000", "number"),
    "first_ns:10s": ("first_ns // 10000000000 * 10000000000", "number"),
    "last_ns:1s": ("last_ns // 1000000000 * 1000000000", "number"),
}
WIDTHS = {"first_ns:10s": 10 * SECOND, "last_ns:1s": SECOND}
# Each measure in the language of questions, and in SQL.
MEASURES = {
    "records": "count(*)",
    "packets": "sum(packets)",
    "bytes": "sum(bytes)",
    "first_ns": "min(began)",
    "last_ns": "max(ended)",
    "max(bytes)": "max(bytes)",
    "min(packets)": "min(packets)",
    "sum(duration)": "sum(duration)",
    "tcp_flags": "bit_or(tcp_flags)",
    "bytes_per_packet": "sum(bytes)::double / sum(packets)::double",
    "bps": "sum(bytes)::double * 8e9 / nullif(max(last_ns) - min(first_ns), 0)::double",
}
TOTALS = {
    "records": "count(*)",
    "total_packets": "sum(packets + coalesce(reverse_packets, 0))",
    "total_bytes": "sum(bytes + coalesce(reverse_bytes, 0))",
    "reverse_bytes": "coalesce(sum(reverse_bytes), 0)",
    "first_ns": "min(began)",
}

random = Random(SEED)
base = duckdb.connect()
base.execute("set threads = 1")


def masked(address: str, v4: int, v6: int) -> str:
    length = v6 if ":" in address else v4
    return str(ipaddress.ip_network(f"{address}/{length}", strict=False))


def within(address: str, network: str) -> bool:
    return ipaddress.ip_address(address) in ipaddress.ip_network(network)


base.create_function("masked", masked, ["VARCHAR", "INTEGER", "INTEGER"], "VARCHAR")
base.create_function("within", within, ["VARCHAR", "VARCHAR"], "BOOLEAN")
for table, file in (("flows", FLOWS), ("biflows", BIFLOWS)):
    columns = [row[0] for row in base.execute(f"describe select * from '{file}'").fetchall()]
    whole = [
        f"epoch_ns({name}) as {name}" if name.endswith("_ns") else f"{name}::hugeint as {name}"
        if name in NUMBERS or name.startswith("reverse_") and "addr" not in name else name
        for name in columns
    ]
    first, last = ("least(first_ns, reverse_first_ns)", "greatest(last_ns, reverse_last_ns)") \
        if "reverse_first_ns" in columns else ("first_ns", "last_ns")
    base.execute(
        f"create table {table} as select *, ended - began as duration from (select *, {first} as began, {last} as ended"
        f" from (select {', '.join(whole)}, file_row_number as row"
        f" from read_parquet('{file}', file_row_number = true)))"
    )
VARIED = os.path.join(os.path.dirname(FLOWS), "varied.parquet")
APPLICATIONS = ["DNS", "TLS.NetFlix", "tls", "Übertragung", "QUIC"]
base.execute(
    f"create table varied as select * replace (row_number() over () as row), case row % 7 {{}} end as application,"
    " case when row % 5 != 1 then bytes::double / (packets + row % 3)::double end as load,"
    " case when row % 3 != 2 then (bytes::bigint * 7919) % 101 end as queue from flows".format(
        " ".join(f"when {at} then '{name}'" for at, name in enumerate(APPLICATIONS)))
)
base.execute(f"copy (select src_addr, dst_addr, end_reason::utinyint as end_reason, packets::bigint as packets,"
             f" bytes::bigint as bytes, application, load, queue from varied order by row) to '{VARIED}'"
             " (format parquet, row_group_size 2048)")
VARIED_KEYS = {"application": "text", "load": "float", "queue": "number", "end_reason": "number"}
VARIED_MEASURES = {
    "records": ("count(*)", "number"),
    "packets": ("sum(packets)", "number"),
    "max(bytes)": ("max(bytes)", "number"),
    "bytes_per_packet": ("sum(bytes)::double / sum(packets)::double", "float"),
    "sum(queue)": ("coalesce(sum(queue), 0)", "number"),
    "max(queue)": ("max(queue)", "number"),
}
ADDRESSES = [row[0] for row in base.execute("select distinct src_addr from flows order by 1").fetchall()]


def test() -> tuple[str, str]:
    """A random condition, in the language of `turboflow show` and in SQL."""
    address = random.choice(ADDRESSES)
    name = random.choice(list(NUMBERS))
    number, other = sorted(random.sample(NUMBERS[name], 2))
    sign = random.choice(["==", "!=", "<", "<=", ">", ">="])
    port = random.choice(PORTS)
    network = masked(address, 16, 48)
    either = f"(src_port = {port} or dst_port = {port})"
    return random.choice([
        (f"{name} {sign} {number}", f"{name} {sign.replace('==', '=')} {number}"),
        (f"{name} in ({number}, {other})", f"{name} in ({number}, {other})"),
        (f"{name} in {number}-{other}", f"{name} between {number} and {other}"),
        ("tcp_flags has S", "(tcp_flags & 2) = 2"),
        ("duration > 50ms", "duration > 50000000"),
        ("bytes/packets >= 90", "bytes::double / packets::double >= 90"),
        (f"host {address}", f"(src_addr = '{address}' or dst_addr = '{address}')"),
        (f"src host {address}", f"src_addr = '{address}'"),
        (f"dst net {network}", f"within(dst_addr, '{network}')"),
        (f"src_addr in {network}", f"within(src_addr, '{network}')"),
        (f"port {port}", f"({WITH_PORTS} and {either})"),
        (f"tcp port {port}", f"(protocol = 6 and {either})"),
        ("udp", "protocol = 17"),
        ("ip6", "contains(src_addr, ':')"),
    ])


def condition(depth: int = 2) -> tuple[str, str]:
    shape = random.choice(["test", "and", "or", "not"]) if depth else "test"
    if shape == "test":
        house, sql = test()
        # An absent value meets no condition.
        return house, f"coalesce({sql}, false)"
    house, sql = condition(depth - 1)
    if shape == "not":
        return f"not ({house})", f"not ({sql})"
    further, further_sql = condition(depth - 1)
    return f"({house}) {shape} ({further})", f"({sql}) {shape} ({further_sql})"


def plain(value: object, kind: str) -> object:
    """Converts a value so that it is ordered as in an answer: missing values first, IPv4 before IPv6."""
    if value in (None, ""):
        return (0,)
    if kind == "text":
        return (1, value)
    if kind == "address":
        address = ipaddress.ip_address(value)
        return (address.version, int(address))
    if kind == "network":
        network = ipaddress.ip_network(value)
        return (network.version, int(network.network_address), network.prefixlen)
    return (1, float(value) if kind == "float" else int(value))


def shown(arguments: list[str]) -> list[list[str]]:
    ran = subprocess.run([os.environ["TURBOFLOW"], "show", *arguments, "--format", "csv"],
                         capture_output=True, text=True, check=False)
    assert ran.returncode == 0, (arguments, ran.stderr)
    return list(csv.reader(ran.stdout.splitlines()))[1:]


def asked(sql: str) -> list[tuple]:
    return base.execute(sql).fetchall()


def ranked(rows: list[tuple], by: int, keys: int, ascending: bool, top: int) -> list[tuple]:
    """Sorts rows by one column, and rows with equal values in it by their keys. A `top` of 0 keeps all rows."""
    rows = sorted(rows, key=lambda row: row[:keys])
    rows = sorted(rows, key=lambda row: row[by], reverse=not ascending)
    return rows[:top] if top else rows


def compare(arguments: list[str], expected: list[tuple], kinds: list[str]) -> None:
    found = [tuple(map(plain, row, kinds)) for row in shown(arguments)]
    if found != expected:
        wrong = next((pair for pair in zip(found, expected) if pair[0] != pair[1]), (len(found), len(expected)))
        sys.exit(f"differs: turboflow show {arguments}\n  show, DuckDB: {wrong}")


def of_records() -> int:
    """Compares the first records in the order of a column."""
    house, where = condition()
    by = random.choice(["bytes", "packets", "dst_port", "duration", "first_ns"])
    ascending, top = random.random() < 0.3, random.choice([1, 5, 50])
    order = "asc" if ascending else "desc"
    names = ["src_addr", "dst_addr", "src_port", "protocol", "bytes", "first_ns"]
    kinds = ["address", "address", *["number"] * 4]
    rows = asked(f"select {', '.join(names)} from flows where {where} order by {by} {order}, row limit {top}")
    arguments = [FLOWS, "--where", house, "--by", by, "--select", ",".join(names), "--top", str(top)]
    compare(arguments + ["--ascending"] * ascending, [tuple(map(plain, row, kinds)) for row in rows], kinds)
    return len(rows)


def of_groups() -> int:
    """Compares groups by one to four keys."""
    house, where = condition()
    file, table, measures = random.choice([(FLOWS, "flows", MEASURES)] * 3 + [(BIFLOWS, "biflows", TOTALS)])
    keys = {key: KEYS[key] for key in random.sample(list(KEYS), random.choice([1, 1, 2, 3]))}
    records = f"(select * from {table} where {where})"
    if random.random() < 0.2:
        keys["host"] = ("host", "address")
        records = (f"(select *, src_addr as host from {table} where {where} union all"
                   f" select *, dst_addr as host from {table} where {where} and src_addr != dst_addr)")
    # A field that is a key cannot be a measure too.
    free = [name for name in measures if name != "tcp_flags" or name not in keys]
    chosen = random.sample(free, random.choice([2, 3, 4]))
    by = random.choice(chosen)
    ascending, top = random.random() < 0.3, random.choice([0, 0, 1, 7])
    kinds = [kind for _, kind in keys.values()]
    kinds += ["float" if name in ("bps", "bytes_per_packet") else "number" for name in chosen]
    # A rate within a time bucket is taken over the width of the bucket.
    width = next((WIDTHS[key] for key in keys if key in WIDTHS), None)
    of_width = {"bps": f"sum(bytes)::double * 8e9 / {width}::double"} if width else {}
    columns = [sql for sql, _ in keys.values()] + [{**measures, **of_width}[name] for name in chosen]
    sql = f"select {', '.join(columns)} from {records} group by {', '.join(map(str, range(1, len(keys) + 1)))}"
    rows = [tuple(map(plain, row, kinds)) for row in asked(sql)]
    arguments = [file, "--where", house, "--group-by", ",".join(keys), "--by", by,
                 "--select", ",".join(chosen), "--top", str(top)]
    rows = ranked(rows, len(keys) + chosen.index(by), len(keys), ascending, top)
    compare(arguments + ["--ascending"] * ascending, rows, kinds)
    return len(rows)


def of_time() -> int:
    """Compares packets and bytes that are spread over time buckets, as integers that add up to the totals."""
    house, where = condition(1)
    width, text = random.choice([(SECOND // 10, "100ms"), (SECOND, "1s"), (10 * SECOND, "10s")])
    key = random.choice([None, "protocol", "dst_addr"])
    columns = ["time"] + ([key] if key else [])
    kinds = ["number"] + ([KEYS[key][1]] if key else []) + ["number"] * 3

    def part(amount: str) -> str:
        def until(end: str) -> str:
            return f"(({amount} * least(greatest({end} - f, 0), length) + length // 2) // length)"

        return f"({until(f'(least((bucket + 1) * {width} - 1, l) + 1)')} - {until(f'greatest(bucket * {width}, f)')})"

    spread = (f"(select *, first_ns::hugeint as f, last_ns::hugeint as l, (last_ns - first_ns + 1)::hugeint as length,"
              f" unnest(range(first_ns // {width}, last_ns // {width} + 1))::hugeint as bucket"
              f" from flows where {where})")
    keys = f"bucket * {width}" + (f", {key}" if key else "")
    sql = (f"select {keys}, count(*) filter (bucket = f // {width}), sum({part('packets')}), sum({part('bytes')})"
           f" from {spread} group by {', '.join(map(str, range(1, len(columns) + 1)))}")
    rows = [tuple(map(plain, row, kinds)) for row in asked(sql)]
    if rows and not key:
        there = {row[0][1] for row in rows}
        silent = set(range(min(there), max(there), width)) - there
        rows += [((1, time), (1, 0), (1, 0), (1, 0)) for time in silent]
    compare([FLOWS, "--where", house, "--group-by", ",".join([f"time:{text}"] + columns[1:]),
             "--select", "records,packets,bytes"], ranked(rows, 0, len(columns), True, 0), kinds)
    return len(rows)


def varied_condition() -> tuple[str, str]:
    """A random condition on texts, floats and missing values."""
    name, other = random.sample(APPLICATIONS, 2)
    part = random.choice(["tl", "NET", "q", "über"])
    column = random.choice(["load", "queue", "application"])
    load = random.choice([60, 74.5, 200])
    sign = random.choice(["<", "<=", ">", ">="])
    house, sql = random.choice([
        (f"application == '{name}'", f"application = '{name}'"),
        (f"application != '{name}'", f"application != '{name}'"),
        (f"application in ('{name}', '{other}')", f"application in ('{name}', '{other}')"),
        (f"application has {part}", f"contains(lower(application), '{part.lower()}')"),
        (f"{column} == none", f"{column} is null"),
        (f"load {sign} {load}", f"load {sign} {load}"),
        (f"queue {sign} 50", f"queue {sign} 50"),
        ("packets > 0", "true"),
    ])
    return house, f"coalesce({sql}, false)"


def of_varied_records() -> int:
    """Compares the first records in the order of a column with missing values, which are less than all others."""
    house, where = varied_condition()
    by = random.choice(["application", "load", "queue"])
    ascending, top = random.random() < 0.5, random.choice([1, 5, 500])
    order = "asc nulls first" if ascending else "desc nulls last"
    kinds = ["address", *VARIED_KEYS.values()]
    names = ["src_addr", *VARIED_KEYS]
    rows = asked(f"select {', '.join(names)} from varied where {where} order by {by} {order}, row limit {top}")
    arguments = [VARIED, "--where", house, "--by", by, "--select", ",".join(names), "--top", str(top)]
    compare(arguments + ["--ascending"] * ascending, [tuple(map(plain, row, kinds)) for row in rows], kinds)
    return len(rows)


def of_varied_groups() -> int:
    """Compares groups by texts, floats and missing values."""
    house, where = varied_condition()
    keys = random.sample(list(VARIED_KEYS), random.choice([1, 1, 2]))
    chosen = random.sample([name for name in VARIED_MEASURES if name not in keys], 2)
    by, ascending, top = random.choice(chosen), random.random() < 0.5, random.choice([0, 3])
    kinds = [VARIED_KEYS[key] for key in keys] + [VARIED_MEASURES[name][1] for name in chosen]
    columns = keys + [VARIED_MEASURES[name][0] for name in chosen]
    grouped = ", ".join(map(str, range(1, len(keys) + 1)))
    rows = asked(f"select {', '.join(columns)} from varied where {where} group by {grouped}")
    rows = [tuple(map(plain, row, kinds)) for row in rows]
    arguments = [VARIED, "--where", house, "--group-by", ",".join(keys), "--by", by,
                 "--select", ",".join(chosen), "--top", str(top)]
    rows = ranked(rows, len(keys) + chosen.index(by), len(keys), ascending, top)
    compare(arguments + ["--ascending"] * ascending, rows, kinds)
    return len(rows)


ASKED = [of_records, of_groups, of_groups, of_groups, of_time, of_varied_records, of_varied_groups]
asks = [random.choice(ASKED)() for _ in range(COUNT)]
assert sum(rows > 0 for rows in asks) >= COUNT // 2, "most questions have no answer"
print(f"{len(asks)} questions, {sum(rows > 0 for rows in asks)} with rows, {sum(asks)} rows: all equal")
