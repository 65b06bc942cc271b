// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Folds a packet into the words of a record, as crates/merge/src/layout does. It needs no maps,
// clock or helpers, so it can run under a row's lock.
#pragma once

#include "plan.h"

// The upper half of the 128-bit product a * b.
static __always_inline __u64 upper_half(__u64 a, __u64 b)
{
    __u64 a0 = a & 0xffffffff, a1 = a >> 32, b0 = b & 0xffffffff, b1 = b >> 32;
    __u64 middle = a1 * b0 + (a0 * b0 >> 32);
    __u64 other = a0 * b1 + (middle & 0xffffffff);
    return a1 * b1 + (middle >> 32) + (other >> 32);
}

// Adds to a number of two words, low word first; saturates.
static __always_inline void add_wide(__u64 *words, __u64 low, __u64 high)
{
    __u64 low_sum = words[0] + low;
    __u64 carry = low_sum < low;
    __u64 high_sum = words[1] + high;
    __u64 is_over = high_sum < high;
    high_sum += carry;
    is_over |= high_sum < carry;
    words[0] = low_sum | -is_over;
    words[1] = high_sum | -is_over;
}

// 1 if value >= edge. It is the borrow of their difference, without a branch, so that the verifier
// knows the range of a sum of such results.
static __always_inline __u64 reaches(__u64 value, __u64 edge)
{
    __u64 borrow = (~value & edge) | ((~value | edge) & (value - edge));
    return ~borrow >> 63;
}

static __always_inline __u64 bin_of(const volatile struct step *step, __u64 value)
{
    __u64 bin = 0;
#pragma clang loop unroll(disable)
    for (__u32 i = 0; i < PLAN_EDGES; i++) {
        if (i >= step->count)
            break;
        bin += reaches(value, plan.edges[step->edge + i]);
    }
    return bin;
}

// Folds a value that the packet may lack: `mask` is all ones if the packet has the value, else 0.
static __always_inline void fold_value(__u64 *state, const volatile struct step *step, __u64 value, __u64 mask)
{
    __u64 *word = state + step->word;
    const __u64 kept = value & mask;
    switch (step->fold) {
    case FOLD_COUNT:
        *word += mask & 1;
        break;
    case FOLD_SUM:
        *word += kept;
        break;
    case FOLD_BINS:
        word[bin_of(step, value)] += mask & 1;
        break;
    case FOLD_MIN:
        value |= ~mask;
        if (value < *word)
            *word = value;
        break;
    case FOLD_MAX:
        // Encoded as by `encode_max`.
        value = (~value - 1) | ~mask;
        if (value < *word)
            *word = value;
        break;
    case FOLD_BIT_OR:
        *word |= kept;
        break;
    case FOLD_FIRST:
        if (!*word)
            *word = kept + (mask & 1);
        break;
    case FOLD_LAST:
        if (mask)
            *word = value + 1;
        break;
    case FOLD_WIDE_SUM:
        add_wide(word, kept, 0);
        break;
    case FOLD_WIDE_SQUARES:
        add_wide(word, kept * kept, upper_half(kept, kept));
        break;
    case FOLD_LIST: {
        __u64 kept_before = *word;
        if (mask && kept_before < step->count) {
            word[1 + kept_before] = value;
            *word = kept_before + 1;
        }
        break;
    }
    }
}

// Returns whether there is a step with that number.
static __always_inline int fold_step(__u64 *state, const struct sample *sample, const struct value_set *present, int number)
{
    const volatile struct step *step = &plan.steps[number];
    __u8 of;
    if (step->fold == FOLD_NOTHING)
        return 0;
    of = step->of % VALUES;
    fold_value(state, step, sample->values[of], -has(present, of));
    return 1;
}

// Notes the gap before this packet, if there was an earlier one.
static __always_inline void note_gap(const __u64 *state, struct sample *sample, struct value_set *present, __u64 now_ns)
{
    __u64 before;
    if (plan.last_arrival == NO_WORD)
        return;
    before = state[plan.last_arrival];
    sample->values[GAP] = now_ns + 1 > before ? now_ns + 1 - before : 0;
    add(present, GAP, before != 0);
}

#define FOLD_4(FIRST)                                                                                                              \
    (fold_step(state, sample, &present, FIRST) && fold_step(state, sample, &present, FIRST + 1) &&                                 \
     fold_step(state, sample, &present, FIRST + 2) && fold_step(state, sample, &present, FIRST + 3))
#define FOLD_16(FIRST) (FOLD_4(FIRST) && FOLD_4(FIRST + 4) && FOLD_4(FIRST + 8) && FOLD_4(FIRST + 12))

// Folds the packet into a state. Each step has its own code, which the verifier reduces to that of
// its operation, without branches. Nothing remains of unused steps.
static __always_inline void fold_packet(__u64 *state, struct sample *sample, __u64 now_ns)
{
    struct value_set present = sample->present;
    int is_full;
    sample->values[TIMESTAMP] = now_ns;
    note_gap(state, sample, &present, now_ns);
    _Static_assert(PLAN_STEPS == 64, "so many follow");
    is_full = FOLD_16(0) && FOLD_16(16) && FOLD_16(32) && FOLD_16(48);
    (void)is_full;
}

// A state without packets.
static __always_inline void clear_state(__u64 *state)
{
#pragma clang loop unroll(disable)
    for (__u32 i = 0; i < PLAN_WORDS; i++) {
        if (i >= plan.state_words)
            break;
        state[i] = i >= plan.min_start && i < plan.min_end ? ~0ULL : 0;
    }
}
