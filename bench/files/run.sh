#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# turboflow against nfpcapd, softflowd and argus on capture files, as whole processes.
#
#   bench/files/run.sh CAPTURE... [ARGUMENT of bench_files.py]...
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
: "${1:?usage: bench/files/run.sh CAPTURE... [--repetitions N] [--require-ratio X] ...}"

missing=()
for tool in nfpcapd:nfdump nfdump:nfdump softflowd:softflowd argus:argus-server racount:argus-client; do
    command -v "${tool%:*}" >/dev/null || missing+=("${tool#*:}")
done
if ((${#missing[@]})); then
    echo "bench-files: left out for want of: ${missing[*]} (apt-get install ${missing[*]})" >&2
fi
exec python3 "$root/bench/files/bench_files.py" "$@"
