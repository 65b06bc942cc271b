#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a command as on a machine without TurboFlow's optional build dependencies: no clang, and no
# headers of libelf, zlib and nDPI. They are hidden in a mount namespace for the command (Linux,
# root). Nothing is removed.
#
#   scripts/without-libraries.sh COMMAND [ARGUMENT]...
set -euo pipefail

if [[ ${1:-} != --inside ]]; then
    (($# > 0)) || { sed -n 's/^#  *scripts/usage: scripts/p' "$0" >&2; exit 2; }
    layer=$(mktemp -d)
    code=0
    unshare --mount "$0" --inside "$layer" "$@" || code=$?
    rmdir "$layer"
    exit "$code"
fi
layer=$2
shift 2

# Deleting in the overlay leaves the lower file in place.
mount -t tmpfs tmpfs "$layer"
mkdir "$layer/upper" "$layer/work"
mount -t overlay overlay -o "lowerdir=/usr,upperdir=$layer/upper,workdir=$layer/work" /usr
rm -f /usr/bin/clang* /usr/include/libelf.h /usr/include/gelf.h /usr/include/zlib.h /usr/include/zconf.h
rm -rf /usr/include/ndpi
hash -r
if command -v clang >/dev/null || [[ -e /usr/include/libelf.h || -e /usr/include/zlib.h ]]; then
    echo "without-libraries: clang or a header is still here" >&2
    exit 2
fi
exec "$@"
