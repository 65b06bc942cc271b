#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sending flow records: encoding alone, whole processes against softflowd, and live capture against tcpdump.
#
#   bench/export/run.sh CAPTURE [ARGUMENT of bench_export.py]...
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
capture=${1:?usage: bench/export/run.sh CAPTURE [--repetitions N] [--parts encode,process,live] ...}
shift
exec python3 "$root/bench/export/bench_export.py" "$capture" "$@"
