#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests single modules of the FPGA engine with cocotb (from PyPI, into target/tools/rtl) and Verilator.
#
#   scripts/rtl-cocotb.sh [MODULE]...        default: all of engines/rtl/tests/cocotb
set -euo pipefail
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-target}
command -v verilator >/dev/null || { echo "rtl-cocotb: needs Verilator 5: apt-get install verilator" >&2; exit 2; }
# This version runs with Verilator 5.006, as Debian 12 has it.
bin=$(scripts/rtl-tools.sh cocotb==1.9.2)
log=$target/rtl-cocotb/log
mkdir -p "$target/rtl-cocotb"
export PYTHONDONTWRITEBYTECODE=1
if ! "$bin/python" engines/rtl/tests/cocotb/run.py "$target/rtl-cocotb" "$@" >"$log" 2>&1; then
    tail -n 60 "$log" >&2
    exit 1
fi
grep -E '^tf_[a-z_]+: [0-9]+ tests' "$log"
