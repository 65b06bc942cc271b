// SPDX-License-Identifier: Apache-2.0
// Written by `turboflow p4 generate`: the record definition `default`. What it folds beyond the
// packets, bytes, first and last time and TCP flags that every record has:
// FEATURE(op, name, input).

#define LAYOUT_ID 0x8abde873717f063a
#define RECORD_FEATURES(FEATURE) \
    FEATURE(min, min_ip_length, ip_length) \
    FEATURE(max, max_ip_length, ip_length) \
    FEATURE(min, min_ttl, ttl) \
    FEATURE(max, max_ttl, ttl) \
    FEATURE(first, first_tos, tos)
