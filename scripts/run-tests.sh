#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs all tests, even after one has failed. The last line sums up passed, failed and skipped tests,
# and what the skipped ones need. The exit code is that of cargo.
#
#   scripts/run-tests.sh [ARGUMENT OF cargo test]...        default: --workspace
#
# The complete output is in target/tests/log, and a line for each skipped test in
# target/tests/skipped.
set -uo pipefail
cd "$(dirname "$0")/.." || exit

folder=${CARGO_TARGET_DIR:-$PWD/target}/tests
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
log=$folder/log
# lab/testing writes this file.
export TURBOFLOW_SKIPPED=$folder/skipped
: >"$TURBOFLOW_SKIPPED"

# More tests than processors, because they mostly wait for other processes, and none depends on how
# fast it runs.
export RUST_TEST_THREADS=${RUST_TEST_THREADS:-$((2 * $(nproc || echo 1)))}

(($# > 0)) || set -- --workspace
# Under nohup, the tested programs would ignore SIGHUP too.
env --default-signal=HUP cargo test --no-fail-fast "$@" 2>&1 | tee "$log"
code=${PIPESTATUS[0]}

# Sums up lines such as: test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out;
# finished in 0.01s
counted() { # WORD
    awk -v word="$1;" '/^test result: / { for (i = 2; i <= NF; i++) if ($i == word) sum += $(i - 1) } END { print sum + 0 }' "$log"
}

# The needs of skipped tests, most frequent first: "clang: 2; real captures: 1". Each test counts
# once per need.
needed() { # PREFIX
    grep "^$1: " "$TURBOFLOW_SKIPPED" | sort -u | sed 's/.*: needs /needs /' | sort | uniq -c | sort -k1,1nr -k2 |
        awk '{ count = $1; $1 = ""; printf "%s%s: %d", separator, substr($0, 2), count; separator = "; " }'
}

tests_with() { # PREFIX
    grep "^$1: " "$TURBOFLOW_SKIPPED" | sed 's/: needs .*//' | sort -u | wc -l
}

skipped=$(tests_with SKIPPED)
in_part=$(tests_with "SKIPPED IN PART")
failed=$(counted failed)
# Cargo counts a test that skips itself as passed.
passed=$(($(counted passed) - skipped))
ignored=$(counted ignored)

if ((failed > 0)); then
    echo "failed:"
    sed -n 's/^---- \(.*\) stdout ----$/    \1/p' "$log" | sort -u
fi
if ((skipped + in_part > 0)); then
    echo "make test: what skipped tests need, as far as it can be installed: scripts/install-test-tools.sh (Debian or Ubuntu, root)"
fi
line="make test: $passed passed, $failed failed, $skipped skipped"
((skipped == 0)) || line+=" ($(needed SKIPPED))"
((in_part == 0)) || line+=", $in_part passed in part ($(needed "SKIPPED IN PART"))"
((ignored == 0)) || line+=", $ignored ignored"
# A build error or a crash is not a failed test.
((code == 0 || failed > 0)) || line+="; cargo test failed with exit code $code: the reason is above"
echo "$line"
exit "$code"
