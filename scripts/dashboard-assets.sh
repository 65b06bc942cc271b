#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the dashboard's page and compares it with the committed one, byte for byte: the program
# must contain what its sources produce. Needs Node 20 and npm.
#
#   scripts/dashboard-assets.sh [--write]       with --write, keeps what was built
set -euo pipefail
cd "$(dirname "$0")/../apps/dashboard"

if ! command -v npm >/dev/null && ((EUID == 0)) && command -v apt-get >/dev/null; then
    apt-get update -q >&2
    DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends nodejs npm >&2
fi
command -v npm >/dev/null || { echo "dashboard-assets: npm is not here: apt-get install nodejs npm" >&2; exit 2; }
kept=$(mktemp -d)
trap 'rm -rf "$kept"' EXIT
cp -r dist/. "$kept"
(cd web && npm ci --no-audit --no-fund --loglevel=error && npm run --silent build)
[[ ${1:-} == --write ]] && exit 0
if ! diff -rq "$kept" dist; then
    rm -rf dist && cp -r "$kept" dist
    echo "dashboard-assets: apps/dashboard/dist is not what apps/dashboard/web builds: $0 --write" >&2
    exit 1
fi
echo "dashboard-assets: dist is what web builds"
