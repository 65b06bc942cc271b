// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The microflow table for records of a plan: table.h with rows of another shape. One program covers
// both designs.
#pragma once

#include "fold.h"
#include "inputs.h"
#include "parse.h"
#include "table.h"

_Static_assert(PLAN_KEY_WORDS == SHORT_KEY_WORDS, "a dropped record's key has room");

// The shape of a row (base, state, key). It is constant where the verifier checks it.
struct shape {
    __u32 key_words;
    __u32 words;
};

static __always_inline struct shape shape_of(__u32 key_words)
{
    return (struct shape){.key_words = key_words, .words = sizeof(struct base) / 8 + plan.state_words + key_words};
}

// The positions of a plain packet's headers, which `plain` parsed.
static __always_inline void place_plain(struct xdp_md *ctx, const struct packet *packet, struct network *network)
{
    const __u8 *frame = (const __u8 *)(long)ctx->data;
    const int is_v6 = packet->key[KEY_WORDS - 1] != 0;
    network->offset = 14;
    if ((const void *)(frame + 18) <= (const void *)(long)ctx->data_end && u16_at(frame + 12) == TYPE_VLAN) {
        network->offset = 18;
        network->tags = 1;
        network->tag_control = u16_at(frame + 14);
    }
    network->announced = is_v6 ? IPV6 : IPV4;
    network->ether_type = is_v6 ? TYPE_IPV6 : TYPE_IPV4;
    network->transport.offset = network->offset + (is_v6 ? IPV6_HEADER_BYTES : 20);
    network->transport.end = smaller(network->frame_bytes, network->offset + packet->ip_length_bytes);
    network->is_longer_than_frame = network->offset + packet->ip_length_bytes > network->frame_bytes;
    network->transport.protocol = (is_v6 ? packet->key[4] : packet->key[1]) >> 32;
}

// `parse_frame`, which also returns the positions of headers.
static __always_inline int parse_placed(struct xdp_md *ctx, struct packet *packet, struct network *network)
{
    int reason;
    if (plain(ctx, packet)) {
        place_plain(ctx, packet, network);
        return PARSED;
    }
    reason = walk_link(ctx, network);
    return reason == PARSED ? walk_ip(ctx, network, packet) : reason;
}

// Returns whether there is a step with that number.
static __always_inline int add_to_key(struct sample *sample, int number)
{
    const volatile struct key_step *step = &plan.key_steps[number];
    __u64 mask;
    __u8 of;
    if (!step->is_used)
        return 0;
    of = step->of % VALUES;
    mask = of >= FIRST_OF_KEY ? ~0ULL : -has(&sample->present, of);
    sample->key[step->word % PLAN_KEY_WORDS] |= (sample->values[of] & mask & step->keep) << (step->shift & 63);
    if (step->presence != NO_BIT)
        sample->key[0] |= (mask & 1) << (step->presence & 63);
    return 1;
}

// Makes the key of a packet; returns its number of words.
static __always_inline __u32 make_key(struct sample *sample, const struct packet *packet)
{
    // The 5-tuple is used in place.
    if (!plan.key_words)
        return packet->key[KEY_WORDS - 1] ? KEY_WORDS : KEY_WORDS_V4;
#pragma unroll
    for (__u32 i = 0; i < PLAN_KEY_WORDS; i++) {
        if (i >= plan.key_words)
            break;
        sample->key[i] = i ? 0 : plan.key_header;
    }
#pragma unroll
    for (int i = 0; i < PLAN_KEY_STEPS; i++) {
        if (!add_to_key(sample, i))
            break;
    }
    return plan.key_words;
}

// `slot_of` for any key.
static __always_inline __u32 planned_slot_of(const struct sample *sample, const struct packet *packet, __u32 key_words)
{
    __u64 sum = plan.hash_keys[0];
    if (!plan.key_words)
        return slot_of(packet, key_words);
#pragma unroll
    for (__u32 i = 0; i < PLAN_KEY_WORDS; i++) {
        __u64 word;
        if (i >= plan.key_words)
            break;
        word = sample->key[i];
        sum += plan.hash_keys[1 + 2 * i] * (word & 0xffffffff) + plan.hash_keys[2 + 2 * i] * (word >> 32);
    }
    return (sum >> 32) * config.slots >> 32;
}

static __always_inline int is_same_planned_flow(struct base *row, const struct arrival *arrival, const struct sample *sample)
{
    const __u64 *key = planned_key_of(row);
    __u64 differs = 0;
    if (!plan.key_words)
        return is_same_tuple(key, arrival);
#pragma unroll
    for (__u32 i = 0; i < PLAN_KEY_WORDS; i++) {
        if (i >= plan.key_words)
            break;
        differs |= key[i] ^ sample->key[i];
    }
    return !differs;
}

// `why_it_leaves` for records of a plan.
static __always_inline enum leaves why_planned_leaves(struct base *row, const struct arrival *arrival, const struct sample *sample,
                                                      __u64 cell_start_ns)
{
    if (!row->packets)
        return STAYS;
    if (!is_same_planned_flow(row, arrival, sample))
        return row->first_ns >= cell_start_ns ? COLLISION : AGE;
    if (row->first_ns < cell_start_ns)
        return AGE;
    return is_cut(row, arrival->marks) ? CUT : STAYS;
}

// Initialises base, an empty state, and the key.
static __always_inline void settle_planned(struct base *row, const struct arrival *arrival, const struct sample *sample)
{
    __u64 *key = planned_key_of(row);
    begin(row, arrival);
    clear_state(state_of(row));
    if (!plan.key_words)
        settle_tuple(key, arrival);
#pragma unroll
    for (__u32 i = 0; i < PLAN_KEY_WORDS; i++) {
        if (i >= plan.key_words)
            break;
        key[i] = sample->key[i];
    }
}

// The progress of evicting a row.
struct turnover {
    struct base *out;
    int has_room;
    // Set if the ring had no room.
    struct dropped *dropped;
    enum leaves why;
    int leaves;
};

// old = slot
// if old is of this flow and cell, and nothing cuts it: slot.merge(packet)
// else: evict old; slot = packet
// Runs under the row's lock, or if the row has no other user. Returns whether the packet was
// entered; if not, the caller tries again with room reserved in the ring. Only this function folds,
// because the code of the fold is long.
static __always_inline int enter_row(struct base *row, struct lock *lock, __u32 slot, struct arrival *arrival,
                                     struct sample *sample, struct shape shape, __u64 cell_start_ns, int wants_room,
                                     struct turnover *turnover)
{
    // Without a lock the caller's decision is still valid.
    if (config.is_shared)
        turnover->why = why_planned_leaves(row, arrival, sample, cell_start_ns);
    if (row->packets && turnover->why == STAYS) {
        // Gaps and last values depend on the order in which packets are folded.
        wait_for_slot(row, arrival);
        merge(row, arrival);
    } else {
        if (row->packets) {
            if (!wants_room)
                return 0;
            turnover->leaves = 1;
            if (turnover->has_room) {
                copy_planned_row(turnover->out, row, shape.words);
                if (config.is_shared) {
                    struct ticket *ticket = (struct ticket *)((__u64 *)turnover->out + shape.words);
                    ticket->slot = slot;
                    ticket->number = lock->ticket++;
                }
            } else if (turnover->dropped) {
                keep_dropped(turnover->dropped, row, planned_key_of(row), shape.key_words);
            }
            wait_for_slot(row, arrival);
        }
        settle_planned(row, arrival, sample);
    }
    fold_packet(state_of(row), sample, arrival->now_ns);
    return 1;
}

static __always_inline void turn_over(struct counters *counters, const struct turnover *turnover)
{
    if (turnover->leaves)
        count_leaving(counters, turnover->why);
    if (turnover->has_room && turnover->leaves)
        bpf_ringbuf_submit(turnover->out, BPF_RB_NO_WAKEUP);
    else if (turnover->has_room)
        bpf_ringbuf_discard(turnover->out, BPF_RB_NO_WAKEUP);
    else if (turnover->dropped && turnover->leaves)
        count_drop(counters, turnover->dropped);
}

// `meter_private` and `meter_shared` for records of a plan. Without a lock the first decision is
// final, so there is no second try.
static __always_inline void meter_planned_row(struct counters *counters, struct base *row, __u32 slot, struct arrival *arrival,
                                              struct sample *sample, struct shape shape)
{
    struct lock *lock = 0;
    enum leaves why;
    int wants_room, is_done = 0;
    if (config.is_shared) {
        lock = bpf_map_lookup_elem(&locks, &slot);
        if (!lock)
            return;
    }
    why = why_planned_leaves(row, arrival, sample, counters->cell_start_ns);
    wants_room = why != STAYS;
#pragma clang loop unroll(disable)
    for (int i = 0; i < 2 && !is_done; i++) {
        struct turnover turnover = {.why = why};
        if (wants_room)
            turnover.out = bpf_ringbuf_reserve(&evicted, 8 * (shape.words + (config.is_shared ? 1 : 0)), 0);
        turnover.has_room = is_there(turnover.out);
        if (wants_room && !turnover.has_room)
            turnover.dropped = dropped_of_this_cpu();
        if (config.is_shared)
            bpf_spin_lock(&lock->held);
        is_done = enter_row(row, lock, slot, arrival, sample, shape, counters->cell_start_ns, wants_room, &turnover);
        if (config.is_shared)
            bpf_spin_unlock(&lock->held);
        turn_over(counters, &turnover);
        wants_room = 1;
    }
}

static __always_inline void meter_planned(struct counters *counters, const struct packet *packet, struct sample *sample,
                                          struct moment moment)
{
    struct shape shape = shape_of(make_key(sample, packet));
    struct arrival arrival = arrival_of(packet, shape.key_words, moment);
    __u32 slot = planned_slot_of(sample, packet, shape.key_words);
    struct base *row;
    enter_cell(counters, arrival.now_ns);
    __u32 index = index_of(slot, arrival.half);
    // With any other key, IPv4 and IPv6 flows share one table: this one.
    if (shape.key_words == KEY_WORDS_V4 && !plan.key_words) {
        row = bpf_map_lookup_elem(&table_v4, &index);
        // Two calls, because the kernel inlines an array lookup only if its map is known.
        asm volatile("" ::: "memory");
    } else {
        row = bpf_map_lookup_elem(&table_v6, &index);
    }
    counters->packets_metered += 1;
    counters->bytes_metered += packet->ip_length_bytes;
    if (row)
        meter_planned_row(counters, row, slot, &arrival, sample, shape);
    else
        drop_packet(counters, packet, plan.key_words ? sample->key : packet->key, shape.key_words);
}
