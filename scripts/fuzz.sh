#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs fuzz targets, each for FUZZ_SECONDS (60); without arguments, all of fuzz/fuzz_targets/.
# Installs nightly Rust and cargo-fuzz if they are missing. On a crash it exits with 1 and prints
# how to reproduce it.
#
#   FUZZ_SECONDS=60 scripts/fuzz.sh [TARGET]...
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${FUZZ_SECONDS:-60}
targets=("$@")
if ((${#targets[@]} == 0)); then
    for file in fuzz/fuzz_targets/*.rs; do targets+=("$(basename "$file" .rs)"); done
fi
# The target for nDPI needs the library. Its shim is C, and the sanitizer must cover it too.
features=()
if pkg-config --exists libndpi 2>/dev/null; then
    features=(--features dpi)
    export CFLAGS="${CFLAGS:-} -fsanitize=address -fno-omit-frame-pointer"
else
    echo "fuzz: leaves out \`inspection\`: it needs libndpi-dev and pkg-config" >&2
    for at in "${!targets[@]}"; do [[ ${targets[at]} != inspection ]] || unset "targets[at]"; done
fi

stop() {
    echo "fuzz: $*" >&2
    exit 2
}

if ! cargo +nightly --version >/dev/null 2>&1; then
    command -v rustup >/dev/null || stop "fuzzing needs nightly Rust, and rustup to install it: https://rustup.rs"
    echo "fuzz: installing nightly Rust" >&2
    rustup toolchain install nightly --profile minimal || stop "nightly Rust could not be installed"
fi
if ! cargo fuzz --version >/dev/null 2>&1; then
    echo "fuzz: installing cargo-fuzz" >&2
    cargo install --quiet cargo-fuzz || stop "cargo-fuzz could not be installed: cargo install cargo-fuzz"
fi
# libFuzzer's address sanitizer needs a C++ compiler.
command -v c++ >/dev/null || stop "libFuzzer needs a C++ compiler: sudo apt-get install g++"

cargo +nightly fuzz build "${features[@]}"

failed=()
for target in "${targets[@]}"; do
    echo "fuzz: $target, $seconds s" >&2
    corpus=fuzz/corpus/$target
    mkdir -p "$corpus"
    folders=("$corpus")
    # Targets that read captures start from real ones.
    [[ $target == pipeline ]] && folders+=(samples/cases)
    # Exceeding the memory limit or the time limit of one input is a bug.
    cargo +nightly fuzz run "${features[@]}" "$target" "${folders[@]}" -- \
        -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=10 -verbosity=0 -print_funcs=0 -print_final_stats=1 ||
        failed+=("$target")
done
if ((${#failed[@]})); then
    echo "fuzz: FAILED: ${failed[*]}; the inputs are in fuzz/artifacts/, the lines above say how to repeat them" >&2
    exit 1
fi
echo "fuzz: ${#targets[@]} targets, $seconds s each, no crash" >&2
