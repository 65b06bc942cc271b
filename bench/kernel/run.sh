#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The engine in the kernel: what a packet costs by test runs, and a veth pair at full speed beside capture by a ring. Needs root.
#
#   bench/kernel/run.sh [ARGUMENT of bench_kernel.py]...
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
exec python3 "$root/bench/kernel/bench_kernel.py" "$@"
