#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads flow records and their ticks from Kafka into ClickHouse, each record exactly once.

    feed.py --brokers kafka:9092 --topic flows --clickhouse http://clickhouse:8123

The records are protobuf, as `turboflow record -w 'kafka://kafka:9092/flows?records=100'` sends them.

A batch is inserted under a token made of its topic, the topic's id, partition and offsets. Before the insert,
the end of the batch is stored with the group's committed offset; after it, the offset is committed. If this
program is killed in between, it inserts the batch again under the same token, and ClickHouse ignores the
copy, in its materialized views, too. If several of these programs run, they share the partitions.

A message that cannot be read is skipped: it is named on stderr and in turboflow.unreadable, and the exit
code of this program is 1.

Needs Python 3.9 and confluent-kafka. Use it instead of sql/5_kafka.sql.
"""

import argparse
import base64
import http.client
import json
import pathlib
import signal
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient

# A batch ends at this many messages or bytes, or when its first message is this old.
MESSAGES = 5_000
BYTES = 32 << 20
AGE_S = 1.0

# Time limit of an insertion. A consumer that does not poll for 300 s (max.poll.interval.ms) loses its
# partitions.
INSERT_S = 120

# ClickHouse's error codes for unreadable data, and for nothing else: CANNOT_PARSE_TEXT, ..._QUOTED_STRING,
# ..._INPUT_ASSERTION_FAILED, ATTEMPT_TO_READ_AFTER_EOF, CANNOT_READ_ALL_DATA, CANNOT_PARSE_DATE, ..._DATETIME,
# ARGUMENT_OUT_OF_BOUND, CANNOT_PARSE_NUMBER, INCORRECT_DATA, TOO_LARGE_STRING_SIZE, UNKNOWN_PROTOBUF_FORMAT,
# CANNOT_PARSE_BOOL.
DATA_ERRORS = {6, 26, 27, 32, 33, 38, 41, 69, 72, 117, 131, 444, 467}

# Fields of FlowMessage with the record's place in its topic: contrib/kafka/turboflow.proto.
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
    """Appends partition and offset to each record. Raises ValueError or IndexError if the message is truncated."""
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


class Refused(RuntimeError):
    """ClickHouse cannot decode the data."""


class Http:
    """The HTTP interface of a ClickHouse server."""

    def __init__(self, url, user, password):
        self.url = url.rstrip("/")
        login = base64.b64encode(f"{user}:{password}".encode()).decode()
        self.headers = {"Authorization": f"Basic {login}"}

    def insert(self, table, form, settings, data):
        query = {"query": f"INSERT INTO {table} FORMAT {form}", **settings}
        url = f"{self.url}/?{urllib.parse.urlencode(query)}"
        request = urllib.request.Request(url, data, self.headers)
        try:
            with urllib.request.urlopen(request, timeout=INSERT_S) as answer:
                answer.read()
        except urllib.error.HTTPError as error:
            code = error.headers.get("X-ClickHouse-Exception-Code", "")
            kind = Refused if code.isdecimal() and int(code) in DATA_ERRORS else RuntimeError
            said = error.read().decode(errors="replace").strip()
            raise kind(f"{table}: {said or error}") from error


class Batch:
    def __init__(self, begin):
        self.begin = begin
        self.end = begin
        # The end of the batch in an earlier attempt to insert it; None if there was none.
        self.must_end = None
        self.messages = 0
        self.bytes = 0
        # Offset, timestamp and data of each readable message.
        self.parts = []
        self.since = time.monotonic()

    def is_due(self):
        if self.must_end is not None:
            return self.end >= self.must_end
        is_full = self.messages >= MESSAGES or self.bytes >= BYTES
        return self.messages > 0 and (is_full or time.monotonic() - self.since >= AGE_S)


class Feed:
    """A consumer that inserts the messages of its topics into tables."""

    def __init__(self, consumer, admin, database, tables):
        self.consumer = consumer
        self.admin = admin
        self.database = database
        # For each topic: table, format, further settings, and the function that converts a message.
        self.tables = tables
        self.batches = {}
        self.topic_ids = {}
        # Number of messages that could not be read.
        self.passed_over = 0

    def assigned(self, consumer, places):
        for topic in {place.topic for place in places}:
            self.topic_ids[topic] = topic_id(self.admin, topic)
        for place in consumer.committed(places, timeout=60):
            checked(place)
            begin = max(place.offset, 0)
            batch = self.batches[(place.topic, place.partition)] = Batch(begin)
            if place.metadata and int(place.metadata) > begin:
                batch.must_end = int(place.metadata)
            for own in places:
                if (own.topic, own.partition) == (place.topic, place.partition):
                    own.offset = place.offset if place.offset >= 0 else OFFSET_BEGINNING
        consumer.assign(places)

    def revoked(self, _consumer, places):
        """Drops batches that are not inserted. The consumer that gets the partition reads them again."""
        for place in places:
            self.batches.pop((place.topic, place.partition), None)

    def take(self, message):
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        batch = self.batches[(topic, partition)]
        if offset < batch.end:
            # The message was delivered twice, or the topic was recreated meanwhile.
            known = self.topic_ids[topic]
            if known and topic_id(self.admin, topic) != known:
                raise RuntimeError(f"topic {topic} is another one now: start again")
            return
        if batch.must_end is not None and offset >= batch.must_end:
            # The broker no longer has the last messages of the batch.
            batch.end = batch.must_end
            self.insert((topic, partition))
            batch = self.batches[(topic, partition)]
        if batch.messages == 0:
            batch.since = time.monotonic()
        try:
            part = self.tables[topic][3](message.value() or b"", partition, offset)
            batch.parts.append((offset, message.timestamp()[1], part))
            batch.bytes += len(part)
        except (IndexError, ValueError) as error:
            self.pass_over(topic, partition, offset, error)
        batch.messages += 1
        batch.end = offset + 1
        if batch.is_due():
            self.insert((topic, partition))

    def pass_over(self, topic, partition, offset, why):
        self.passed_over += 1
        print(f"feed: topic {topic}, partition {partition}, offset {offset}: passed over: {why}", file=sys.stderr)
        row = {"topic": topic, "partition": partition, "offset": offset, "why": str(why)[:1_000]}
        row["time"] = int(time.time())
        self.database.insert("turboflow.unreadable", "JSONEachRow", {"async_insert": "0"}, json.dumps(row).encode())

    def insert(self, key):
        batch = self.batches[key]
        self.commit(key, batch.begin, str(batch.end))
        self.insert_parts(key, batch.begin, batch.end, batch.parts)
        self.commit(key, batch.end, "")
        self.batches[key] = Batch(batch.end)

    def insert_parts(self, key, begin, end, parts):
        """Inserts messages. If they are refused, inserts each half, and so on down to the messages that cannot be
        decoded. Halves have tokens too, so a half that is inserted again after a crash is deduplicated."""
        if not parts:
            return
        topic, partition = key
        table, form, settings, _ = self.tables[topic]
        # The id distinguishes a recreated topic, whose offsets begin at 0 again.
        incarnation = self.topic_ids[topic] or parts[0][1]
        token = {
            "insert_deduplicate": "1",
            "insert_deduplication_token": f"{topic}-{incarnation}-{partition}-{begin}-{end}",
            "deduplicate_blocks_in_dependent_materialized_views": "1",
            # The offset is committed next, so the rows must be stored by then.
            "async_insert": "0",
            # Every attempt must form equal blocks, or deduplication would fail.
            "max_insert_threads": "1",
            "input_format_parallel_parsing": "0",
        }
        try:
            self.database.insert(table, form, {**settings, **token}, b"".join(part for *_, part in parts))
        except Refused as error:
            if len(parts) == 1:
                self.pass_over(topic, partition, parts[0][0], error)
                return
            middle = len(parts) // 2
            at = parts[middle][0]
            self.insert_parts(key, begin, at, parts[:middle])
            self.insert_parts(key, at, end, parts[middle:])

    def commit(self, key, offset, metadata):
        places = [TopicPartition(*key, offset, metadata)]
        for place in self.consumer.commit(offsets=places, asynchronous=False):
            checked(place)

    def run(self, ends_at_end):
        """Runs for ever or, with `ends_at_end`, until everything that was in the topics at the start is inserted."""
        ends = self.ends() if ends_at_end else {}
        self.consumer.subscribe(list(self.tables), on_assign=self.assigned, on_revoke=self.revoked)
        asked = time.monotonic()
        while not ends_at_end or ends:
            for message in self.consumer.consume(1_000, 0.2):
                if message.error():
                    # No message has been written to this topic yet.
                    if message.error().code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                        continue
                    raise KafkaException(message.error())
                if (message.topic(), message.partition()) in self.batches:
                    self.take(message)
            for key in [key for key, batch in self.batches.items() if batch.is_due()]:
                self.insert(key)
            if ends and time.monotonic() - asked >= 0.5:
                asked = time.monotonic()
                ends = {key: end for key, end in ends.items() if self.begin(key) < end}

    def begin(self, key):
        """The offset before which all messages are inserted, by any consumer of the group, or no longer kept."""
        place = TopicPartition(*key)
        if key in self.batches:
            begin = self.batches[key].begin
        else:
            begin = checked(self.consumer.committed([place], timeout=60)[0]).offset
        return max(begin, self.consumer.get_watermark_offsets(place, timeout=60)[0])

    def ends(self):
        """The end offset of each partition that has messages."""
        ends = {}
        for topic in self.tables:
            known = self.consumer.list_topics(topic, timeout=60).topics[topic]
            # Before its first message, a topic does not exist; with ticks=none, the topic of ticks
            # never does.
            if known.error and known.error.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise KafkaException(known.error)
            for partition in known.partitions:
                low, high = self.consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=60)
                if low < high:
                    ends[(topic, partition)] = high
        return ends


def checked(place):
    if place.error:
        raise KafkaException(place.error)
    return place


def topic_id(admin, topic):
    """The topic's ID, which a recreated topic of that name does not share. Empty with brokers before 2.8."""
    told = admin.describe_topics(TopicCollection([topic]))[topic].result(timeout=60).topic_id
    halves = [told.get_most_significant_bits(), told.get_least_significant_bits()] if told else [0, 0]
    return "".join(f"{half % (1 << 64):016x}" for half in halves) if any(halves) else ""


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


def admin_of(brokers, further=()):
    return AdminClient({"bootstrap.servers": brokers, **dict(further)})


def tables_of(topic, schema):
    return {
        topic: ("turboflow.inbox", "Protobuf", {"format_schema": schema}, with_place),
        f"{topic}.ticks": ("turboflow.inbox_ticks", "JSONEachRow", {}, as_it_is),
    }


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--brokers", required=True, help="Kafka brokers: HOST:PORT,HOST:PORT")
    arguments.add_argument("--topic", required=True, help="topic of the records; ticks are in TOPIC.ticks")
    arguments.add_argument("--clickhouse", required=True, help="address of ClickHouse's HTTP interface")
    arguments.add_argument("--user", default="default")
    arguments.add_argument("--password-file", help="a file with the user's password")
    arguments.add_argument("--group", default="turboflow-feed", help="consumer group (default: %(default)s)")
    arguments.add_argument(
        "--schema",
        default="turboflow.proto:FlowMessage",
        help="schema file in the server's folder format_schemas (default: %(default)s)",
    )
    arguments.add_argument("--set", action="append", default=[], metavar="KEY=VALUE",
                           help="setting of the consumer, such as for TLS and SASL")
    arguments.add_argument("--once", action="store_true", help="end when all current messages are inserted")
    args = arguments.parse_args()
    password = pathlib.Path(args.password_file).read_text().strip() if args.password_file else ""
    further = [pair.split("=", 1) for pair in args.set]
    # Service managers end a program with SIGTERM.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    consumer = consumer_of(args.brokers, args.group, further)
    database = Http(args.clickhouse, args.user, password)
    feed = Feed(consumer, admin_of(args.brokers, further), database, tables_of(args.topic, args.schema))
    try:
        feed.run(args.once)
    except (KafkaException, OSError, RuntimeError, ValueError, http.client.HTTPException) as error:
        # A restart continues from the last commit, so the service manager may restart it.
        print(f"feed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        pass
    finally:
        consumer.close()
    if feed.passed_over:
        print(f"feed: {feed.passed_over} messages passed over: see turboflow.unreadable", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
