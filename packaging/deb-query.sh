#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the Debian package of turboflow-query, which answers `turboflow sql`. It is a package of its own: probes need no
# query engine. Needs dpkg-deb and binutils.
#
#   packaging/deb-query.sh PROGRAM FOLDER [OPTION-OF-DPKG-DEB]...    example: packaging/deb-query.sh target/release/turboflow-query target
set -euo pipefail

if (($# < 2)); then
    echo "usage: $0 PROGRAM FOLDER [OPTION-OF-DPKG-DEB]..." >&2
    exit 2
fi
program=$(realpath "$1")
folder=$(realpath "$2")
shift 2
cd "$(dirname "$0")/.."
for tool in dpkg-deb objdump strip; do
    command -v $tool >/dev/null || { echo "deb-query: $tool is not here: apt-get install dpkg binutils" >&2; exit 2; }
done

version=$("$program" --version | cut -d ' ' -f 2)
architecture=$(dpkg --print-architecture)
package=$folder/turboflow-query_${version}_$architecture.deb
root=$(mktemp -d)
chmod 755 "$root"
trap 'rm -rf "$root"' EXIT
# Equal trees give equal packages.
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}

documents=$root/usr/share/doc/turboflow-query
install -D -m 755 "$program" "$root/usr/bin/turboflow-query"
strip --strip-unneeded "$root/usr/bin/turboflow-query"
install -D -m 644 docs/sql.md "$documents/sql.md"
{
    echo "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/"
    printf '\nFiles: *\nCopyright: The TurboFlow developers\nLicense: Apache-2.0\n'
    echo " On Debian systems the text of the licence is in /usr/share/common-licenses/Apache-2.0."
} >"$documents/copyright"

# Of its libraries only libc's version matters: the newest symbol that the program asks for.
libc=$(objdump -T "$root/usr/bin/turboflow-query" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -1)
mkdir "$root/DEBIAN"
cat >"$root/DEBIAN/control" <<END
Package: turboflow-query
Version: $version
Architecture: $architecture
Maintainer: The TurboFlow developers <turboflow@turboflow.invalid>
Section: net
Priority: optional
Homepage: https://github.com/turboflow/turboflow
Depends: libc6 (>= ${libc#GLIBC_}), libgcc-s1
Recommends: turboflow
Installed-Size: $(du -sk --exclude=DEBIAN "$root" | cut -f 1)
Description: SQL on files of flow records
 Answers \`turboflow sql 'select ...' FILES\` on the Parquet, CSV, JSON lines and IPFIX
 files of TurboFlow: joins, windows, percentiles. The meter itself is the package
 turboflow, which needs no query engine.
END

find "$root" -newermt "@$SOURCE_DATE_EPOCH" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
dpkg-deb --root-owner-group "$@" --build "$root" "$package" >/dev/null
echo "$package"
