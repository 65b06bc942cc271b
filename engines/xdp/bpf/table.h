// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The paper's microflow table (TurboFlow, section 4) in two designs. Either each CPU has its own
// table, as private as a pipeline's memory, since XDP runs once at a time on a CPU. Or all CPUs
// share a table with a lock per row, as in the paper's NPU design (Figure 9).
//
// Every table has two halves. Packets go to one of them, `control.half`. User space turns to the
// other half and waits until no running program can still use the first. Then it empties the first
// half without a lock, because nothing else writes there. A program reads the half before and after
// the clock: no packet of the new half is older than one of the old half, on any CPU.
#pragma once

#include "dropped.h"
#include "row.h"

volatile struct control control SEC(".data.control");

// User space sets sizes and entries before the maps are created.
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct row_v4);
} table_v4 SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct row_v6);
} table_v6 SEC(".maps");

// One lock per slot, for both halves and both families. Memory mapped by user space cannot contain
// the kernel's locks.
struct lock {
    struct bpf_spin_lock held;
    // The number of the next record.
    __u32 ticket;
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct lock);
} locks SEC(".maps");

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

// Ticks are read without a call. The kernel's coarse clock advances soon after each tick.
static __always_inline __u64 coarse_ns(void)
{
    return config.tick_ns ? bpf_jiffies64() * config.tick_ns : bpf_ktime_get_coarse_ns();
}

static __always_inline __u64 read_clock(void)
{
    return (config.coarse_clock ? coarse_ns() : bpf_ktime_get_ns()) + control.clock_offset_ns;
}

// The half, and a time that belongs to it: if the half changed meanwhile, the clock is read again.
// On x86 the kernel reads the precise clock only after all earlier loads are complete. So programs
// read the clock first: later cache misses, on the frame's bytes and on its row, then overlap with
// other work.
static __always_inline struct moment this_moment(void)
{
    __u64 half = control.half, now_ns = read_clock();
    if (control.half != half) {
        half ^= 1;
        now_ns = read_clock();
    }
    return (struct moment){.now_ns = now_ns, .half = half & 1};
}

// The cell of the clock: docs/decisions/0001-cells.md.
static __always_inline void enter_cell(struct counters *counters, __u64 now)
{
    if (now >= counters->cell_end_ns || now < counters->cell_start_ns) {
        counters->cell_start_ns = now - now % config.cell_ns;
        counters->cell_end_ns = counters->cell_start_ns + config.cell_ns;
    }
}

static __always_inline void count_leaving(struct counters *counters, enum leaves why)
{
    if (why == COLLISION)
        counters->evicted_collision += 1;
    else if (why == AGE)
        counters->evicted_age += 1;
    else
        counters->evicted_cut += 1;
}

// Whether there is room, as a number whose origin the compiler does not see. Verifiers of older
// kernels (6.1) forget that a pointer was compared with 0, and require it to be released twice or
// never. They do not forget numbers.
static __always_inline int is_there(const void *room)
{
    int is_there = 0;
    if (room)
        is_there = 1;
    asm volatile("" : "+r"(is_there));
    return is_there;
}

// Reserves room for a record in the ring; the size depends on the family.
static __always_inline struct base *reserve(int key_words)
{
    const int ticket = config.is_shared ? sizeof(struct ticket) : 0;
#ifdef BRIDGE
    return bpf_ringbuf_reserve(&evicted, 8 * words_of_record(key_words) + ticket, 0);
#else
    if (key_words == KEY_WORDS)
        return bpf_ringbuf_reserve(&evicted, sizeof(struct row_v6) + ticket, 0);
    return bpf_ringbuf_reserve(&evicted, sizeof(struct row_v4) + ticket, 0);
#endif
}

// slot = hash(key)
// if slot is of this flow and cell, and nothing cuts it: slot.merge(packet)
// else: evict slot; slot = packet
static __always_inline void meter_private(struct counters *counters, struct base *row, struct arrival *arrival)
{
    if (row->packets) {
        enum leaves why = why_it_leaves(row, arrival, counters->cell_start_ns);
        if (why == STAYS) {
            merge(row, arrival);
            return;
        }
        count_leaving(counters, why);
        struct base *out = reserve(arrival->key_words);
        if (out) {
            copy_row(out, row, arrival->key_words);
            bpf_ringbuf_submit(out, BPF_RB_NO_WAKEUP);
        } else {
            struct dropped *dropped = dropped_of_this_cpu();
            if (dropped) {
                keep_dropped(dropped, row, key_of(row), arrival->key_words);
                count_drop(counters, dropped);
            }
        }
        displace(row, arrival);
    } else {
        settle(row, arrival);
    }
}

// Merges under the row's lock. Helpers are not allowed then, so room in the ring is reserved
// before, if a check without the lock finds it necessary. Records may be in the ring in another
// order than they left a slot, so each has a ticket. It is drawn only with room in the ring, so
// that no number is missing. Returns whether it is done; if not, the caller tries again with room.
static __always_inline int meter_shared_once(struct counters *counters, struct base *row, struct lock *lock, __u32 slot,
                                             struct arrival *arrival, int wants_room)
{
    const int words = arrival->key_words;
    struct base *out = wants_room ? reserve(words) : 0;
    const int has_room = is_there(out);
    struct dropped *dropped = wants_room && !has_room ? dropped_of_this_cpu() : 0;
    enum leaves why = STAYS;
    int leaves = 0, is_done = 1;
    bpf_spin_lock(&lock->held);
    if (row->packets)
        why = why_it_leaves(row, arrival, counters->cell_start_ns);
    if (!row->packets) {
        settle(row, arrival);
    } else if (why == STAYS) {
        merge(row, arrival);
    } else if (wants_room) {
        leaves = 1;
        if (has_room) {
#ifdef BRIDGE
            struct ticket *ticket = (void *)((__u64 *)out + words_of_record(words));
#else
            struct ticket *ticket = words == KEY_WORDS ? (void *)((struct row_v6 *)out + 1) : (void *)((struct row_v4 *)out + 1);
#endif
            copy_row(out, row, words);
            ticket->slot = slot;
            ticket->number = lock->ticket++;
        } else if (dropped) {
            keep_dropped(dropped, row, key_of(row), words);
        }
        displace(row, arrival);
    } else {
        is_done = 0;
    }
    bpf_spin_unlock(&lock->held);
    if (leaves)
        count_leaving(counters, why);
    if (has_room && leaves)
        bpf_ringbuf_submit(out, BPF_RB_NO_WAKEUP);
    else if (has_room)
        bpf_ringbuf_discard(out, BPF_RB_NO_WAKEUP);
    else if (dropped && leaves)
        count_drop(counters, dropped);
    return is_done;
}

static __always_inline void meter_shared(struct counters *counters, struct base *row, __u32 slot, struct arrival *arrival)
{
    struct lock *lock = bpf_map_lookup_elem(&locks, &slot);
    if (!lock)
        return;
    int wants_room = row->packets && why_it_leaves(row, arrival, counters->cell_start_ns) != STAYS;
    if (!meter_shared_once(counters, row, lock, slot, arrival, wants_room))
        meter_shared_once(counters, row, lock, slot, arrival, 1);
}

// The index of a slot in this CPU's table, or in the shared one. The halves of a table are
// adjacent, so a CPU without a table has no row at its index.
static __always_inline __u32 index_of(__u32 slot, __u32 half)
{
    __u32 table = config.is_shared ? 0 : bpf_get_smp_processor_id();
    return (2 * table + half) * config.slots + slot;
}

static __always_inline struct arrival arrival_of(const struct packet *packet, int key_words, struct moment moment)
{
    return (struct arrival){
        .packet = packet,
        .key_words = key_words,
        .marks = marks_of(packet->tcp_flags),
        .half = moment.half,
        .now_ns = moment.now_ns,
#ifdef BRIDGE
        .judgement = moment.judgement,
#endif
    };
}

static __always_inline void meter(struct counters *counters, const struct packet *packet, struct moment moment, void *table, int key_words)
{
    struct arrival arrival = arrival_of(packet, key_words, moment);
    __u32 slot = slot_of(packet, key_words);
    enter_cell(counters, arrival.now_ns);
    __u32 index = index_of(slot, arrival.half);
    struct base *row = bpf_map_lookup_elem(table, &index);
    counters->packets_metered += 1;
    counters->bytes_metered += packet->ip_length_bytes;
    if (!row)
        drop_packet(counters, packet, packet->key, key_words);
    else if (config.is_shared)
        meter_shared(counters, row, slot, &arrival);
    else
        meter_private(counters, row, &arrival);
}

static __always_inline void meter_packet(struct counters *counters, const struct packet *packet, struct moment moment)
{
    // The last word of an IPv6 key is never 0.
    if (packet->key[KEY_WORDS - 1])
        meter(counters, packet, moment, &table_v6, KEY_WORDS);
    else
        meter(counters, packet, moment, &table_v4, KEY_WORDS_V4);
}
