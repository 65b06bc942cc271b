#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles a packaging tool, cargo-deb or cargo-generate-rpm, unless it is installed, and prints its folder. The tool
# is not optimised, because other programs do the compression.
#
#   tools=$(scripts/package-tools.sh deb|rpm)
set -euo pipefail
cd "$(dirname "$0")/.."

tools=target/tools
case ${1:?deb or rpm} in
# The system's xz compresses the packages.
deb) tool=(cargo-deb@3.8.0 --no-default-features) ;;
rpm) tool=(cargo-generate-rpm@0.21.1) ;;
esac
name=${tool[0]%@*}
if [[ ! -x $tools/bin/$name ]]; then
    CARGO_PROFILE_DEV_DEBUG=0 cargo install --quiet --locked --profile dev --root "$tools" --target-dir "$tools/build" "${tool[@]}" >&2
fi
realpath "$tools/bin"
