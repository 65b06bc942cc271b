#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks the prerequisites of a build: a Rust version as required by Cargo.toml, and a C compiler,
# which Rust needs for linking and the zstd library for building. Installs the compiler if it may
# (root on Debian or Ubuntu), and otherwise prints what to do.
#
#   scripts/set-up.sh [tests]
#
# With `tests`, also installs the tools of tests if it may. Tests without their tools are skipped.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
rustup="curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh"

stop() {
    echo "set-up: $*" >&2
    exit 2
}

needed=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$root/Cargo.toml")
command -v cargo >/dev/null || stop "cargo was not found; TurboFlow needs Rust $needed or newer: $rustup"
# Run in the checkout, so that a toolchain override for it applies.
found=$(cd "$root" && rustc --version | sed 's/^rustc \([0-9.]*\).*/\1/')
if [[ $(printf '%s\n' "$needed" "$found" | sort -V | head -n 1) != "$needed" ]]; then
    stop "Rust $found is older than the $needed that TurboFlow needs: rustup update, or $rustup"
fi

may_install() {
    ((EUID == 0)) && command -v apt-get >/dev/null
}

if [[ ${1:-} == tests ]]; then
    may_install || exit 0
    "$root/scripts/install-test-tools.sh" tests >&2 || echo "set-up: not everything could be installed: some tests will be skipped" >&2
    exit 0
fi

command -v cc >/dev/null && exit 0
if may_install; then
    echo "set-up: installing a C compiler (gcc, libc6-dev)" >&2
    apt-get update -q >&2
    DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends gcc libc6-dev >&2
else
    stop "no C compiler (cc) was found, and Rust links with one: sudo apt-get install gcc libc6-dev"
fi
