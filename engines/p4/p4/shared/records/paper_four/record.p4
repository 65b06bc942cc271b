// SPDX-License-Identifier: Apache-2.0
// Written by `turboflow p4 generate`: the record definition `paper_four`. What it folds beyond the
// packets, bytes, first and last time and TCP flags that every record has:
// FEATURE(op, name, input).

#define LAYOUT_ID 0x4792db03a7ce68d4
#define RECORD_FEATURES(FEATURE)
