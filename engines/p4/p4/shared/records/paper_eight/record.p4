// SPDX-License-Identifier: Apache-2.0
// Written by `turboflow p4 generate`: the record definition `paper_eight`. What it folds beyond the
// packets, bytes, first and last time and TCP flags that every record has:
// FEATURE(op, name, input).

#define LAYOUT_ID 0x07cc1f47cc663b71
#define RECORD_FEATURES(FEATURE) \
    FEATURE(max, max_ip_length, ip_length) \
    FEATURE(sum, sum_queue_depth, queue_depth) \
    FEATURE(max, max_queue_depth, queue_depth) \
    FEATURE(max, max_gap, gap)
