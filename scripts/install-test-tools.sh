#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the other programs that tests and benchmarks compare TurboFlow with (Debian, Ubuntu).
# Building and running TurboFlow does not need them, and a test whose program is missing reports that.
# Optional parts need packages to build, and tests leave out parts whose packages are missing: the XDP
# engine needs clang, libelf and zlib; the software pipeline of the P4 engine needs DPDK; the FPGA
# engine needs Verilator; the inspection of applications needs nDPI; the Kafka client needs make, a C
# compiler and OpenSSL's headers. Python packages, for the wheel and the lakehouse, go into an
# environment of their own.
#
#   scripts/install-test-tools.sh [tests|packages|bench|samples|kernels|all]...        default: tests
#
# `packages` installs only the packages of `tests` that the distribution has. They include what TurboFlow
# is compiled with.
set -euo pipefail

tests=(tshark zstd tcpdump tcpreplay iproute2 ethtool libfaketime nfdump pmacct softflowd openssl strace systemd
    clang libelf-dev zlib1g-dev libdpdk-dev libndpi-dev libndpi-bin pkg-config verilator g++ python3-venv
    make libssl-dev maven dpkg-dev xz-utils)
bench=(nfdump softflowd argus-server argus-client redis-server hyperfine)
samples=(tshark tcpdump iproute2 ethtool nginx-light openssl curl dnsmasq-base bind9-dnsutils openssh-server
    openssh-client iperf3 iputils-ping traceroute chrony)
kernels=(clang gcc make libelf-dev zlib1g-dev qemu-system-x86 busybox-static cpio xz-utils iproute2)

# A collector without a package. It needs the Go version in its go.mod, and the distribution's Go
# may be older.
goflow2=github.com/netsampler/goflow2/v2/cmd/goflow2@v2.2.6
tools=$(cd "$(dirname "$0")/.." && pwd)/target/tools

install_goflow2() {
    [[ -x $tools/goflow2 ]] && return
    local go
    go=$(PATH=$PATH:/usr/local/go/bin command -v go) || {
        echo "install-test-tools: no Go here (https://go.dev/dl), so no goflow2 either: its tests say so" >&2
        return
    }
    echo "install-test-tools: building $goflow2"
    GOBIN=$tools "$go" install "$goflow2" || echo "install-test-tools: goflow2 could not be built" >&2
}

# A decoder library, wrapped in a program of this project with its own lock file. It is rebuilt only
# after a change.
install_netgauze() {
    local manifest=$tools/../../apps/turboflow/tests/collectors/netgauze/Cargo.toml
    command -v cargo >/dev/null || { echo "install-test-tools: no Rust here, so no netgauze-flows either" >&2; return; }
    echo "install-test-tools: building netgauze-flows"
    if cargo build --quiet --locked --manifest-path "$manifest" --target-dir "$tools/build"; then
        cp "$tools/build/debug/netgauze-flows" "$tools/"
    else
        echo "install-test-tools: netgauze-flows could not be built: its tests say so" >&2
    fi
}

# A broker and its consumer, as Java archives, in the versions that this project is tested with.
install_kafka() {
    local folder=$tools/kafka sums=$tools/../../scripts/kafka/SHA256SUMS
    command -v mvn >/dev/null || { echo "install-test-tools: no Maven here, so no Kafka either: its tests say so" >&2; return; }
    if ! (cd "$folder" 2>/dev/null && sha256sum --quiet --strict --check "$sums" 2>/dev/null); then
        echo "install-test-tools: fetching Kafka"
        rm -rf "$folder"
        mvn -q -B -f "$tools/../../scripts/kafka/pom.xml" dependency:copy-dependencies -DincludeScope=runtime \
            -DoutputDirectory="$folder" || echo "install-test-tools: Kafka could not be fetched" >&2
    fi
    if ! (cd "$folder" && sha256sum --quiet --strict --check "$sums"); then
        echo "install-test-tools: these archives are not those of scripts/kafka/SHA256SUMS: removed" >&2
        rm -rf "$folder"
    fi
}

# Python packages in an environment of their own. scripts/python/NAME.txt lists them.
install_python() { # NAME [OPTION OF PIP]...
    local folder=$tools/python-$1 list=$tools/../../scripts/python/$1.txt try
    shift
    cmp -s "$list" "$folder/installed" && return
    python3 -c 'import venv, ensurepip' 2>/dev/null || { echo "install-test-tools: no python3-venv here: tests with $list say so" >&2; return; }
    echo "install-test-tools: installing packages of Python: $(grep -v '^#' "$list" | tr '\n' ' ')"
    for try in 1 2 3; do
        rm -rf "$folder"
        # Packages are compiled on first use, because most of their modules are never used.
        if python3 -m venv "$folder" &&
            "$folder/bin/pip" install --quiet --disable-pip-version-check --no-compile "$@" --requirement "$list"; then
            cp "$list" "$folder/installed"
            return
        fi
        sleep $((try * 5))
    done
    echo "install-test-tools: the packages in $list could not be installed: their tests say so" >&2
    rm -rf "$folder"
}

install_lakehouse() {
    install_python lakehouse
}

install_classify() {
    install_python classify
}

# Without chdb's dependencies, which are for data frames and which no test uses.
install_clickhouse() {
    install_python clickhouse --no-deps
}

# The tool that makes the Debian package.
install_cargo_deb() {
    command -v cargo >/dev/null || { echo "install-test-tools: no Rust here, so no cargo-deb either" >&2; return; }
    "$tools/../../scripts/package-tools.sh" deb >/dev/null ||
        echo "install-test-tools: cargo-deb could not be built: its tests say so" >&2
}

# Downloads run in the background while the other tools are compiled.
install_others() {
    local loading=() process
    install_kafka &
    loading+=($!)
    install_lakehouse &
    loading+=($!)
    install_clickhouse &
    loading+=($!)
    install_classify &
    loading+=($!)
    install_goflow2
    install_netgauze
    install_cargo_deb
    for process in "${loading[@]}"; do wait "$process"; done
}

wanted=()
others=
for group in "${@:-tests}"; do
    case $group in
    tests) wanted+=("${tests[@]}") others=1 ;;
    packages) wanted+=("${tests[@]}") ;;
    bench) wanted+=("${bench[@]}") ;;
    samples) wanted+=("${samples[@]}") ;;
    kernels) wanted+=("${kernels[@]}") ;;
    all) wanted+=("${tests[@]}" "${bench[@]}" "${samples[@]}" "${kernels[@]}") others=1 ;;
    *)
        echo "usage: $0 [tests|packages|bench|samples|kernels|all]..." >&2
        exit 2
        ;;
    esac
done

# Packages of the distribution come first, because other tools need some of them.
install_packages() {
    local package missing=() as_root=()
    if ! command -v apt-get >/dev/null; then
        echo "install-test-tools: no apt-get here; install by hand: ${wanted[*]}" >&2
        return 2
    fi
    for package in "${wanted[@]}"; do
        [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || missing+=("$package")
    done
    if ((${#missing[@]} == 0)); then
        echo "install-test-tools: all packages are there"
        return
    fi
    if ((EUID != 0)); then
        command -v sudo >/dev/null || { echo "install-test-tools: needs root: apt-get install ${missing[*]}" >&2; return 2; }
        as_root=(sudo)
    fi
    echo "install-test-tools: installing ${missing[*]}"
    "${as_root[@]}" apt-get update -q &&
        "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "${missing[@]}"
}

code=0
install_packages || code=$?
[[ -z $others ]] || install_others
exit "$code"
