#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles the tool that makes packages, cargo-deb or cargo-generate-rpm, if it is not there, and prints its folder. It
# is not optimised: others compress what it packs.
#
#   tools=$(scripts/package-tools.sh deb|rpm)
set -euo pipefail
cd "$(dirname "$0")/.."

tools=target/tools
case ${1:?deb or rpm} in
# Packages are compressed by the system's xz.
deb) tool=(cargo-deb@3.8.0 --no-default-features) ;;
rpm) tool=(cargo-generate-rpm@0.21.1) ;;
esac
name=${tool[0]%@*}
if [[ ! -x $tools/bin/$name ]]; then
    CARGO_PROFILE_DEV_DEBUG=0 cargo install --quiet --locked --profile dev --root "$tools" --target-dir "$tools/build" "${tool[@]}" >&2
fi
realpath "$tools/bin"
