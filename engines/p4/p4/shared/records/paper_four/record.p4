// SPDX-License-Identifier: Apache-2.0
// TurboFlow's four features (Table 7): packets, bytes, first and last time, which every record has
// together with TCP flags. Nothing beyond them.

#define LAYOUT_ID 0
#define RECORD_FEATURES(FEATURE)
