#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads flow records and their ticks from Kafka into ClickHouse, each record exactly once.

    feed.py --brokers kafka:9092 --topic flows --clickhouse http://clickhouse:8123

The records are protobuf, as `turboflow record -w 'kafka://kafka:9092/flows?records=100'` sends them.

A batch is inserted under a token made of its topic, partition and offsets. Before that its end is kept
in the group's committed offset, and after that the offset is committed. If this program is killed in
between, the same batch is inserted again under the same token, and ClickHouse leaves it out, in its
materialized views, too. Several of these programs share the partitions.

Needs Python 3.9 and confluent-kafka. Use it instead of sql/5_kafka.sql.
"""

import argparse
import base64
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

# A batch ends at so many messages or bytes, or when its first message is so old.
MESSAGES = 5_000
BYTES = 32 << 20
AGE_S = 1.0

# Fields of FlowMessage that say where a record was: contrib/kafka/turboflow.proto.
PARTITION_FIELD = 2990
OFFSET_FIELD = 2991


def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def read_varint(data, at):
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
        shift += 7


def with_place(message, partition, offset):
    """The records of a message, each with its place in the topic."""
    place = varint(PARTITION_FIELD << 3) + varint(partition) + varint(OFFSET_FIELD << 3) + varint(offset)
    out, at = [], 0
    while at < len(message):
        length, at = read_varint(message, at)
        if at + length > len(message):
            raise ValueError(f"partition {partition}, offset {offset}: a record of {length} bytes is cut")
        out += (varint(length + len(place)), message[at : at + length], place)
        at += length
    return b"".join(out)


def as_it_is(message, _partition, _offset):
    return message


class Http:
    """A ClickHouse server."""

    def __init__(self, url, user, password):
        self.url = url.rstrip("/")
        login = base64.b64encode(f"{user}:{password}".encode()).decode()
        self.headers = {"Authorization": f"Basic {login}"}

    def insert(self, table, form, settings, data):
        query = {"query": f"INSERT INTO {table} FORMAT {form}", **settings}
        url = f"{self.url}/?{urllib.parse.urlencode(query)}"
        request = urllib.request.Request(url, data, self.headers)
        try:
            urllib.request.urlopen(request, timeout=300).read()
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{table}: {error.read().decode(errors='replace').strip()}") from error


class Batch:
    def __init__(self, begin):
        self.begin = begin
        self.end = begin
        # Where it ended when it was inserted for the first time; None if it never was.
        self.must_end = None
        self.messages = 0
        self.bytes = 0
        self.parts = []
        self.since = time.monotonic()

    def is_due(self):
        if self.must_end is not None:
            return self.end >= self.must_end
        is_full = self.messages >= MESSAGES or self.bytes >= BYTES
        return self.messages > 0 and (is_full or time.monotonic() - self.since >= AGE_S)


class Feed:
    """One consumer: topics to tables."""

    def __init__(self, consumer, database, tables):
        self.consumer = consumer
        self.database = database
        # For each topic: table, format, further settings, and what is made of a message.
        self.tables = tables
        self.batches = {}
        self.ends = {}

    def assigned(self, consumer, places):
        for place in consumer.committed(places, timeout=60):
            key = (place.topic, place.partition)
            begin = place.offset if place.offset >= 0 else 0
            batch = self.batches[key] = Batch(begin)
            if place.metadata and int(place.metadata) > begin:
                batch.must_end = int(place.metadata)
            self.ends[key] = consumer.get_watermark_offsets(TopicPartition(*key), timeout=60)[1]
            for own in places:
                if (own.topic, own.partition) == key:
                    own.offset = place.offset if place.offset >= 0 else OFFSET_BEGINNING
        consumer.assign(places)

    def revoked(self, _consumer, places):
        """What was read and not inserted is read again by whoever has the partition then."""
        for place in places:
            self.batches.pop((place.topic, place.partition), None)
            self.ends.pop((place.topic, place.partition), None)

    def take(self, message):
        key = (message.topic(), message.partition())
        batch = self.batches[key]
        if batch.messages == 0:
            batch.since = time.monotonic()
        change = self.tables[message.topic()][3]
        part = change(message.value() or b"", message.partition(), message.offset())
        batch.parts.append(part)
        batch.messages += 1
        batch.bytes += len(part)
        batch.end = message.offset() + 1
        if batch.is_due():
            self.insert(key)

    def insert(self, key):
        topic, partition = key
        batch = self.batches[key]
        table, form, settings, _ = self.tables[topic]
        self.commit(key, batch.begin, str(batch.end))
        token = {
            "insert_deduplicate": "1",
            "insert_deduplication_token": f"{topic}-{partition}-{batch.begin}-{batch.end}",
            "deduplicate_blocks_in_dependent_materialized_views": "1",
            # The same blocks each time.
            "max_insert_threads": "1",
            "input_format_parallel_parsing": "0",
        }
        self.database.insert(table, form, {**settings, **token}, b"".join(batch.parts))
        self.commit(key, batch.end, "")
        self.batches[key] = Batch(batch.end)

    def commit(self, key, offset, metadata):
        self.consumer.commit(offsets=[TopicPartition(*key, offset, metadata)], asynchronous=False)

    def run(self, ends_at_end):
        """Runs for ever, or until everything is inserted that was there at the start."""
        self.consumer.subscribe(list(self.tables), on_assign=self.assigned, on_revoke=self.revoked)
        while not (ends_at_end and self.is_at_end()):
            for message in self.consumer.consume(1_000, 0.2):
                if message.error():
                    # Nobody has written to it yet.
                    if message.error().code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                        continue
                    raise KafkaException(message.error())
                if (message.topic(), message.partition()) in self.batches:
                    self.take(message)
            for key in [key for key, batch in self.batches.items() if batch.is_due()]:
                self.insert(key)

    def is_at_end(self):
        known = {topic for topic, _ in self.ends}
        return known == set(self.tables) and all(
            self.batches[key].begin >= end for key, end in self.ends.items()
        )


def consumer_of(brokers, group, further=()):
    return Consumer(
        {
            "bootstrap.servers": brokers,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "topic.metadata.refresh.interval.ms": 10_000,
            **dict(further),
        }
    )


def tables_of(topic, schema):
    return {
        topic: ("turboflow.inbox", "Protobuf", {"format_schema": schema}, with_place),
        f"{topic}.ticks": ("turboflow.inbox_ticks", "JSONEachRow", {}, as_it_is),
    }


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--brokers", required=True, help="HOST:PORT,HOST:PORT")
    arguments.add_argument("--topic", required=True, help="of the records; ticks are in TOPIC.ticks")
    arguments.add_argument("--clickhouse", required=True, help="address of its HTTP interface")
    arguments.add_argument("--user", default="default")
    arguments.add_argument("--password-file", help="a file with the user's password")
    arguments.add_argument("--group", default="turboflow-feed", help="of consumers (default: %(default)s)")
    arguments.add_argument(
        "--schema",
        default="turboflow.proto:FlowMessage",
        help="in the server's folder format_schemas (default: %(default)s)",
    )
    arguments.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="of the consumer: TLS, SASL")
    arguments.add_argument("--once", action="store_true", help="end when everything there now is inserted")
    args = arguments.parse_args()
    password = open(args.password_file).read().strip() if args.password_file else ""
    further = [pair.split("=", 1) for pair in args.set]
    consumer = consumer_of(args.brokers, args.group, further)
    database = Http(args.clickhouse, args.user, password)
    try:
        Feed(consumer, database, tables_of(args.topic, args.schema)).run(args.once)
    except (KafkaException, OSError, RuntimeError, ValueError) as error:
        # It begins again where it was: let the service manager restart it.
        print(f"feed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0
    finally:
        consumer.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
