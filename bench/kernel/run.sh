#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The engine in the kernel: what a packet costs by test runs, and a veth pair at full speed beside capture by a ring. Needs root.
# Takes turboflow and turboflow-lab with the feature `kernel` from target/release: `make bench-export` builds both.
#
#   bench/kernel/run.sh [ARGUMENT of bench_kernel.py]...
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
exec python3 "$root/bench/kernel/bench_kernel.py" "$@"
