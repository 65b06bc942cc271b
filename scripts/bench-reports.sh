#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures the receiver of P4 reports on an interface. In a separate network namespace (root), a pipeline at the
# other end of a veth pair evicts RATE records per second for ten seconds, ten per frame, as records of FLOWS flows.
# `turboflow record --engine p4` receives them on the second processor. Exits with 1 if anything was lost.
#
#   scripts/bench-reports.sh TURBOFLOW FLOOD_REPORTS RATE [FLOWS]
set -euo pipefail

(($# > 2)) || { sed -n 's/^#  *scripts/usage: scripts/p' "$0" >&2; exit 2; }
turboflow=$(realpath "$1")
flood=$(realpath "$2")
space=turboflow-reports-$$
work=$(mktemp -d)
leave() {
    kill "${pids[@]}" 2>/dev/null || true
    ip netns del "$space" 2>/dev/null || true
    rm -rf "$work"
}
pids=()
trap leave EXIT

ip netns add "$space"
ip -n "$space" link add cpu mtu 9500 type veth peer name switch mtu 9500
for interface in cpu switch; do
    ip netns exec "$space" sysctl -qw "net.ipv6.conf.$interface.disable_ipv6=1"
    ip -n "$space" link set "$interface" up
done
ip netns exec "$space" taskset -c 0 "$flood" switch "$3" 10 "${4:-10000}" >"$work/flood" 2>&1 &
pids+=($!)
until grep -q waits "$work/flood"; do kill -0 "${pids[0]}"; done
ip netns exec "$space" taskset -c 1 "$turboflow" record --engine p4 --cpu-port cpu --ring-size 256MiB -w "$work/flows.csv" \
    >"$work/said" 2>&1 &
pids+=($!)
until grep -q 'records sent' "$work/flood"; do
    kill -0 "${pids[0]}"
    sleep 0.1
done
kill -INT "${pids[1]}"
code=0
wait "${pids[1]}" || code=$?
cat "$work/flood" "$work/said"
exit "$code"
