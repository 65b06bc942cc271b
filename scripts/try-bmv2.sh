#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sends captures through the P4 program on bmv2's simple_switch, over a veth pair in a separate network namespace (root),
# and compares the flow records with those of the software engine: first with one record per frame, then with three.
# Takes a second per 250 packets.
#
#   SWITCH=path/to/simple_switch scripts/try-bmv2.sh TURBOFLOW CAPTURE...
set -euo pipefail

(($# > 1)) || { sed -n 's/^#  *SWITCH/usage: SWITCH/p' "$0" >&2; exit 2; }
turboflow=$(realpath "$1")
shift
switch=${SWITCH:-simple_switch}
compiled=$(realpath "$(dirname "$0")/../engines/p4/compiled/v1model")
space=turboflow-bmv2-$$
work=$(mktemp -d)
leave() {
    [[ -z ${pid:-} ]] || kill "$pid" 2>/dev/null || true
    ip netns del "$space" 2>/dev/null || true
    rm -rf "$work"
}
trap leave EXIT

ip netns add "$space"
ip -n "$space" link set lo up
ip -n "$space" link add cpu mtu 9500 type veth peer name port64 mtu 9500
for interface in cpu port64; do
    ip netns exec "$space" sysctl -qw "net.ipv6.conf.$interface.disable_ipv6=1"
    ip -n "$space" link set "$interface" up
done

"$turboflow" --version
differ=0
for program in default default-batch; do
    echo "$program.json"
    ip netns exec "$space" "$switch" -i 64@port64 --thrift-port 9391 "$compiled/$program.json" >"$work/switch" 2>&1 &
    pid=$!
    until grep -q 'Adding interface' "$work/switch"; do kill -0 "$pid"; done
    for capture; do
        "$turboflow" record --quiet -r "$capture" -w "$work/software.csv"
        ip netns exec "$space" "$turboflow" record --quiet --engine p4 --cpu-port cpu -r "$capture" -w "$work/p4.csv"
        same=differs
        cmp -s <(sort "$work/software.csv") <(sort "$work/p4.csv") && same=equal || differ=1
        printf '%s  %6d flow records  %s\n' "$same" $(($(wc -l <"$work/p4.csv") - 1)) "$(basename "$capture")"
    done
    kill "$pid"
    wait "$pid" || true
    pid=
done
exit "$differ"
