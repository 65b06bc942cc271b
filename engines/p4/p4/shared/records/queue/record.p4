// SPDX-License-Identifier: Apache-2.0
// Written by `turboflow p4 generate`: the record definition `queue`. What it folds beyond the
// packets, bytes, first and last time and TCP flags that every record has:
// FEATURE(op, name, input).

#define LAYOUT_ID 0xbcc205d7245d541f
#define RECORD_FEATURES(FEATURE) \
    FEATURE(min, min_ip_length, ip_length) \
    FEATURE(max, max_ip_length, ip_length) \
    FEATURE(min, min_ttl, ttl) \
    FEATURE(max, max_ttl, ttl) \
    FEATURE(first, first_tos, tos) \
    FEATURE(max, max_queue_depth, queue_depth) \
    FEATURE(max, max_hop_latency, hop_latency)
