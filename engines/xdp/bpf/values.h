// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The values of a packet: inputs of record definitions by number, followed by the other fields of
// keys.
#pragma once

// Defines INPUTS, the names of all inputs in order, and KEY_INPUTS, the number of them that may be
// in keys. build.rs generates it from the table in crates/record/src/input/table.rs.
#include "input_numbers.h"

enum value {
    INPUTS,
    INPUT_COUNT,
    // Every packet has these. An address is two values, of which an IPv4 address only uses the
    // first. See `of_key` in src/plan.rs.
    FIRST_OF_KEY = INPUT_COUNT,
    SOURCE_PORT = FIRST_OF_KEY,
    DESTINATION_PORT,
    PROTOCOL,
    FAMILY,
    SOURCE_ADDRESS,
    DESTINATION_ADDRESS = SOURCE_ADDRESS + 2,
    VALUE_COUNT = DESTINATION_ADDRESS + 2,
};

// Words of a value set: a power of two, so that masks keep numbers in range. src/plan.rs has the
// same formula.
#define SET_WORDS (VALUE_COUNT <= 64 ? 1 : VALUE_COUNT <= 128 ? 2 : 4)
#define VALUES (64 * SET_WORDS)
_Static_assert(VALUE_COUNT <= VALUES, "a number of a value is a byte");

// A bit per value, by its number.
struct value_set {
    __u64 words[SET_WORDS];
};

static __always_inline __u64 has(const struct value_set *set, __u8 of)
{
    return set->words[of / 64 % SET_WORDS] >> of % 64 & 1;
}

static __always_inline void add(struct value_set *set, enum value of, int is_there)
{
    set->words[of / 64] |= (__u64)(is_there != 0) << of % 64;
}

// The bit of a value in a word of a set; 0 in other words.
#define BIT_OF(VALUE, WORD) ((VALUE) / 64 == (WORD) ? 1ULL << (VALUE) % 64 : 0)
