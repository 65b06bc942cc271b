#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Merges records of several vantage points, from Kafka, into flows of the network in an Iceberg table: exactly once.

    contrib/lakehouse/spark_network.py --brokers HOST:PORT --topic TOPIC --checkpoint FOLDER --table lake.net.flows
        [--property spark.sql.catalog.lake.warehouse=...]... [--once]

The topic has JSON lines: `-w 'kafka://HOST:PORT/TOPIC?format=json&records=100'`, any timeouts. Records of one flow key
that overlap, or follow each other within --idle-timeout, are one flow. A router lowers the TTL by one, so the highest
TTL of a record gives its hop: vantage points of one hop are shards whose counts are added, the first hop has the
flow's packets, and packets that the last hop lacks were lost. A flow is written when no further record can belong to
it: once records have arrived that are newer by --lateness. So the last flows of a stream that ends are never written.

If this program is killed and started again, it continues from its checkpoint, and the table has each flow once. A
record that is later than --lateness is dropped by Spark: this is reported, and the exit code is 1. Needs pyspark 4.0.
"""

import argparse
import sys

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

KEY = ["src_addr", "dst_addr", "src_port", "dst_port", "protocol"]
# Run numbers are unsigned 64-bit integers, which Spark's long cannot hold.
RECORD = ("exporter string, run decimal(20,0), sequence long, src_addr string, dst_addr string, src_port int, "
          "dst_port int, protocol int, packets long, bytes long, first_ns long, last_ns long, tcp_flags int, max_ttl int")
TABLE = ("src_addr string, dst_addr string, src_port int, dst_port int, protocol int, first timestamp, first_ns long, "
         "last_ns long, packets long, bytes long, lost long, tcp_flags int, records int, path array<array<string>>")


def records(lines: DataFrame, lateness: str) -> DataFrame:
    """Parses the lines and drops duplicate records. A line that cannot be parsed ends the job."""
    lines = lines.select(F.explode(F.split(F.col("value").cast("string"), "\n")).alias("line")).where("line <> ''")
    parsed = lines.select(F.from_json("line", RECORD, {"mode": "FAILFAST"}).alias("record")).select("record.*")
    timed = parsed.withColumn("first", F.timestamp_micros(F.expr("first_ns div 1000"))).withWatermark("first", lateness)
    return timed.dropDuplicatesWithinWatermark(["exporter", "run", "sequence"])


def at_hop(ttl: str, field: str) -> Column:
    """The sum of a field over the vantage points of a hop."""
    return F.expr(f"aggregate(filter(seen, its -> its.max_ttl = {ttl}), 0L, (sum, its) -> sum + its.{field})")


def network_flows(of: DataFrame, idle_timeout_us: int) -> DataFrame:
    # A session lasts as long as its records, plus the idle timeout. The gap is in whole microseconds, because Spark
    # silently drops a record whose gap it cannot parse.
    gap = F.concat(F.expr(f"(last_ns - first_ns) div 1000 + {idle_timeout_us + 1}").cast("string"), F.lit(" microseconds"))
    session = of.withColumn("gap", gap).groupBy(*KEY, F.session_window("first", F.col("gap"))).agg(
        F.collect_list(F.struct("max_ttl", "exporter", "packets", "bytes")).alias("seen"),
        F.min("first").alias("first"), F.min("first_ns").alias("first_ns"), F.max("last_ns").alias("last_ns"),
        F.bit_or("tcp_flags").alias("tcp_flags"), F.max("max_ttl").alias("first_ttl"), F.min("max_ttl").alias("last_ttl"))
    hops = F.expr("sort_array(array_distinct(seen.max_ttl), false)")
    exporters = "array_sort(array_distinct(filter(seen, its -> its.max_ttl = ttl).exporter))"
    return session.withColumn("hops", hops).select(
        *KEY, "first", "first_ns", "last_ns", at_hop("first_ttl", "packets").alias("packets"),
        at_hop("first_ttl", "bytes").alias("bytes"),
        (at_hop("first_ttl", "packets") - at_hop("last_ttl", "packets")).alias("lost"),
        "tcp_flags", F.size("seen").alias("records"), F.expr(f"transform(hops, ttl -> {exporters})").alias("path"))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--brokers", required=True, metavar="HOST:PORT,...")
    parser.add_argument("--topic", required=True)
    parser.add_argument("--checkpoint", required=True, help="folder for the checkpoint; each job needs its own")
    parser.add_argument("--table", required=True, help="table, such as lake.net.flows; created if it does not exist")
    parser.add_argument("--property", action="append", default=[], metavar="KEY=VALUE", help="for Spark or its catalog")
    parser.add_argument("--idle-timeout", type=int, default=30, metavar="SECONDS")
    parser.add_argument("--lateness", default="5 minutes", help="how far a record may be behind the newest one")
    parser.add_argument("--batch", type=int, default=1_000_000, help="maximum number of messages in a batch")
    parser.add_argument("--once", action="store_true", help="end when all current messages of the topic are read")
    return parser.parse_args()


def main() -> int:
    given = arguments()
    session = SparkSession.builder.appName(f"turboflow {given.topic}").config("spark.sql.session.timeZone", "UTC")
    session = session.config("spark.sql.streaming.stateStore.providerClass",
                             "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")
    for key, _, value in (one.partition("=") for one in given.property):
        session = session.config(key, value)
    session = session.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    session.sql(f"create namespace if not exists {given.table.rpartition('.')[0]}")
    session.sql(f"create table if not exists {given.table} ({TABLE}) using iceberg partitioned by (hours(first))")
    lines = session.readStream.format("kafka").option("kafka.bootstrap.servers", given.brokers)
    lines = lines.option("subscribe", given.topic).option("startingOffsets", "earliest")
    lines = lines.option("maxOffsetsPerTrigger", given.batch).load()
    flows = network_flows(records(lines, given.lateness), given.idle_timeout * 1_000_000)
    writer = flows.writeStream.outputMode("append").option("checkpointLocation", given.checkpoint)
    # Without fanout, rows would have to arrive grouped by partition of the table.
    writer = writer.option("fanout-enabled", "true")
    writer = writer.trigger(availableNow=True) if given.once else writer.trigger(processingTime="10 seconds")
    query = writer.toTable(given.table)
    last, late = -1, 0
    while True:
        has_ended = query.awaitTermination(1)
        for batch in query.recentProgress:
            if batch["batchId"] <= last:
                continue
            last = batch["batchId"]
            operators = batch["stateOperators"]
            late += sum(its["numRowsDroppedByWatermark"] for its in operators)
            print(f"batch {last}: {batch['numInputRows']} messages, {late} records too late so far", flush=True)
        if has_ended:
            return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
