#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests the dashboard in a browser (apps/dashboard/web/browser): the numbers on its pages against those
# of `turboflow show`, the console, accessibility and widths; typical use; a report; ledgers with
# losses; a program that disappears and returns; and, where network namespaces can be made, a running
# program that drops packets. Needs Node 20, npm and Chromium, which it installs if it may (root on
# Debian or Ubuntu), and the programs as tests build them.
#
#   scripts/dashboard-browser.sh [FOLDER FOR SCREENSHOTS]
set -euo pipefail
cd "$(dirname "$0")/.."

programs=$(realpath "${CARGO_TARGET_DIR:-target}")/debug
web=$PWD/apps/dashboard/web
samples=$PWD/samples
office=$samples/office.pcap
shots=${1:+$(realpath "$1")}
for program in turboflow turboflow-query; do
    [[ -x $programs/$program ]] || { echo "dashboard-browser: $programs/$program is not there: make test builds it" >&2; exit 2; }
done
if ! command -v chromium >/dev/null && ((EUID == 0)) && command -v apt-get >/dev/null; then
    apt-get update -q >&2
    DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends chromium >&2
fi
for tool in chromium node npm; do
    command -v "$tool" >/dev/null || { echo "dashboard-browser: $tool is not here: apt-get install chromium nodejs npm" >&2; exit 2; }
done
[[ -d $web/node_modules ]] || (cd "$web" && npm ci --no-audit --no-fund --loglevel=error)

folder=$(mktemp -d)
namespace=turboflow-browser-$$
inside=()
running=()
stop() {
    ((${#running[@]} == 0)) || { kill -INT "${running[@]}" || true; wait "${running[@]}" || true; } 2>/dev/null
    ((${#inside[@]} == 0)) || ip netns del "$namespace"
    rm -rf "$folder"
}
trap stop EXIT
cd "$folder"

# Starts a dashboard, and sets `address`: "turboflow: dashboard at http://127.0.0.1:PORT/".
dashboard() { # WORDS...
    rm -f said && mkfifo said
    "${inside[@]}" "$programs/turboflow" dashboard "$@" --listen 127.0.0.1:0 2>said &
    running+=($!)
    exec 8<said
    local line
    while read -r line <&8 && [[ $line != *"dashboard at"* ]]; do echo "$line" >&2; done
    address=${line##* }
    address=${address%/}
}

look() { # CHECK WORDS...
    "${inside[@]}" node --experimental-websocket "$web/browser/run.mjs" "$programs/turboflow" "$@"
}

# Follows a live run on the loopback interface of a separate namespace.
running_program() {
    inside=(ip netns exec "$namespace")
    local packets
    packets=$("$programs/turboflow" record -q -r "$office" -w all.csv --ledger all.json && python3 -c 'import json; print(json.load(open("all.json"))["packets_received"])')
    "${inside[@]}" bash -c 'for f in /proc/sys/net/ipv6/conf/*/disable_ipv6; do echo 1 >"$f"; done'
    "${inside[@]}" ip link add va mtu 65535 type veth peer name vb mtu 65535
    for link in lo va vb; do "${inside[@]}" ip link set "$link" up; done
    rm -f heard && mkfifo heard
    "${inside[@]}" "$programs/turboflow" record -i vb --ring-size 1MiB --metrics 127.0.0.1:9414 -w live.parquet 2>heard &
    local recording=$!
    running+=("$recording")
    exec 9<heard
    local line
    while read -r line <&9 && [[ $line != *listening* ]]; do :; done
    cat <&9 >/dev/null &
    dashboard --live 127.0.0.1:9414
    look live "$address" 127.0.0.1:9414 "$office" "$packets" "$recording" va
}

"$programs/turboflow" record -q -r "$office" -w office.parquet --ledger office.json
dashboard office.parquet
look pages "$address" office.parquet ${shots:+"$shots"}
mkdir biflows
"$programs/turboflow" record -q -r "$office" --biflow --active-timeout 1s -w biflows/office.parquet
"$programs/turboflow" record -q -r "$office" --biflow -w more.parquet
"$programs/turboflow" report biflows/office.parquet -o report.html
look report "$folder/report.html" biflows/office.parquet
dashboard biflows
look moves "$address" biflows more.parquet
"$programs/turboflow" generate -q -w network.pcap --workload telemetry
"$programs/turboflow" record -q -r network.pcap --int-port 5000 --int-report-port 5001 \
    --definition "$samples/definitions/paper-table-2-network.toml" -w network.parquet
dashboard network.parquet
look performance "$address" network.parquet
timed() { # FEATURE OP
    printf '\n[[feature]]\nname = "%s"\nop = "%s"\nof = "timestamp"\n' "$@"
}
{
    cat "$samples/definitions/paper-table-2-network.toml"
    timed first_ns min
    timed last_ns max
} >timed.toml
"$programs/turboflow" record -q -r network.pcap --int-port 5000 --int-report-port 5001 \
    --definition timed.toml -w timed.parquet
dashboard timed.parquet
look performance "$address" timed.parquet
mkdir lossy
for run in a b; do
    "$programs/turboflow" record -q -r "$office" -w "lossy/$run.parquet" --ledger "lossy/$run.json"
done
# Pretends that the kernel dropped packets of both runs.
sed -i 's/"source_dropped": 0/"source_dropped": 1234/' lossy/a.json
sed -i 's/"source_dropped": 0/"source_dropped": 5/' lossy/b.json
dashboard lossy
look ledgers "$address" lossy/a.json lossy/b.json
metrics=127.0.0.1:$(python3 -c 'import socket; it = socket.socket(); it.bind(("127.0.0.1", 0)); print(it.getsockname()[1])')
dashboard --live "$metrics"
look vanishing "$address" "$metrics"
if ((EUID == 0)) && command -v ip >/dev/null && command -v tcpreplay >/dev/null && ip netns add "$namespace"; then
    running_program
elif [[ -n ${TURBOFLOW_CI:-} ]]; then
    echo "dashboard-browser: no network namespace for a running program" >&2
    exit 1
else
    echo "dashboard-browser: a running program is not looked at: that needs root, ip and tcpreplay"
fi
