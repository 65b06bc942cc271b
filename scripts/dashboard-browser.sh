#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Looks at the dashboard in a browser: numbers of its pages against those of `turboflow show`, the
# console, accessibility, widths (apps/dashboard/web/browser.mjs). Needs Node 20, npm and Chromium,
# which it installs where it may (root on Debian or Ubuntu), and the programs as tests build them.
#
#   scripts/dashboard-browser.sh [FOLDER FOR SCREENSHOTS]
set -euo pipefail
cd "$(dirname "$0")/.."

programs=$(realpath "${CARGO_TARGET_DIR:-target}")/debug
web=$PWD/apps/dashboard/web
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
dashboard=
stop() {
    [[ -z $dashboard ]] || { kill -INT "$dashboard" && wait "$dashboard"; } || true
    rm -rf "$folder"
}
trap stop EXIT
"$programs/turboflow" record -q -r samples/office.pcap -w "$folder/office.parquet" --ledger "$folder/office.json"
mkfifo "$folder/said"
(cd "$folder" && exec "$programs/turboflow" dashboard office.parquet --listen 127.0.0.1:0 2>said) &
dashboard=$!
# It says where it listens: "turboflow: dashboard at http://127.0.0.1:PORT/".
exec 8<"$folder/said"
read -r line <&8
address=${line##* }
shots=${1:+$(realpath "$1")}
(cd "$folder" && node --experimental-websocket "$web/browser.mjs" "${address%/}" "$programs/turboflow" office.parquet ${shots:+"$shots"})
