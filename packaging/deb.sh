#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the Debian package of a program that is built. Needs dpkg-deb and binutils, no other packaging tool.
#
#   packaging/deb.sh PROGRAM FOLDER [OPTION-OF-DPKG-DEB]...        example: packaging/deb.sh target/release/turboflow target
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
    command -v $tool >/dev/null || { echo "deb: $tool is not here: apt-get install dpkg binutils" >&2; exit 2; }
done

version=$("$program" --version | cut -d ' ' -f 2)
architecture=$(dpkg --print-architecture)
package=$folder/turboflow_${version}_$architecture.deb
root=$(mktemp -d)
chmod 755 "$root"
trap 'rm -rf "$root"' EXIT
# Equal trees give equal packages.
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}

documents=$root/usr/share/doc/turboflow
install -D -m 755 "$program" "$root/usr/bin/turboflow"
strip --strip-unneeded "$root/usr/bin/turboflow"
install -D -m 644 packaging/turboflow.service "$root/usr/lib/systemd/system/turboflow.service"
install -D -m 644 packaging/turboflow.toml "$root/etc/turboflow.toml"
pages=$root/usr/share/man/man1
install -d "$pages"
"$program" man "$pages"
for shell in bash:bash-completion/completions/turboflow zsh:zsh/vendor-completions/_turboflow fish:fish/vendor_completions.d/turboflow.fish; do
    script=$root/usr/share/${shell#*:}
    install -d "$(dirname "$script")"
    "$program" completions "${shell%%:*}" >"$script"
done
install -D -m 644 -t "$documents" docs/*.md docs/turboflow-elements.xml
install -D -m 644 CHANGELOG.md "$documents/changelog"
{
    echo "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/"
    printf '\nFiles: *\nCopyright: The TurboFlow developers\nLicense: Apache-2.0\n'
    echo " On Debian systems the text of the licence is in /usr/share/common-licenses/Apache-2.0."
    printf '\nFiles: engines/xdp/bpf/*\nCopyright: The TurboFlow developers\nLicense: Apache-2.0 or GPL-2\n'
    echo " On Debian systems the texts of the licences are in /usr/share/common-licenses."
} >"$documents/copyright"
gzip -n -9 "$documents/changelog" "$pages"/*.1

# Of its libraries only libc's version matters: the newest symbol that the program asks for.
libc=$(objdump -T "$root/usr/bin/turboflow" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -1)
depends="libc6 (>= ${libc#GLIBC_}), libgcc-s1"
# The engine in the kernel is read by libelf, where the program was built with it.
if objdump -p "$root/usr/bin/turboflow" | grep -q 'NEEDED *libelf'; then
    depends+=", libelf1t64 | libelf1, zlib1g"
fi
# nDPI changes its interface with each version: the package that has this one.
if needed=$(objdump -p "$root/usr/bin/turboflow" | grep -o 'libndpi\.so\.[0-9.]*'); then
    depends+=", $(dpkg-query -S "*/$needed" | sed 's/:.*//' | head -1)"
fi
mkdir "$root/DEBIAN"
cat >"$root/DEBIAN/control" <<END
Package: turboflow
Version: $version
Architecture: $architecture
Maintainer: The TurboFlow developers <turboflow@turboflow.invalid>
Section: net
Priority: optional
Homepage: https://github.com/turboflow/turboflow
Depends: $depends
Recommends: libpcap0.8t64 | libpcap0.8
Suggests: ethtool, turboflow-query
Installed-Size: $(du -sk --exclude=DEBIAN "$root" | cut -f 1)
Description: exact flow records from network interfaces and captures
 TurboFlow meters every packet, unsampled, and exports flow records as Parquet, CSV,
 JSON lines, IPFIX and NetFlow. Every packet is in a record or in a counter that says
 why not. The service is installed but not started: name the interfaces in
 /etc/turboflow.toml, then systemctl enable --now turboflow.
END
echo /etc/turboflow.toml >"$root/DEBIAN/conffiles"
install -m 755 packaging/debian/{postinst,prerm,postrm} "$root/DEBIAN"

find "$root" -newermt "@$SOURCE_DATE_EPOCH" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
dpkg-deb --root-owner-group "$@" --build "$root" "$package" >/dev/null
echo "$package"
