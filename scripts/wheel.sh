#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the Python wheel: compiles the program for release, and packs it with the module.
#
#   scripts/wheel.sh TARGET
set -euo pipefail
cd "$(dirname "$0")/.."

mkdir -p "${1:?say the folder of what is built}"
target=$(cd "$1" && pwd)
tools=$target/tools/maturin
[[ -x $tools/bin/python3 ]] || python3 -m venv "$tools"
[[ -x $tools/bin/maturin ]] || "$tools/bin/pip" install --quiet --disable-pip-version-check maturin==1.16.0
cd python
"$tools/bin/maturin" build --release --locked --target-dir "$target" --out "$target/wheels"
