#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks that scripts are well-formed: shell with bash (and shellcheck, if installed), Python with
# ruff, or with Python's own compiler if ruff is not installed.
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t shell < <(find scripts bench packaging .ci -name '*.sh' -o -path .ci/run | sort)
mapfile -t python < <(find scripts bench python contrib apps -name '*.py' | sort)

for file in "${shell[@]}"; do
    bash -n "$file"
    [[ -x $file ]] || { echo "check-scripts: $file is not executable" >&2; exit 1; }
done
if command -v shellcheck >/dev/null; then shellcheck --severity=error "${shell[@]}"; fi
if command -v ruff >/dev/null; then
    ruff check --quiet --line-length 120 "${python[@]}"
else
    # Compiles in memory, so that no cache is left behind.
    python3 -c 'import sys; [compile(open(name).read(), name, "exec") for name in sys.argv[1:]]' "${python[@]}"
fi
python3 -B scripts/compare_programs_test.py 2>&1 | tail -n 3
echo "check-scripts: ${#shell[@]} shell, ${#python[@]} Python"
