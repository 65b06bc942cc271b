#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a package of a program that is built. The program's Cargo.toml says what is in it. cargo-deb or
# cargo-generate-rpm, which make it, are compiled the first time.
#
#   packaging/package.sh deb|rpm PROGRAM FOLDER [OPTION-OF-THE-TOOL]...    example: packaging/package.sh deb target/release/turboflow target
set -euo pipefail

if (($# < 3)) || [[ $1 != deb && $1 != rpm ]]; then
    echo "usage: $0 deb|rpm PROGRAM FOLDER [OPTION-OF-THE-TOOL]..." >&2
    exit 2
fi
kind=$1
program=$(realpath "$2")
folder=$(realpath "$3")
shift 3
cd "$(dirname "$0")/.."

case $(basename "$program") in
turboflow) crate=apps/turboflow ;;
turboflow-query) crate=apps/sql ;;
*) echo "package: no package of $program: turboflow and turboflow-query have one" >&2 && exit 2 ;;
esac
for tool in strip gzip $([[ $kind == rpm ]] || echo dpkg-shlibdeps xz); do
    command -v "$tool" >/dev/null || { echo "package: $tool is not here: apt-get install binutils gzip dpkg-dev xz-utils" >&2; exit 2; }
done
tools=$(scripts/package-tools.sh "$kind")

# Both tools look for target/release: here a folder of its own, which has no more than what is packed.
target=$(mktemp -d)
trap 'rm -rf "$target"' EXIT
root=$target/release
install -D -m 755 "$program" "$root/${program##*/}"
strip --strip-unneeded "$root/${program##*/}"
if [[ $crate == apps/turboflow ]]; then
    mkdir "$root/man" "$root/completions"
    "$program" man "$root/man"
    cp CHANGELOG.md "$root/changelog"
    gzip -n -9 "$root/man"/* "$root/changelog"
    for shell in bash zsh fish; do
        "$program" completions $shell >"$root/completions/$shell"
    done
fi

# Equal trees give equal packages.
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
export CARGO_TARGET_DIR=$target
if [[ $kind == deb ]]; then
    "$tools/cargo-deb" --quiet --offline --no-build --no-strip --compress-system --manifest-path "$crate/Cargo.toml" --output "$folder" "$@"
else
    "$tools/cargo-generate-rpm" --package "$crate" --target-dir "$target" --output "$folder" "$@"
fi
