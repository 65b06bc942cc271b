#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests of the XDP engine on Debian kernels, each in a virtual machine, without installing
# the kernels (with or without root; `scripts/install-test-tools.sh kernels` installs the
# prerequisites).
#
#   scripts/try-kernels.sh [VERSION]...        default: Debian 12's kernel and the one of its backports
#
# VERSION is the part after linux-image-, as in `apt-cache search linux-image`. TESTS="laws::
# table::" selects tests.
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")/.."

versions=("$@")
((${#versions[@]})) || versions=(cloud-amd64 6.12-cloud-amd64)
# With software emulation only, ten million packets would take hours.
read -ra tests <<<"${TESTS:-laws:: table:: parser:: planned:: links:: handed_up:: driver::}"
limit_s=${LIMIT_S:-1800}
work=$PWD/target/kernels
mkdir -p "$work"

for program in qemu-system-x86_64 busybox cpio xz ip; do
    command -v "$program" >/dev/null || {
        echo "try-kernels: no $program here: scripts/install-test-tools.sh kernels" >&2
        exit 2
    }
done

# The package that contains the kernel: a meta-package depends on it.
package_of() { # VERSION
    local package=linux-image-$1 depends
    depends=$(apt-cache depends "$package" | awk '$1 == "Depends:" && $2 ~ /^linux-image-/ { print $2; exit }')
    echo "${depends:-$package}"
}

# The folder with a kernel and its modules.
fetch() { # PACKAGE
    local folder=$work/$1
    if [[ ! -d $folder ]]; then
        rm -rf "$folder.new"
        (cd "$work" && apt-get download -qq "$1") >&2 &&
            mkdir "$folder.new" &&
            dpkg-deb -x "$work/$1"_*.deb "$folder.new" &&
            rm "$work/$1"_*.deb &&
            mv "$folder.new" "$folder" || {
            echo "try-kernels: $1 could not be fetched; apt-get update first, and apt-cache search linux-image for names" >&2
            exit 2
        }
    fi
    echo "$folder"
}

# Builds the driver in tests/driver for a kernel. Prints nothing for a kernel older than the driver
# supports.
driver_of() { # PACKAGE
    local release=${1#linux-image-} headers=$work/headers-${1#linux-image-} part parts
    printf '%s\n' 6.8 "${release%%-*}" | sort -VC || return 0
    if [[ ! -d $headers ]]; then
        rm -rf "$headers.new"
        parts=$(apt-cache depends "linux-headers-$release" | awk '$1 == "Depends:" && $2 ~ /^linux-(headers|kbuild)/ { print $2 }')
        for part in "linux-headers-$release" $parts; do
            (cd "$work" && apt-get download -qq "$part") >&2
            dpkg-deb -x "$work/$part"_*.deb "$headers.new"
            rm "$work/$part"_*.deb
        done
        # Modules search for each other at their installed location.
        sed -i "s,/usr/src/,$headers/usr/src/," "$headers.new/usr/src/linux-headers-$release/Makefile"
        mv "$headers.new" "$headers"
    fi
    rm -rf "$work/driver"
    cp -r engines/xdp/tests/driver "$work/driver"
    # Skips BTF, which would need pahole and is not used.
    make -s -C "$headers/usr/src/linux-headers-$release" M="$work/driver" CC=gcc CONFIG_DEBUG_INFO_BTF_MODULES= modules >&2
    echo "$work/driver/clocked.ko"
}

# Adds a program and its shared libraries, at the same paths.
add() { # ROOT PROGRAM
    local root=$1 file
    for file in "$2" $(ldd "$2" | grep -o '/[^ )]*'); do
        install -D "$file" "$root$file"
    done
}

# Makes a root file system that runs the tests and powers off.
root_of() { # FOLDER ROOT TEST_PROGRAM [DRIVER]
    local folder=$1 root=$2 program=$3 driver=${4:-} module ignored=""
    rm -rf "$root"
    mkdir -p "$root"/{proc,sys,dev,tmp,run,bin,sbin,lib/modules}
    install "$(command -v busybox)" "$root/bin/busybox"
    for module in $(find "$folder" -name 'veth.ko*'); do
        case $module in
        *.xz) xz -dc "$module" >"$root/lib/modules/veth.ko" ;;
        *) cp "$module" "$root/lib/modules/veth.ko" ;;
        esac
    done
    if [[ -n $driver ]]; then
        cp "$driver" "$root/lib/modules/clocked.ko"
        ignored=--include-ignored
    fi
    add "$root" "$program"
    add "$root" "$(command -v ip)"
    install -D "$program" "$root/tests"
    # The tests look for samples where they were compiled.
    mkdir -p "$root$PWD/engines/xdp"
    cp -r samples "$root$PWD/"
    cat >"$root/init" <<EOF
#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin:/sbin:/usr/bin:/usr/sbin TMPDIR=/tmp TURBOFLOW_CI=1
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev; mount -t bpf bpf /sys/fs/bpf
mount -t tmpfs run /run; mount -t tmpfs tmp /tmp
insmod /lib/modules/veth.ko
if [ -e /lib/modules/clocked.ko ]; then
    # Only its test may send on this interface.
    insmod /lib/modules/clocked.ko && echo 1 >/proc/sys/net/ipv6/conf/clocked0/disable_ipv6 && ip link set clocked0 up
fi
ip link set lo up
echo "kernel \$(uname -r), \$(nproc) processors"
cd $PWD/engines/xdp
/tests --test-threads 2 $ignored ${tests[*]} && echo "TRIED: well" || echo "TRIED: failed"
poweroff -f
EOF
    chmod +x "$root/init"
}

test_program() {
    cargo test --quiet --package turboflow-engine-xdp --features kernel --test kernel --no-run --message-format=json |
        grep -o '"executable":"[^"]*/kernel-[^"]*"' | tail -1 | cut -d'"' -f4
}

program=$(test_program)
outcome=0
for version in "${versions[@]}"; do
    package=$(package_of "$version")
    echo "=== $package"
    folder=$(fetch "$package")
    root=$work/root
    driver=$(driver_of "$package")
    root_of "$folder" "$root" "$program" "$driver"
    (cd "$root" && find . | cpio --quiet -o -H newc) | gzip -1 >"$work/initrd.gz"
    log=$work/$package.log
    timeout "$limit_s" qemu-system-x86_64 -accel tcg -cpu max -smp 2 -m 3G -nographic -no-reboot -nic none \
        -kernel "$folder"/boot/vmlinuz-* -initrd "$work/initrd.gz" -append "console=ttyS0 quiet panic=-1" \
        </dev/null 2>&1 | tr -d '\r' | tee "$log" | grep -aE '^(test |kernel |running |test result|TRIED|Kernel panic)' || true
    grep -aq '^TRIED: well' "$log" || {
        echo "try-kernels: not all tests passed on $package: $log" >&2
        outcome=1
    }
done
exit "$outcome"
