// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Orders from user space for rows of the table of verdicts: many in one system call, from memory
// shared with user space. Nothing else adds, changes or removes rows.
#pragma once

#include "tap.h"

// Maximum number of orders of a call; src/offload/table.rs has the same.
#define ORDERS 4096

enum order_kind {
    // Adds a row. An existing row stays as it is.
    ORDER_ADD,
    // Changes the verdict of a row.
    ORDER_CHANGE,
    ORDER_REMOVE,
    // Removes a row that was silent for `job.idle_ns`, or whose connection has been over for
    // `job.linger_ns`.
    ORDER_AGE,
};

// Results, from asm-generic/errno-base.h.
#define NO_ROW (-2)
#define STAYS_YET (-11)
#define TABLE_FULL (-7)

struct order {
    __u64 flow[KEY_WORDS];
    // Action and rule. After ORDER_AGE: the row's `seen_ns`.
    __u64 word;
    __u32 kind;
    __s32 result;
};
_Static_assert(sizeof(struct order) == 56, "as in src/offload/table.rs");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, ORDERS);
    __type(key, __u32);
    __type(value, struct order);
} orders SEC(".maps");

struct job {
    __u64 count;
    __u64 idle_ns;
    __u64 linger_ns;
    // Result: the time that packets arriving now get.
    __u64 now_ns;
};
_Static_assert(sizeof(struct job) == 32, "as in src/offload/table.rs");

// Adds a row in two steps: first without a verdict, then its word in one store. The kernel copies a
// new value into memory that may have belonged to another flow, and a program that still reads that
// memory must see a whole word.
static __always_inline long add_row(void *table, const __u64 *flow, int key_words, __u64 word, const struct job *job)
{
    const struct verdict fresh = {.word = 0, .seen_ns = job->now_ns & ~SEEN_ENDS};
    struct verdict *row;
    long error = bpf_map_update_elem(table, flow, &fresh, BPF_NOEXIST);
    if (error)
        return error;
    row = row_of_flow(flow, key_words);
    if (!row)
        return NO_ROW;
    *(volatile __u64 *)&row->word = word;
    return 0;
}

// Sets how much of a flow's tap budget is spent: all of it if the table has no room for the
// verdict, so that the flow is not tapped again; none if the verdict is removed, so that it is
// decided anew.
static __always_inline void set_spent(const __u64 *flow, int key_words, __u32 check, __u64 now_ns, __u8 spent)
{
    const __u16 now = units_of(now_ns);
    struct tap_set *set = tap_set_of(flow, key_words);
    __u64 row;
    __u32 place;
    if (!set)
        return;
    row = tap_row_of(set, check, now, &place);
    *(volatile __u64 *)&set->rows[place % TAP_WAYS] = (row & ~(__u64)SPENT_MASK) | spent;
}

static __always_inline long age_row(void *table, struct order *order, const __u64 *flow, struct verdict *row, const struct job *job)
{
    const __u64 seen_ns = *(volatile __u64 *)&row->seen_ns;
    const __u64 limit_ns = is_over(seen_ns) ? job->linger_ns : job->idle_ns;
    order->word = seen_ns;
    // Signed: the packet may be later than the order.
    if ((__s64)(job->now_ns - (seen_ns & ~SEEN_ENDS)) < (__s64)limit_ns)
        return STAYS_YET;
    return bpf_map_delete_elem(table, flow);
}

static __always_inline long carry_out(void *table, struct order *order, int key_words, const struct job *job)
{
    // A copy on the stack, as a key for the map's helpers.
    struct flow flow = {};
    struct verdict *row;
    __u32 check;
    __u64 word;
    long error;
#pragma unroll
    for (int i = 0; i < KEY_WORDS; i++) {
        if (i < key_words)
            flow.words[i] = order->flow[i];
    }
    check = check_of(flow.words, key_words);
    word = (__u64)check << CHECK_SHIFT | (order->word & 0xffffffff);
    if (order->kind == ORDER_ADD) {
        error = add_row(table, flow.words, key_words, word, job);
        if (error == TABLE_FULL)
            set_spent(flow.words, key_words, check, job->now_ns, ALL_SPENT);
        return error;
    }
    if (order->kind == ORDER_REMOVE)
        set_spent(flow.words, key_words, check, job->now_ns, 0);
    row = row_of_flow(flow.words, key_words);
    if (!row)
        return NO_ROW;
    if (order->kind == ORDER_REMOVE)
        return bpf_map_delete_elem(table, flow.words);
    if (order->kind == ORDER_AGE)
        return age_row(table, order, flow.words, row, job);
    *(volatile __u64 *)&row->word = word;
    return 0;
}

static long carry_out_one(__u32 number, void *context)
{
    const struct job *job = context;
    struct order *order = bpf_map_lookup_elem(&orders, &number);
    if (!order)
        return 1;
    // The last word of an IPv6 key is never 0.
    if (order->flow[KEY_WORDS - 1])
        order->result = carry_out(&verdicts_v6, order, KEY_WORDS, job);
    else
        order->result = carry_out(&verdicts_v4, order, KEY_WORDS_V4, job);
    return 0;
}

SEC("syscall")
int carry_out_orders(struct job *given)
{
    struct job job = *given;
    job.now_ns = read_clock();
    given->now_ns = job.now_ns;
    bpf_loop(job.count, carry_out_one, &job, 0);
    return 0;
}
