#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how long the dashboard takes to answer all queries of a page.

    bench/dashboard/run.py PROGRAM FLOWS.parquet [REPETITIONS]

PROGRAM is the command that serves a dashboard of a file: 'target/release/turboflow dashboard'. Prints how long the
server took to read the file at its start and, for each page, the minimum and median wall time of its requests and the
processor time of the first one, in milliseconds. No answer comes from the server's cache.
"""

import http.client
import json
import os
import pathlib
import shlex
import statistics
import subprocess
import sys
import time

PROGRAM, FILE = shlex.split(sys.argv[1]), sys.argv[2]
REPETITIONS = int(sys.argv[3]) if len(sys.argv) > 3 else 5
PANELS = pathlib.Path(__file__).resolve().parents[2] / "apps/dashboard/web/src/panels.json"


class Server:
    def __init__(self) -> None:
        words = ["--listen", "127.0.0.1:0"] if PROGRAM[-1] == "dashboard" else []
        start = time.monotonic()
        self.child = subprocess.Popen([*PROGRAM, FILE, *words], stderr=subprocess.PIPE, text=True)
        for line in self.child.stderr:
            if "dashboard at http://" in line:
                self.address = line.split("http://")[1].split("/")[0]
                break
        self.start_s = time.monotonic() - start
        self.asked = 0

    def processor_s(self) -> float:
        fields = pathlib.Path(f"/proc/{self.child.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def get(self, path: str) -> dict:
        connection = http.client.HTTPConnection(self.address)
        connection.request("GET", path)
        return json.loads(connection.getresponse().read())

    def ask(self, request: dict) -> tuple[float, list[dict]]:
        # Trailing spaces make the text of each filter unique, so that no answer comes from the cache.
        self.asked += 1
        request = {**request, "where": request.get("where", "") + " " * self.asked}
        connection = http.client.HTTPConnection(self.address)
        start = time.monotonic()
        connection.request("POST", "/api/query", json.dumps(request), {"Content-Type": "application/json"})
        answer = json.loads(connection.getresponse().read())
        taken = time.monotonic() - start
        wrong = answer.get("error") or next((it["error"] for it in answer["panels"] if "error" in it), None)
        if wrong:
            sys.exit(f"{request}: {wrong}")
        return taken, answer["panels"]


def pages(server: Server) -> list[tuple[str, dict]]:
    files = server.get("/api/files")
    names = {field["name"] for field in server.get("/api/fields")}
    first, last = int(files["first_ns"]), int(files["last_ns"])
    quarter = {"from": str(first + (last - first) // 4), "to": str(first + (last - first) // 2)}
    has = lambda wanted: all(name in names or f"total_{name}" in names for name in wanted)
    overview = [it["panel"] for it in json.loads(PANELS.read_text()) if it["id"] != "flows" and has(it["needs"])]
    host = server.ask({"panels": [{"group_by": "host", "top": 1}]})[1][0]["rows"][0][0]
    out, into = f"src_addr == {host}", f"dst_addr == {host}"
    one = [{"where": side, "group_by": keys, "top": 10} for side, key in ((out, "dst_addr"), (into, "src_addr")) for keys in (key, "protocol,dst_port")]
    plots = [{"kind": "series", "where": side, "group_by": "protocol", "top": 5} for side in (out, into)]
    explore = [{"kind": "series", "group_by": "src_addr", "top": 8}, {"group_by": "src_addr", "top": 20}]
    return [
        ("Overview", {"panels": overview}),
        ("Overview, a quarter of the time", {"panels": overview, **quarter}),
        ("Overview, filtered", {"panels": overview, "where": "tcp and port 443"}),
        ("Explore, by source", {"panels": explore}),
        ("Flows, the largest 5,000", {"panels": [{"kind": "records", "top": 5000}]}),
        ("Host, the largest", {"panels": one + plots}),
    ]


def main() -> None:
    server = Server()
    try:
        records = server.ask({"panels": [{"group_by": "protocol"}]})[1][0]["totals"]["read"]["records"]
        print(f"{records:,} records; read at the start in {server.start_s:.2f} s")
        for name, request in pages(server):
            before = server.processor_s()
            taken = [server.ask(request)[0] * 1000]
            processor = (server.processor_s() - before) * 1000
            taken += [server.ask(request)[0] * 1000 for _ in range(REPETITIONS - 1)]
            least, median = min(taken), statistics.median(taken)
            print(f"  {name:32} least {least:6.0f} ms   median {median:6.0f} ms   processor {processor:6.0f} ms", flush=True)
    finally:
        server.child.terminate()


main()
