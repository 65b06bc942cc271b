#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An incast on bmv2's simple_switch (TurboFlow, table 1), in a separate network namespace (root): 32 senders send ten
# packets each at once, through a port that is shaped to 200 packets per second, in addition to a steady flow. The flow
# records tell how long a queue each flow met.
#
#   SWITCH=path/to/simple_switch CLI=path/to/simple_switch_CLI scripts/try-incast.sh TURBOFLOW
set -euo pipefail

(($# == 1)) || { sed -n 's/^#  *SWITCH/usage: SWITCH/p' "$0" >&2; exit 2; }
turboflow=$(realpath "$1")
engine=$(realpath "$(dirname "$0")/../engines/p4")
space=turboflow-incast-$$
work=$(mktemp -d)
pids=()
leave() {
    kill "${pids[@]}" 2>/dev/null || true
    ip netns del "$space" 2>/dev/null || true
    rm -rf "$work"
}
trap leave EXIT
# Not for background processes: a signal would reach the shell of the function instead of the program.
inside() { ip netns exec "$space" "$@"; }

ip netns add "$space"
ip -n "$space" link set lo up
for pair in cpu:port64 wire:port0 sink:port1; do
    ip -n "$space" link add "${pair%:*}" mtu 9500 type veth peer name "${pair#*:}" mtu 9500
    for interface in "${pair%:*}" "${pair#*:}"; do
        inside sysctl -qw "net.ipv6.conf.$interface.disable_ipv6=1"
        ip -n "$space" link set "$interface" up
    done
done
ip netns exec "$space" "${SWITCH:-simple_switch}" -i 0@port0 -i 1@port1 -i 64@port64 --thrift-port 9392 \
    "$engine/compiled/v1model/queue.json" >"$work/switch" 2>&1 &
pids+=($!)
until (($(grep -c 'Adding interface' "$work/switch") == 3)); do kill -0 "${pids[0]}"; done
inside "${CLI:-simple_switch_CLI}" --thrift-port 9392 >"$work/cli" 2>&1 <<'COMMANDS'
mirroring_add 101 64
set_queue_depth 65536 64
set_queue_depth 1024 1
set_queue_rate 200 1
COMMANDS

# UDP from port 1 all the time, and from ports 100 to 131 in a burst.
python3 - "$work/incast.pcap" <<'PYTHON'
import struct
import sys

frames = [(1_000_000 + 10_000 * at, 1) for at in range(300)]
frames += [(2_002_000 + 1_250 * at, 100 + at % 32) for at in range(320)]
with open(sys.argv[1], "wb") as file:
    file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
    for time_us, port in sorted(frames):
        ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 46, 0, 0, 64, 17, 0, bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2]))
        udp = struct.pack("!HHHH", port, 53, 26, 0)
        frame = bytes(12) + b"\x08\x00" + ip + udp + bytes(18)
        file.write(struct.pack("<IIII", time_us // 1_000_000, time_us % 1_000_000, len(frame), len(frame)) + frame)
PYTHON

ip netns exec "$space" "$turboflow" record --engine p4 --cpu-port cpu --definition "$engine/definitions/queue.toml" \
    -w "$work/flows.csv" >"$work/said" 2>&1 &
pids+=($!)
until grep -q listening "$work/said"; do kill -0 "${pids[1]}"; done
inside tcpreplay -q -i wire "$work/incast.pcap" >/dev/null 2>&1
# Waits until the shaped port has sent its queue.
sleep 4
kill -INT "${pids[1]}"
code=0
wait "${pids[1]}" || code=$?
tail -n 1 "$work/said"
echo "the flows that met the longest queues:"
python3 - "$work/flows.csv" <<'PYTHON'
import csv
import sys

rows = list(csv.DictReader(open(sys.argv[1])))
rows.sort(key=lambda row: -int(row["max_queue_depth"]))
for row in rows[:4] + [row for row in rows if row["src_port"] == "1"]:
    print(
        f"port {row['src_port']:>3}: {row['packets']:>3} packets, a queue of {row['max_queue_depth']:>3}, "
        f"{int(row['max_hop_latency']) / 1e6:.0f} ms in it"
    )
print(f"{len(rows)} flows, {sum(int(row['packets']) for row in rows)} packets")
PYTHON
exit "$code"
