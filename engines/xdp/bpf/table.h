// SPDX-License-Identifier: Apache-2.0
// The paper's microflow table (TurboFlow, section 4), one for each CPU: XDP runs once at a time on a CPU, so that its table
// is as private as a pipeline's memory.
#pragma once

#include "layout.h"
#include "load.h"

#define TCP_FIN 0x01
#define TCP_SYN 0x02
#define TCP_RST 0x04
#define TCP_ACK 0x10

// `Marks` in crates/record/src/microflow.rs.
#define MARK_STARTS_WITH_SYN (1 << 0)
#define MARK_FIN (1 << 1)
#define MARK_REVERSE_FIN (1 << 2)
#define MARK_RST (1 << 3)
#define MARK_SYN (1 << 4)
#define MARK_ENDS (MARK_FIN | MARK_REVERSE_FIN | MARK_RST)

// In a section of its own, so that its map holds nothing else.
const volatile struct config config SEC(".rodata.config");

// User space sets the number of entries of the two before they are made.
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct row);
} table SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 4096);
} evicted SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct counters);
} ledger SEC(".maps");

static __always_inline struct counters *counters_of_this_cpu(void)
{
    __u32 only = 0;
    return bpf_map_lookup_elem(&ledger, &only);
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

// slot = (k0 + sum of k[i] * key[i] over 32-bit halves) >> 32, scaled: strongly universal over random 64-bit k (MULTILINEAR),
// so that nobody without the keys can choose flows that meet. Words that are zero for IPv4 add nothing and are left out.
static __always_inline __u32 slot_of(const struct packet *packet)
{
    __u64 sum = config.hash_keys[0] + hash_of_word(packet, 0) + hash_of_word(packet, 1);
    if (packet->key[KEY_WORDS - 1])
        sum += hash_of_word(packet, 2) + hash_of_word(packet, 3) + hash_of_word(packet, 4);
    return (sum >> 32) * config.slots >> 32;
}

static __always_inline int is_same_flow(const struct row *row, const struct packet *packet)
{
    return !((row->key[0] ^ packet->key[0]) | (row->key[1] ^ packet->key[1]) | (row->key[2] ^ packet->key[2]) |
             (row->key[3] ^ packet->key[3]) | (row->key[4] ^ packet->key[4]));
}

// The time, and with it the cell of the clock: docs/decisions/0001-cells.md.
static __always_inline __u64 enter_now(struct counters *counters)
{
    __u64 now = (config.coarse_clock ? bpf_ktime_get_coarse_ns() : bpf_ktime_get_ns()) + config.clock_offset_ns;
    if (now >= counters->cell_end_ns && config.cell_ns) {
        counters->cell_start_ns = now - now % config.cell_ns;
        counters->cell_end_ns = counters->cell_start_ns + config.cell_ns;
    }
    return now;
}

// A SYN without ACK joins only a record that starts with one and holds no end; where the linger is 0, nothing joins a
// record that holds one.
static __always_inline int is_cut(const struct row *row, __u8 marks)
{
    __u8 resident = row->base.marks;
    int takes_another_syn = (resident & (MARK_STARTS_WITH_SYN | MARK_ENDS)) == MARK_STARTS_WITH_SYN;
    return ((marks & MARK_STARTS_WITH_SYN) && !takes_another_syn) || (resident & config.evict_after);
}

static __always_inline void count_drop(struct counters *counters, const struct row *row)
{
    counters->microflows_dropped += 1;
    counters->packets_dropped += row->base.packets;
    counters->bytes_dropped += row->base.bytes;
}

// Hands the resident to user space. A full ring loses it, counted with all that is in it.
static __always_inline void evict(struct counters *counters, const struct row *row)
{
    if (row->key[4]) {
        struct row *v6 = bpf_ringbuf_reserve(&evicted, sizeof(*v6), 0);
        if (!v6) {
            count_drop(counters, row);
            return;
        }
        *v6 = *row;
        bpf_ringbuf_submit(v6, BPF_RB_NO_WAKEUP);
    } else {
        struct microflow_v4 *v4 = bpf_ringbuf_reserve(&evicted, sizeof(*v4), 0);
        if (!v4) {
            count_drop(counters, row);
            return;
        }
        v4->key[0] = row->key[0];
        v4->key[1] = row->key[1];
        v4->base = row->base;
        bpf_ringbuf_submit(v4, BPF_RB_NO_WAKEUP);
    }
}

static __always_inline void merge(struct base *base, const struct packet *packet, __u64 now, __u8 marks)
{
    __u32 length = packet->ip_length_bytes;
    base->packets += 1;
    base->bytes += length;
    base->last_ns = now;
    if (length < base->min_length_bytes)
        base->min_length_bytes = length;
    if (length > base->max_length_bytes)
        base->max_length_bytes = length;
    base->tcp_flags |= packet->tcp_flags;
    base->marks |= marks & ~MARK_STARTS_WITH_SYN;
    if (packet->ttl < base->min_ttl)
        base->min_ttl = packet->ttl;
    if (packet->ttl > base->max_ttl)
        base->max_ttl = packet->ttl;
}

static __always_inline void settle(struct row *row, const struct packet *packet, __u64 now, __u8 marks)
{
    __builtin_memcpy(row->key, packet->key, sizeof(row->key));
    row->base = (struct base){
        .packets = 1,
        .bytes = packet->ip_length_bytes,
        .first_ns = now,
        .last_ns = now,
        .min_length_bytes = packet->ip_length_bytes,
        .max_length_bytes = packet->ip_length_bytes,
        .tcp_flags = packet->tcp_flags,
        .marks = marks,
        .tos = packet->tos,
        .min_ttl = packet->ttl,
        .max_ttl = packet->ttl,
    };
}

// slot = hash(key)
// if slot is of this flow and cell, and nothing cuts it: slot.merge(packet)
// else: evict slot; slot = packet
static __always_inline void meter(struct counters *counters, const struct packet *packet)
{
    __u32 slot = slot_of(packet);
    struct row *row = bpf_map_lookup_elem(&table, &slot);
    __u8 marks = marks_of(packet->tcp_flags);
    __u64 now = enter_now(counters);
    if (!row)
        return;
    counters->packets_metered += 1;
    counters->bytes_metered += packet->ip_length_bytes;
    if (row->base.packets) {
        int in_cell = row->base.first_ns >= counters->cell_start_ns && row->base.first_ns <= now;
        int same = is_same_flow(row, packet);
        if (same && in_cell && !is_cut(row, marks)) {
            merge(&row->base, packet, now, marks);
            return;
        }
        if (!in_cell)
            counters->evicted_age += 1;
        else if (same)
            counters->evicted_cut += 1;
        else
            counters->evicted_collision += 1;
        evict(counters, row);
    }
    settle(row, packet, now, marks);
}
