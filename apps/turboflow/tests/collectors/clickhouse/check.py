# SPDX-License-Identifier: Apache-2.0
"""Reads a topic into the tables of contrib/clickhouse with feed.py, in ClickHouse from PyPI (chdb), and compares
them with DuckDB's answers and with the records of one machine that saw all packets. Exits with 1 at the first
difference.

chdb has no threads for ClickHouse's table engine Kafka, so of sql/5_kafka.sql only types and views are checked.
"""

import argparse
import glob
import json
import os
import re
import subprocess
import sys
import time

import duckdb
from chdb import session

arguments = argparse.ArgumentParser()
for name in ("brokers", "topic", "folder", "contrib", "program"):
    arguments.add_argument(f"--{name}", required=True)
for name in ("packets", "sightings", "lost"):
    arguments.add_argument(f"--{name}", type=int, required=True)
arguments.add_argument("--die-after", type=int, default=0)
args = arguments.parse_args()
sys.path.insert(0, f"{args.contrib}/clickhouse")
import feed  # noqa: E402
import minutes  # noqa: E402
import served  # noqa: E402

KEY = "src_addr, dst_addr, src_port, dst_port, protocol"
SCHEMA = f"{args.contrib}/kafka/turboflow.proto:FlowMessage"


def agree(what, found, meant):
    if found != meant:
        sys.exit(f"{what}: {found}, and not {meant}")
    print(f"{what}: {found}")


class Chdb:
    """ClickHouse in this process, which stands in for a server."""

    def __init__(self, folder):
        self.folder = folder
        self.session = session.Session(folder)

    def rows(self, query):
        return [json.loads(line) for line in str(self.session.query(query, "JSONCompactEachRow")).splitlines()]

    def create(self, database):
        """Creates the tables in a database of that name. Returns the statements of 5_kafka.sql, which are not run."""
        others = []
        for path in sorted(glob.glob(f"{args.contrib}/clickhouse/sql/*.sql")):
            text = re.sub(r"--[^\n]*", "", open(path).read()).replace("turboflow.", f"{database}.")
            text = text.replace("DATABASE IF NOT EXISTS turboflow", f"DATABASE IF NOT EXISTS {database}")
            text = text.replace("'turboflow.proto", f"'{database}.proto")
            for statement in filter(str.strip, text.split(";")):
                if "5_kafka" in path:
                    others.append(statement)
                else:
                    self.session.query(statement)
        return others

    def insert(self, table, form, settings, data, filter_rows="1"):
        path = f"{self.folder}.batch"
        with open(path, "wb") as file:
            file.write(data)
        database, name = table.split(".")
        columns = self.rows(f"SELECT name, type FROM system.columns WHERE database = '{database}' AND table = '{name}'")
        names = ", ".join(f"`{column}`" for column, _ in columns)
        structure = ", ".join(f"`{column}` {kind}" for column, kind in columns)
        settings = ", ".join(f"{key} = '{value}'" for key, value in settings.items())
        self.session.query(
            f"INSERT INTO {table} ({names}) SELECT {names} FROM file('{path}', '{form}', $${structure}$$) "
            f"WHERE {filter_rows} SETTINGS {settings}, max_threads = 1"
        )


class DiesAfter:
    """A database that kills the reader after a number of insertions, before it commits the offset."""

    def __init__(self, database, insertions):
        self.database, self.left = database, insertions

    def insert(self, *batch):
        self.database.insert(*batch)
        self.left -= 1
        if self.left == 0:
            os._exit(9)


class Into:
    """Inserts into the database of another name. Leaves out the record that meets the condition `without`."""

    def __init__(self, database, name, without=""):
        self.database, self.name, self.without = database, name, without

    def insert(self, table, form, settings, data):
        kept = f"NOT ({self.without})" if self.without and table == "turboflow.inbox" else "1"
        self.database.insert(table.replace("turboflow.", f"{self.name}."), form, settings, data, kept)


def feed_into(database, group, tables, further=()):
    consumer = feed.consumer_of(args.brokers, group, further)
    feed.Feed(consumer, feed.admin_of(args.brokers), database, tables).run(True)
    consumer.close()


def read(database, group, topic=None):
    """Inserts everything in the topics, as a static member of the group, which may come back after it was killed."""
    feed_into(database, group, feed.tables_of(topic or args.topic, SCHEMA), {"group.instance.id": "one"})


def check_exactly_once(database):
    """Checks rows and sums after the reader was killed three times between insertion and commit."""
    sums = "count(), sum(packets), uniqExact(exporter, run, sequence)"
    [[records, packets, identities]] = database.rows(f"SELECT {sums} FROM turboflow.records")
    agree("packets of all records", packets, args.sightings)
    agree("records with an identity of their own", identities, records)
    files = f"read_parquet('{args.folder}/*[0-9].parquet')"
    agree("records in files", duckdb.sql(f"SELECT count(*) FROM {files}").fetchall()[0][0], records)
    for table in ("traffic_1m", "traffic_1h", "traffic_1d", "arrivals"):
        found = database.rows(f"SELECT sum(records), sum(packets) FROM turboflow.{table}")
        agree(f"records and packets in {table}", found, [[records, packets]])


def span(database):
    [[begin, end]] = database.rows(
        "SELECT toString(min(minute)), toString(max(minute) + 60) FROM turboflow.network_hops"
    )
    return f"begin = '{begin}', end = '{end}'"


def differences(found, meant):
    """The numbers of rows that are only in the first table, and only in the second."""
    return [
        duckdb.sql(f"SELECT count(*) FROM (FROM {one} EXCEPT ALL FROM {other})").fetchall()[0][0]
        for one, other in ((found, meant), (meant, found))
    ]


def check_network(database):
    """The flows of the network are those of the machine that saw all packets, in each minute and in total."""
    database.session.query(
        f"SELECT toUnixTimestamp(minute) AS minute, "
        f"replaceOne(IPv6NumToString(src_addr), '::ffff:', '') AS src_addr, "
        f"replaceOne(IPv6NumToString(dst_addr), '::ffff:', '') AS dst_addr, src_port, dst_port, protocol, "
        f"packets, bytes, lost FROM turboflow.network_flows({span(database)}) "
        f"INTO OUTFILE '{args.folder}/network.parquet' TRUNCATE FORMAT Parquet"
    )
    of = "sum(packets)::BIGINT AS packets, sum(bytes)::BIGINT AS bytes"
    minute = "epoch_ns(first_ns) // 60000000000"
    duckdb.sql(
        f"CREATE TABLE network AS SELECT minute // 60 AS minute, {KEY}, packets::BIGINT AS packets, "
        f"bytes::BIGINT AS bytes, lost FROM '{args.folder}/network.parquet' WHERE packets > 0 OR lost <> 0"
    )
    duckdb.sql(
        f"CREATE TABLE truth AS SELECT {minute} AS minute, {KEY}, {of} FROM '{args.folder}/all.parquet' GROUP BY ALL"
    )
    [found] = duckdb.sql(f"SELECT {of}, sum(lost)::BIGINT FROM network").fetchall()
    [meant] = duckdb.sql(f"SELECT {of} FROM truth").fetchall()
    agree("packets of one machine", meant[0], args.packets)
    agree("packets, bytes, losses of the network", found, (*meant, args.lost))
    duckdb.sql(f"CREATE VIEW counted AS SELECT minute, {KEY}, packets, bytes FROM network WHERE packets > 0")
    agree("keys and minutes that differ from one machine", differences("counted", "truth"), [0, 0])
    # Merges records by the plain query of docs/clickhouse.md over files.
    duckdb.sql(
        f"CREATE VIEW merged AS WITH hops AS (SELECT {KEY}, max_ttl AS ttl, sum(packets) AS packets, "
        f"sum(bytes) AS bytes FROM '{args.folder}/*[0-9].parquet' GROUP BY ALL) "
        f"SELECT {KEY}, arg_max(packets, ttl)::BIGINT AS packets, arg_max(bytes, ttl)::BIGINT AS bytes "
        f"FROM hops GROUP BY ALL"
    )
    duckdb.sql(f"CREATE VIEW whole AS SELECT {KEY}, {of} FROM truth GROUP BY ALL")
    agree("keys that differ in DuckDB", differences("merged", "whole"), [0, 0])
    [[cut]] = database.rows(
        "SELECT count() FROM (SELECT exporter, src_addr, dst_addr, src_port, dst_port, minute FROM "
        "(SELECT *, toStartOfMinute(first) AS minute FROM turboflow.records) GROUP BY ALL HAVING count() > 1)"
    )
    if cut < 100:
        sys.exit(f"only {cut} flows are longer than the active timeout")


def check_complete(database, name, without):
    """Everything has arrived except the record that meets the condition `without`, if there is one."""
    missing = database.rows(f"SELECT exporter, partition, what, records, packets, bytes FROM {name}.missing")
    waits = database.rows(f"SELECT waits_for, complete, count() FROM {name}.complete_minutes GROUP BY ALL")
    if not without:
        agree("what is missing", missing, [])
        [[waits_for, complete, minutes]] = waits
        agree("minutes complete, and who is waited for", (complete, waits_for), (1, []))
        if minutes < 4:
            sys.exit(f"only {minutes} minutes")
        return
    taken = database.rows(
        f"SELECT toString(exporter), partition, 'missing', 1, packets, bytes FROM turboflow.records WHERE {without}"
    )
    agree("the record that is missing", missing, taken)
    if {tuple(waits_for) for waits_for, complete, _ in waits if not complete} != {(taken[0][0],)}:
        sys.exit(f"minutes wait for {waits}, and not for {taken[0][0]}")


def check_kafka_tables(database, statements):
    """Checks types and views of 5_kafka.sql. Its tables that read topics are replaced by tables that store nothing."""
    for statement in statements:
        place = ", _partition UInt64 MATERIALIZED 3, _offset UInt64 MATERIALIZED 9"
        database.session.query(re.sub(r"\)\s*ENGINE = Kafka.*", f"{place}) ENGINE = Null", statement, flags=re.S))
    columns = "arraySort(groupArray((name, type)))"
    for kafka, inbox in (("kafka_records", "inbox"), ("kafka_ticks", "inbox_ticks")):
        of = f"SELECT {columns} FROM system.columns WHERE database = 'types' AND name NOT LIKE '\\_%' AND table"
        other = "AND name NOT IN ('partition', 'offset')" if kafka == "kafka_records" else ""
        agree(
            f"columns of {kafka} are those of {inbox}",
            database.rows(f"{of} = '{kafka}'") == database.rows(f"{of} = '{inbox}' {other}"),
            True,
        )
    database.session.query(
        "INSERT INTO types.kafka_records (exporter, src_addr, dst_addr, packets, time_flow_start_ns, time_flow_end_ns) "
        "SELECT 'a', unhex('0a000001'), unhex('0a000001'), 7, t, t FROM (SELECT toUnixTimestamp64Nano(now64(9)) AS t)"
    )
    found = database.rows("SELECT exporter, packets, partition, offset FROM types.records")
    agree("through the views", found, [["a", 7, 3, 9]])


def check_unreadable(database):
    """A message that the reader skipped twice is in `missing` once."""
    reader = feed.Feed(None, None, Into(database, "types"), {})
    for _ in range(2):
        reader.pass_over("flows", 3, 9, "it is cut: 'x'")
    found = database.rows("SELECT what, partition FROM types.missing WHERE what = 'unreadable'")
    agree("a message that was passed over twice", found, [["unreadable", 3]])
    found = database.rows("SELECT topic, offset, why FROM types.unreadable FINAL")
    agree("which one it was", found, [["flows", 9, "it is cut: 'x'"]])


def check_goflow2(database):
    """A table with the columns and types of goflow2's `flows_raw` can be filled from these messages."""
    database.session.query("CREATE DATABASE IF NOT EXISTS goflow2")
    database.session.query(
        "CREATE TABLE goflow2.flows_raw (time_received_ns UInt64, time_flow_start_ns UInt64, sequence_num UInt32, "
        "sampling_rate UInt64, sampler_address FixedString(16), src_addr FixedString(16), dst_addr FixedString(16), "
        "src_as UInt32, dst_as UInt32, etype UInt32, proto UInt32, src_port UInt32, dst_port UInt32, bytes UInt64, "
        "packets UInt64) ENGINE = MergeTree ORDER BY time_received_ns"
    )
    tables = {args.topic: ("goflow2.flows_raw", "Protobuf", {"format_schema": SCHEMA}, feed.as_it_is)}
    feed_into(database, "goflow2", tables)
    sums = "count(), sum(packets), sum(bytes), uniqExact(sampler_address)"
    found = database.rows(f"SELECT {sums}, min(sampling_rate), max(sampling_rate) FROM goflow2.flows_raw")
    [own] = database.rows("SELECT count(), sum(packets), sum(bytes), uniqExact(exporter) FROM turboflow.records")
    agree("goflow2's columns: records, packets, bytes, exporters, rates", found, [[*own, 1, 1]])


def killed_meter(command, part, consumer, runs):
    """Meters a part of a capture, and kills the meter once a tick says that the brokers have records of it. Adds to
    `runs` the number of these records by run."""
    meter = subprocess.Popen(command, stdin=subprocess.PIPE)
    meter.stdin.write(part)
    meter.stdin.flush()
    known, deadline = len(runs), time.monotonic() + 60
    while len(runs) == known:
        if time.monotonic() > deadline:
            sys.exit("no tick says that a record has arrived")
        for message in consumer.consume(100, 0.2):
            tick = {} if message.error() else json.loads(message.value().splitlines()[0])
            if tick.get("run_records"):
                runs.setdefault(tick["run"], tick["run_records"])
    meter.kill()
    meter.wait()


def check_killed_producer(database):
    """After a meter was killed in mid-run three times and started again, everything that its ticks cover has
    arrived."""
    topic = "killed"
    with open(f"{args.folder}/leaf1.pcap", "rb") as file:
        capture = file.read()
    to = f"kafka://{args.brokers}/{topic}?records=100"
    command = [args.program, "record", "-q", "-r", "-", "--exporter", "leaf1", "--idle-timeout", "1s", "-w", to]
    consumer = feed.consumer_of(args.brokers, "watch")
    consumer.subscribe([f"{topic}.ticks"])
    said = {}
    for quarters in (2, 1, 3):
        killed_meter(command, capture[: len(capture) * quarters // 4], consumer, said)
    consumer.close()
    again = subprocess.run(command, input=capture, check=False)
    agree("the meter that was started again ended with", again.returncode, 0)
    database.create(topic)
    read(Into(database, topic), topic, topic)
    missing = database.rows(f"SELECT * FROM {topic}.missing WHERE what != 'silent'")
    agree("what is missing of killed meters", missing, [])
    runs = database.rows(
        f"SELECT final, here >= sent, here, run FROM "
        f"(SELECT run, max(run_records) AS sent, max(final) AS final FROM {topic}.ticks GROUP BY run) AS said "
        f"JOIN (SELECT run, count() AS here FROM {topic}.records GROUP BY run) AS stored USING run ORDER BY final"
    )
    agree("runs that ended, with all that they said", [run[:2] for run in runs], [*[[False, 1]] * 3, [True, 1]])
    for _, _, here, run in runs:
        if here < said.get(int(run), 0):
            sys.exit(f"{here} records of a killed meter are here, which had sent {said[int(run)]}")


def check_dashboards(database):
    """Every query of the dashboards is answered."""
    span = "toString(min(minute)), toString(now('UTC') + 60)"
    [[begin, end]] = database.rows(f"SELECT {span} FROM turboflow.network_hops")
    begin, end = f"toDateTime('{begin}', 'UTC')", f"toDateTime('{end}', 'UTC')"
    answered = 0
    for path in sorted(glob.glob(f"{args.contrib}/grafana/dashboards/*.json")):
        for panel in json.load(open(path))["panels"]:
            for target in panel.get("targets", []):
                if "rawSql" not in target:
                    continue
                query = re.sub(r"\$__timeFilter\((\w+)\)", rf"\1 >= {begin} AND \1 <= {end}", target["rawSql"])
                query = re.sub(r"\$__timeInterval\((\w+)\)", r"toStartOfInterval(\1, INTERVAL 60 second)", query)
                query = query.replace("$__fromTime", begin).replace("$__toTime", end).replace("$__interval_s", "60")
                if "$__" in query:
                    sys.exit(f"{path}: {panel['title']}: {query}")
                rows = database.rows(query)
                if not rows and not panel["title"].startswith("What is missing"):
                    sys.exit(f"{path}: {panel['title']}: no rows: {query}")
                answered += 1
    if answered < 10:
        sys.exit(f"only {answered} queries")
    print(f"queries of dashboards answered: {answered}")


def main():
    start = time.monotonic()
    folder = f"{args.folder}/clickhouse"
    if args.die_after:
        database = Chdb(folder)
        database.create("turboflow")
        read(DiesAfter(database, args.die_after), "check")
        sys.exit("it was to be killed")
    for insertions in (1, 3, 2):
        died = subprocess.run([sys.executable, "-B", *sys.argv, "--die-after", str(insertions)], check=False)
        agree("killed after so many insertions", (insertions, died.returncode), (insertions, 9))
    database = Chdb(folder)
    database.create("turboflow")
    read(database, "check")
    check_exactly_once(database)
    check_network(database)
    check_complete(database, "turboflow", "")
    check_kafka_tables(database, database.create("types"))
    check_unreadable(database)
    check_goflow2(database)
    check_dashboards(database)
    check_killed_producer(database)
    # Takes one record in the middle of a run out of the topic.
    [[run, sequence]] = database.rows(
        "SELECT run, sequence FROM turboflow.records WHERE exporter = 'leaf2' ORDER BY sequence LIMIT 1 OFFSET 500"
    )
    without = f"exporter = 'leaf2' AND run = {run} AND sequence = {sequence}"
    database.create("gap")
    read(Into(database, "gap", without), "gap")
    check_complete(database, "gap", without)
    for name in ("fresh", "ended", "old", "losses"):
        database.create(name)
    minutes.check(database, agree)
    served.check(args, agree)
    print(f"all agree, {time.monotonic() - start:.1f} s")


main()
