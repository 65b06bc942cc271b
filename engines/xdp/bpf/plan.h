// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// A record definition other than the default one, as data: the values of a packet that are needed,
// how they form the key, and how they fold into words of a record. src/plan.rs writes it before the
// program is loaded. It is constant for the verifier, which removes code that the definition does
// not need. The words, and the folds, are those of crates/merge/src/layout.
#pragma once

#include "load.h"
#include "values.h"

// Maximum words of state of a record.
#define PLAN_WORDS 120
// Maximum steps of the state. Each has its own code in the program, and jumps over it reach 32,767
// instructions.
#define PLAN_STEPS 64
// Fields of a key: its family, two addresses in two halves each, ports, protocol, inputs.
#define PLAN_KEY_STEPS (8 + KEY_INPUTS)
// Words of a key that is not the 5-tuple.
#define PLAN_KEY_WORDS 16
// Edges of all histograms. Each has one bin more than edges, and a bin is a word.
#define PLAN_EDGES PLAN_WORDS

// `StateContent` in crates/merge/src/layout/words.rs.
enum fold {
    FOLD_NOTHING,
    FOLD_COUNT,
    FOLD_SUM,
    FOLD_BINS,
    FOLD_MIN,
    FOLD_MAX,
    FOLD_BIT_OR,
    FOLD_FIRST,
    FOLD_LAST,
    FOLD_WIDE_SUM,
    FOLD_WIDE_SQUARES,
    FOLD_LIST,
};

struct step {
    __u8 fold;
    // An `enum value`.
    __u8 of;
    __u16 word;
    // Length of a list, or number of edges of a histogram.
    __u16 count;
    // Index of the first edge.
    __u16 edge;
};
_Static_assert(sizeof(struct step) == 8, "as in src/plan.rs");

// key[word] |= (value & keep) << shift, and, if the packet has the value, a presence bit in key[0].
struct key_step {
    __u64 keep;
    __u8 of;
    __u8 word;
    __u8 shift;
    // NO_BIT if every packet has the value.
    __u8 presence;
    // Whether the step exists.
    __u8 is_used;
    __u8 padding[3];
};
_Static_assert(sizeof(struct key_step) == 16, "as in src/plan.rs");

#define NO_BIT 255
#define NO_WORD 0xffffffff

struct plan {
    // The inputs needed.
    struct value_set wanted;
    __u64 hash_keys[1 + 2 * PLAN_KEY_WORDS];
    // Constant bits in the first word of every key that is not the 5-tuple.
    __u64 key_header;
    __u64 edges[PLAN_EDGES];
    struct step steps[PLAN_STEPS];
    struct key_step key_steps[PLAN_KEY_STEPS];
    __u32 state_words;
    // 0 if the key is the 5-tuple.
    __u32 key_words;
    // Range of the words that hold minima. Without a value, such a word is all ones.
    __u32 min_start;
    __u32 min_end;
    // Index plus one of the word that holds the last packet's time, if gaps are measured.
    __u32 last_arrival;
    __u32 padding;
};
_Static_assert(sizeof(struct plan) ==
                   8 * (SET_WORDS + 1 + 1 + 2 * PLAN_KEY_WORDS + PLAN_EDGES + PLAN_STEPS + 2 * PLAN_KEY_STEPS + 3),
               "as in src/plan.rs");

const volatile struct plan plan SEC(".rodata.plan");

// The values of one packet.
struct sample {
    // The inputs that the packet has.
    struct value_set present;
    __u64 values[VALUES];
    __u64 key[PLAN_KEY_WORDS];
};

// One entry per CPU is enough: a CPU processes one packet at a time.
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct sample);
} samples SEC(".maps");

static __always_inline struct sample *sample_of_this_cpu(void)
{
    __u32 only = 0;
    return bpf_map_lookup_elem(&samples, &only);
}

static __always_inline int wants(enum value of)
{
    return plan.wanted.words[of / 64] >> of % 64 & 1;
}

// Whether any value of GROUP is needed. GROUP maps a word's number to the word's bits.
#define WANTS_ANY(GROUP)                                                                                                           \
    ({                                                                                                                             \
        __u64 any = 0;                                                                                                             \
        _Pragma("unroll") for (int word = 0; word < SET_WORDS; word++) any |= plan.wanted.words[word] & GROUP(word);               \
        any != 0;                                                                                                                  \
    })

// The key, after the state.
static __always_inline __u64 *planned_key_of(struct base *row)
{
    return (__u64 *)(row + 1) + plan.state_words;
}

static __always_inline __u64 *state_of(struct base *row)
{
    return (__u64 *)(row + 1);
}

static __always_inline void copy_planned_row(struct base *to, struct base *from, __u32 words)
{
    __u64 *out = (__u64 *)to;
    const __u64 *in = (const __u64 *)from;
#pragma clang loop unroll(disable)
    for (__u32 i = 0; i < sizeof(struct base) / 8 + PLAN_WORDS + PLAN_KEY_WORDS; i++) {
        if (i >= words)
            break;
        out[i] = in[i];
        // Prevents Clang from turning the loop into a call of `memcpy`, which does not exist here.
        asm volatile("" ::: "memory");
    }
}
