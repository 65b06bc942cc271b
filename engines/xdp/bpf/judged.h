// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The bridge's decision on a packet, as values of records: `Decided` in crates/record. If a record
// has the 5-tuple as its key and nothing but these values in addition to the standard features, the
// fast program writes it and adds the values to its rows. For any other record they are values of
// the plan.
#pragma once

#include "fold.h"

// Written before the program is loaded, and constant for the verifier.
struct bridge_config {
    // Cookie of the ports' network namespace: interfaces in other namespaces may have equal
    // indexes.
    __u64 network;
    // Indexes of words in a record's state, for the fast program. NO_WORD if the record lacks the
    // value.
    __u32 verdict_word;
    __u32 rule_word;
    __u32 packet_word;
    __u32 bytes_word;
    // Rules with numbers below this are counted individually.
    __u32 rules;
    // Whether all frames are forwarded, and drops are only counted.
    __u32 is_dry_run;
};
_Static_assert(sizeof(struct bridge_config) == 32, "as in src/bridge/config.rs");

const volatile struct bridge_config bridge SEC(".rodata.bridge");

// `BridgeVerdict` in crates/record.
enum bridge_verdict {
    UNDECIDED,
    PASSED,
    DROPPED,
    WOULD_DROP,
};

// The decision on one packet: the inputs VERDICT, RULE, PACKET_DROPPED, BYTES_DROPPED.
struct judgement {
    __u64 verdict;
    __u64 rule;
    __u64 is_dropped;
    __u64 dropped_bytes;
};

// Values of `last` are stored plus one, because 0 means none (fold.h).
static __always_inline void fold_judgement(__u64 *state, const struct judgement *judgement)
{
    if (bridge.verdict_word < PLAN_WORDS)
        state[bridge.verdict_word] = judgement->verdict + 1;
    if (bridge.rule_word < PLAN_WORDS)
        state[bridge.rule_word] = judgement->rule + 1;
    if (bridge.packet_word < PLAN_WORDS)
        state[bridge.packet_word] += judgement->is_dropped;
    if (bridge.bytes_word < PLAN_WORDS)
        state[bridge.bytes_word] += judgement->dropped_bytes;
}

static __always_inline __u32 words_of_record(int key_words)
{
    return sizeof(struct base) / 8 + plan.state_words + key_words;
}
