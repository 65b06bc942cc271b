// SPDX-License-Identifier: Apache-2.0
// TurboFlow's eight features (Table 9): the four of paper_four, and the maximum and mean queue
// depth (its sum, by packets), the maximum packet size and the maximum inter-arrival time.

#define LAYOUT_ID 0
#define RECORD_FEATURES(FEATURE) \
    FEATURE(max, max_queue_depth, queue_depth) \
    FEATURE(sum, sum_queue_depth, queue_depth) \
    FEATURE(max, max_ip_length, ip_length) \
    FEATURE(max, max_gap, gap)
