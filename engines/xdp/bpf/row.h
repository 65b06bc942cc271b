// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Merging a packet into a row: whether it may join, and the result. No maps, no clock.
#pragma once

#include "layout.h"
#include "load.h"
#ifdef BRIDGE
#include "judged.h"
#endif

#define TCP_FIN 0x01
#define TCP_SYN 0x02
#define TCP_RST 0x04
#define TCP_ACK 0x10

// `Marks` in crates/merge/src/microflow.rs.
#define MARK_STARTS_WITH_SYN (1 << 0)
#define MARK_SYN (1 << 2)
#define MARK_FIN (1 << 5)
#define MARK_REVERSE_FIN (1 << 6)
#define MARK_RST (1 << 7)
#define MARK_ENDS (MARK_FIN | MARK_REVERSE_FIN | MARK_RST)

// Time of arrival, and the half of the tables that belongs to it.
struct moment {
    __u64 now_ns;
    __u8 half;
#ifdef BRIDGE
    // The decision on the packet.
    const struct judgement *judgement;
#endif
};

// A packet on its way into the table, and values derived from it once.
struct arrival {
    const struct packet *packet;
    // Words of its key: a constant wherever this is inlined.
    int key_words;
    __u8 marks;
    __u8 half;
    __u64 now_ns;
#ifdef BRIDGE
    const struct judgement *judgement;
#endif
};

// Why a row is evicted, or that it stays.
enum leaves {
    STAYS,
    COLLISION,
    AGE,
    CUT,
};

static __always_inline __u64 *key_of(struct base *row)
{
#ifdef BRIDGE
    return planned_key_of(row);
#else
    return (__u64 *)(row + 1);
#endif
}

static __always_inline __u8 marks_of(__u16 tcp_flags)
{
    __u8 marks = 0;
    if ((tcp_flags & (TCP_SYN | TCP_ACK)) == TCP_SYN)
        marks |= MARK_STARTS_WITH_SYN | MARK_SYN;
    if (tcp_flags & TCP_FIN)
        marks |= MARK_FIN;
    if (tcp_flags & TCP_RST)
        marks |= MARK_RST;
    return marks;
}

static __always_inline __u64 hash_of_word(const struct packet *packet, int i)
{
    __u64 word = packet->key[i];
    return config.hash_keys[1 + 2 * i] * (word & 0xffffffff) + config.hash_keys[2 + 2 * i] * (word >> 32);
}

// slot = (k0 + sum of k[i] * key[i] over 32-bit halves) >> 32, scaled. It is strongly universal
// over random 64-bit k (MULTILINEAR), so that an attacker without the keys cannot choose colliding
// flows.
static __always_inline __u32 slot_of(const struct packet *packet, int key_words)
{
    __u64 sum = config.hash_keys[0] + hash_of_word(packet, 0) + hash_of_word(packet, 1);
    if (key_words == KEY_WORDS)
        sum += hash_of_word(packet, 2) + hash_of_word(packet, 3) + hash_of_word(packet, 4);
    return (sum >> 32) * config.slots >> 32;
}

static __always_inline int is_same_tuple(const __u64 *key, const struct arrival *arrival)
{
    const __u64 *other = arrival->packet->key;
    __u64 differs = (key[0] ^ other[0]) | (key[1] ^ other[1]);
    if (arrival->key_words == KEY_WORDS)
        differs |= (key[2] ^ other[2]) | (key[3] ^ other[3]) | (key[4] ^ other[4]);
    return !differs;
}

static __always_inline int is_same_flow(struct base *row, const struct arrival *arrival)
{
    return is_same_tuple(key_of(row), arrival);
}

// A SYN without ACK joins no record, because it may begin a connection. If the linger is 0, nothing
// joins a record that contains the end of a connection.
static __always_inline int is_cut(const struct base *row, __u8 marks)
{
    return (marks & MARK_STARTS_WITH_SYN) || (row->marks & config.evict_after);
}

// The rules for engines in docs/decisions/0001-cells.md, for a non-empty row.
static __always_inline enum leaves why_it_leaves(struct base *row, const struct arrival *arrival, __u64 cell_start_ns)
{
    if (!is_same_flow(row, arrival))
        return row->first_ns >= cell_start_ns ? COLLISION : AGE;
    if (row->first_ns < cell_start_ns)
        return AGE;
    return is_cut(row, arrival->marks) ? CUT : STAYS;
}

static __always_inline void merge(struct base *row, const struct arrival *arrival)
{
    const struct packet *packet = arrival->packet;
    __u32 length = packet->ip_length_bytes;
    __u8 not_ttl = ~packet->ttl;
    row->packets += 1;
    row->bytes += length;
    if (arrival->now_ns > row->last_ns)
        row->last_ns = arrival->now_ns;
    if (~length > row->not_min_length_bytes)
        row->not_min_length_bytes = ~length;
    if (length > row->max_length_bytes)
        row->max_length_bytes = length;
    row->tcp_flags |= packet->tcp_flags;
    row->marks |= arrival->marks & ~MARK_STARTS_WITH_SYN;
    if (not_ttl > row->not_min_ttl)
        row->not_min_ttl = not_ttl;
    if (packet->ttl > row->max_ttl)
        row->max_ttl = packet->ttl;
#ifdef BRIDGE
    fold_judgement(state_of(row), arrival->judgement);
#endif
}

// Initialises all of a row except its key.
static __always_inline void begin(struct base *row, const struct arrival *arrival)
{
    const struct packet *packet = arrival->packet;
    *row = (struct base){
        .packets = 1,
        .bytes = packet->ip_length_bytes,
        .first_ns = arrival->now_ns,
        .last_ns = arrival->now_ns,
        .not_min_length_bytes = ~packet->ip_length_bytes,
        .max_length_bytes = packet->ip_length_bytes,
        .tcp_flags = packet->tcp_flags,
        .marks = arrival->marks,
        .tos = packet->tos,
        .not_min_ttl = ~packet->ttl,
        .max_ttl = packet->ttl,
        .half = arrival->half,
    };
}

static __always_inline void settle_tuple(__u64 *key, const struct arrival *arrival)
{
    const struct packet *packet = arrival->packet;
    key[0] = packet->key[0];
    key[1] = packet->key[1];
    if (arrival->key_words == KEY_WORDS) {
        key[2] = packet->key[2];
        key[3] = packet->key[3];
        key[4] = packet->key[4];
    }
}

static __always_inline void settle(struct base *row, const struct arrival *arrival)
{
    begin(row, arrival);
#ifdef BRIDGE
    clear_state(state_of(row));
    fold_judgement(state_of(row), arrival->judgement);
#endif
    settle_tuple(key_of(row), arrival);
}

// A CPU that waited for the row's lock read the clock before the lock's holder did, and the
// kernel's fast clock may step back by nanoseconds. The times within a slot must not decrease.
static __always_inline void wait_for_slot(const struct base *row, struct arrival *arrival)
{
    if (arrival->now_ns < row->last_ns)
        arrival->now_ns = row->last_ns;
}

static __always_inline void displace(struct base *row, struct arrival *arrival)
{
    wait_for_slot(row, arrival);
    settle(row, arrival);
}

static __always_inline void copy_row(struct base *to, struct base *from, int key_words)
{
#ifdef BRIDGE
    copy_planned_row(to, from, words_of_record(key_words));
#else
    if (key_words == KEY_WORDS)
        *(struct row_v6 *)to = *(struct row_v6 *)from;
    else
        *(struct row_v4 *)to = *(struct row_v4 *)from;
#endif
}
