# SPDX-License-Identifier: Apache-2.0
"""Runs feed.py with a real broker and an HTTP server that stands in for ClickHouse. Checks its requests, and how it
treats messages that cannot be decoded and a topic that was recreated."""

import base64
import http.server
import json
import subprocess
import sys
import threading
import time
import types
import urllib.parse

import feed
from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import NewTopic

TOPIC = "served"
BAD = b"no protobuf"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query))
        body = self.rfile.read(int(self.headers["Content-Length"]))
        is_refused = BAD in body and "Protobuf" in query["query"]
        self.server.asked.append((query, self.headers["Authorization"], body, is_refused))
        self.send_response(400 if is_refused else 200)
        if is_refused:
            self.send_header("X-ClickHouse-Exception-Code", "444")
        self.end_headers()
        self.wfile.write(b"Code: 444. Protobuf messages are corrupted" if is_refused else b"")

    def log_message(self, *_):
        pass


def framed(record):
    return feed.varint(len(record)) + record


def run(args, folder, port):
    """Runs the program until everything in the topic is inserted. There is no topic of ticks."""
    command = [sys.executable, "-B", f"{args.contrib}/clickhouse/feed.py", "--brokers", args.brokers, "--once"]
    command += ["--topic", TOPIC, "--clickhouse", f"http://127.0.0.1:{port}/", "--group", TOPIC]
    command += ["--user", "reader", "--password-file", f"{folder}/password"]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)


def make(admin):
    """Creates the topic, with one partition. Retries while the broker is still removing an earlier one of that name."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return admin.create_topics([NewTopic(TOPIC, 1)])[TOPIC].result()
        except KafkaException:
            if time.monotonic() > deadline:
                raise


def send(args, values):
    producer = Producer({"bootstrap.servers": args.brokers})
    for value in values:
        producer.produce(TOPIC, value, partition=0)
    if producer.flush(60):
        sys.exit("messages did not arrive")


class Message:
    def __init__(self, offset):
        self.at = offset

    def topic(self):
        return TOPIC

    def partition(self):
        return 0

    def offset(self):
        return self.at

    def timestamp(self):
        return 1, 1_000 + self.at

    def value(self):
        return b"%d," % self.at


class Stub:
    """A consumer and a database in one, which record commits and insertions."""

    def __init__(self, error=None):
        self.error = error
        self.committed, self.inserted = [], []

    def commit(self, offsets, asynchronous):
        assert not asynchronous
        [place] = offsets
        self.committed.append((place.offset, place.metadata))
        return [types.SimpleNamespace(error=self.error)]

    def insert(self, _table, _form, settings, data):
        self.inserted.append((settings["insert_deduplication_token"], data))


def fed(stub, must_end, offsets):
    """A reader of a broker without topic IDs, after it has taken messages with these offsets."""
    reader = feed.Feed(stub, None, stub, {TOPIC: ("t", "f", {}, feed.as_it_is)})
    reader.topic_ids[TOPIC] = ""
    batch = reader.batches[(TOPIC, 0)] = feed.Batch(0)
    batch.must_end = must_end
    for offset in offsets:
        reader.take(Message(offset))
    return reader


def check_batches(agree):
    """Checks batches whose messages come twice, are no longer kept, or cannot be committed."""
    stub = Stub()
    fed(stub, 3, [0, 1, 1, 0, 2])
    agree("messages that come twice", stub.inserted, [(f"{TOPIC}-1000-0-0-3", b"0,1,2,")])
    agree("commits", stub.committed, [(0, "3"), (3, "")])
    unnamed = types.SimpleNamespace(result=lambda timeout: types.SimpleNamespace(topic_id=None))
    reader = fed(Stub(), 3, [0, 1])
    reader.admin = types.SimpleNamespace(describe_topics=lambda _: {TOPIC: unnamed})
    reader.topic_ids[TOPIC] = "before"
    try:
        reader.take(Message(0))
        sys.exit("a topic that was made anew goes unnoticed")
    except RuntimeError as error:
        agree("made anew meanwhile", str(error), f"topic {TOPIC} is another one now: start again")
    stub = Stub()
    reader = fed(stub, 3, [1, 5])
    agree("a batch whose last message is gone", stub.inserted, [(f"{TOPIC}-1001-0-0-3", b"1,")])
    agree("and the next one", (reader.batches[(TOPIC, 0)].begin, reader.batches[(TOPIC, 0)].end), (3, 6))
    stub = Stub(KafkaError(KafkaError.ILLEGAL_GENERATION))
    try:
        fed(stub, 1, [0])
        sys.exit("a commit that failed passes")
    except KafkaException:
        agree("inserted after a commit that failed", stub.inserted, [])


def check(args, agree):
    check_batches(agree)
    with open(f"{args.folder}/password", "w") as file:
        file.write("secret\n")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.asked = []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    admin = feed.admin_of(args.brokers)
    port = server.server_address[1]
    ran = run(args, args.folder, port)
    agree("without topics", (ran.returncode, ran.stderr, server.asked), (0, "", []))
    make(admin)
    ran = run(args, args.folder, port)
    agree("without messages", (ran.returncode, ran.stderr, server.asked), (0, "", []))
    # Of five messages, one is truncated, one has a length prefix without end, and one is refused by
    # the server.
    values = [framed(b"one") + framed(b"two"), b"\x09cut", b"\xff", framed(BAD), framed(b"three")]
    send(args, values)
    ran = run(args, args.folder, port)
    agree("exit code with messages that cannot be read", ran.returncode, 1)
    said = [line for line in ran.stderr.splitlines() if f"topic {TOPIC}, partition 0, offset" in line]
    agree("messages named", [line.split(": passed over")[0][-1] for line in said], ["1", "2", "3"])
    agree("the summary", ran.stderr.splitlines()[-1].split(":")[1], " 3 messages passed over")
    rows = [json.loads(body) for query, _, body, _ in server.asked if "unreadable" in query["query"]]
    places = [(row["topic"], row["partition"], row["offset"]) for row in rows]
    agree("rows of them", places, [(TOPIC, 0, offset) for offset in (1, 2, 3)])
    inserted = [asked for asked in server.asked if "inbox" in asked[0]["query"]]
    stored = b"".join(body for *_, body, is_refused in inserted if not is_refused)
    meant = feed.with_place(values[0], 0, 0) + feed.with_place(values[4], 0, 4)
    agree("what is stored", stored, meant)
    identity = feed.topic_id(admin, TOPIC)
    agree("bytes of a topic's identity", len(identity), 32)
    query, login, *_ = inserted[0]
    agree("the login", base64.b64decode(login.split()[1]), b"reader:secret")
    meant = {
        "query": "INSERT INTO turboflow.inbox FORMAT Protobuf",
        "format_schema": "turboflow.proto:FlowMessage",
        "insert_deduplicate": "1",
        "insert_deduplication_token": f"{TOPIC}-{identity}-0-0-5",
        "deduplicate_blocks_in_dependent_materialized_views": "1",
        "async_insert": "0",
        "max_insert_threads": "1",
        "input_format_parallel_parsing": "0",
    }
    agree("the query and its settings", query, meant)
    tokens = [query["insert_deduplication_token"].rsplit("-", 2)[1:] for query, *_ in inserted]
    agree("tokens of halves", tokens, [["0", "5"], ["0", "3"], ["3", "5"], ["3", "4"], ["4", "5"]])
    check_anew(args, agree, admin, server, values)


def check_anew(args, agree, admin, server, values):
    """Messages of a recreated topic are inserted under another token, although their offsets were used before."""
    port, identity = server.server_address[1], feed.topic_id(admin, TOPIC)
    server.asked.clear()
    admin.delete_topics([TOPIC])[TOPIC].result()
    make(admin)
    send(args, values[:1])
    ran = run(args, args.folder, port)
    agree("a topic that was made anew", (ran.returncode, ran.stderr), (0, ""))
    [(query, _, body, _)] = server.asked
    agree("its messages", body, feed.with_place(values[0], 0, 0))
    agree("its identity is another one", identity in query["insert_deduplication_token"], False)
    # Do not wait for messages that the group has not read and the broker no longer has.
    send(args, values[:1])
    admin.delete_records([TopicPartition(TOPIC, 0, 2)])[TopicPartition(TOPIC, 0, 2)].result()
    server.asked.clear()
    ran = run(args, args.folder, port)
    agree("without the messages that there were", (ran.returncode, ran.stderr, server.asked), (0, "", []))
    server.shutdown()
