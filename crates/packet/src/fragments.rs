// SPDX-License-Identifier: Apache-2.0
//! Assigns later fragments to the flow of their datagram's first fragment (`--reassemble-flows`).
//!
//! No datagram is reassembled. For each datagram, the cache stores ports and protocol of the first
//! fragment, and holds later fragments that arrived before it, without their payload. Datagrams
//! leave the cache in order of arrival, when they time out or when their place is needed. All
//! memory is reserved at the start.
//!
//! If a first fragment reuses an identification within the timeout (RFC 4963 shows how soon this
//! happens), it replaces the previous datagram. Later fragments belong to the latest first
//! fragment.

use std::collections::HashMap;

use turboflow_record::{FiveTuple, InputValues, Packet};

use crate::Rejected;
use crate::ip::{Fragment, IpHeader, extension};
use crate::transport::protocol;

/// Size and timeout of the cache of fragmented datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReassemblyConfig {
    /// The most datagrams in the cache, and the most fragments that it holds. Default 65,536. Each
    /// of them reserves about 1.3 KiB of memory.
    pub max_datagrams: usize,
    /// How long a datagram stays in the cache after the first arrival of any of its fragments, in
    /// nanoseconds. Default 30 s, as in Linux (`net.ipv4.ipfrag_time`).
    pub timeout_ns: u64,
}

impl Default for ReassemblyConfig {
    fn default() -> Self {
        Self {
            max_datagrams: 65_536,
            timeout_ns: 30_000_000_000,
        }
    }
}

/// What happened to fragments, in packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FragmentCounters {
    /// Later fragments that were given the ports of their first fragment.
    pub attributed: u64,
    /// Later fragments that arrived before their first fragment and were held.
    pub held: u64,
    /// Held fragments whose first fragment did not arrive in time. They get ports 0/0.
    pub expired: u64,
    /// Held fragments evicted to make room for a newer datagram. They get ports 0/0.
    pub evicted: u64,
    /// Later fragments passed on with ports 0/0 because the cache could hold no more.
    pub overflowed: u64,
}

/// Identifies a datagram: both addresses, identification and, in IPv4, protocol (RFC 791, section
/// 3.2; RFC 8200, section 4.5). Also has the place where the datagram was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct DatagramKey {
    pub(crate) addresses: FiveTuple,
    pub(crate) identification: u32,
    pub(crate) outer_addresses: [[u8; 16]; 2],
    /// VLAN ids, VNI, TEID, GRE key.
    pub(crate) context: [u32; 4],
    pub(crate) interface: u32,
}

const NONE: u32 = u32::MAX;

/// A datagram of which at least one fragment has arrived.
struct Datagram {
    key: DatagramKey,
    opened_ns: u64,
    /// Ports and protocol of the first fragment, once it has arrived.
    first: Option<FiveTuple>,
    /// The oldest held fragment. The others follow through [`Held::next`].
    head: u32,
    tail: u32,
    /// Neighbours in order of arrival.
    older: u32,
    newer: u32,
}

struct Held {
    packet: Packet,
    values: InputValues,
    next: u32,
}

/// The cache of fragmented datagrams.
pub(crate) struct FragmentCache {
    config: ReassemblyConfig,
    datagrams: Vec<Datagram>,
    free_datagrams: Vec<u32>,
    places: HashMap<DatagramKey, u32>,
    oldest: u32,
    newest: u32,
    held: Vec<Held>,
    free_held: Vec<u32>,
    /// First and last of the held fragments that may be released, in this order.
    ready: (u32, u32),
    pub(crate) counters: FragmentCounters,
}

/// Why held fragments are released without ports.
#[derive(Clone, Copy)]
enum Removal {
    Evicted,
    Expired,
}

impl FragmentCache {
    /// Creates the cache and reserves all its memory.
    pub(crate) fn new(config: ReassemblyConfig) -> Self {
        let most = config.max_datagrams.clamp(1, NONE as usize - 1);
        Self {
            config: ReassemblyConfig {
                max_datagrams: most,
                ..config
            },
            datagrams: Vec::with_capacity(most),
            free_datagrams: Vec::with_capacity(most),
            // Twice the number of entries, so that the map can rehash in place.
            places: HashMap::with_capacity(most.saturating_mul(2)),
            oldest: NONE,
            newest: NONE,
            held: Vec::with_capacity(most),
            free_held: Vec::with_capacity(most),
            ready: (NONE, NONE),
            counters: FragmentCounters::default(),
        }
    }

    /// Notes a first fragment. Fragments held for it become ready for release.
    pub(crate) fn first(&mut self, key: &DatagramKey, tuple: &FiveTuple, now_ns: u64) {
        let mut place = self.place_of(key, now_ns);
        if self.datagrams[place as usize].first.is_some() {
            // A new datagram with the same identification, which gets its own timeout.
            self.remove(place, Removal::Expired);
            place = self.place_of(key, now_ns);
        }
        self.datagrams[place as usize].first = Some(*tuple);
        let (head, tail) = self.take_held(place);
        let mut next = head;
        while next != NONE {
            let held = &mut self.held[next as usize];
            held.packet.tuple = with_transport_of(&held.packet.tuple, tuple);
            self.counters.attributed += 1;
            next = held.next;
        }
        self.append_ready(head, tail);
    }

    /// Assigns a later fragment to its flow, or holds it.
    pub(crate) fn later(
        &mut self,
        key: &DatagramKey,
        packet: &mut Packet,
        values: Option<&InputValues>,
    ) -> Result<(), Rejected> {
        let place = self.place_of(key, packet.timestamp_ns);
        if let Some(first) = &self.datagrams[place as usize].first {
            packet.tuple = with_transport_of(&packet.tuple, first);
            self.counters.attributed += 1;
            return Ok(());
        }
        let values = values.cloned().unwrap_or_default();
        let held = Held {
            packet: *packet,
            values,
            next: NONE,
        };
        let Some(index) = self.keep(held) else {
            self.counters.overflowed += 1;
            return Ok(());
        };
        let datagram = &mut self.datagrams[place as usize];
        match datagram.tail {
            NONE => datagram.head = index,
            tail => self.held[tail as usize].next = index,
        }
        datagram.tail = index;
        self.counters.held += 1;
        Err(Rejected::Held)
    }

    /// Releases held fragments that are ready or timed out.
    pub(crate) fn release(&mut self, now_ns: u64, out: &mut Vec<(Packet, InputValues)>) {
        while self.oldest != NONE && self.is_over(self.oldest, now_ns) {
            self.remove(self.oldest, Removal::Expired);
        }
        self.drain_ready(out);
    }

    /// Releases held fragments that timed out, but not those that are ready.
    pub(crate) fn expire(&mut self, now_ns: u64, out: &mut Vec<(Packet, InputValues)>) {
        let ready = std::mem::replace(&mut self.ready, (NONE, NONE));
        self.release(now_ns, out);
        self.ready = ready;
    }

    /// Removes datagrams with a fragment later than `now_ns`, after the clock went backwards.
    /// Releases the fragments that they held.
    pub(crate) fn set_back(&mut self, now_ns: u64, out: &mut Vec<(Packet, InputValues)>) {
        let mut place = self.oldest;
        while place != NONE {
            let newer = self.datagrams[place as usize].newer;
            if self.latest_ns(place) > now_ns || self.is_over(place, now_ns) {
                self.remove(place, Removal::Expired);
            }
            place = newer;
        }
        self.drain_ready(out);
    }

    /// The latest known timestamp of a datagram's fragments.
    fn latest_ns(&self, place: u32) -> u64 {
        let datagram = &self.datagrams[place as usize];
        let (mut latest_ns, mut next) = (datagram.opened_ns, datagram.head);
        while next != NONE {
            let held = &self.held[next as usize];
            (latest_ns, next) = (latest_ns.max(held.packet.timestamp_ns), held.next);
        }
        latest_ns
    }

    /// Releases all held fragments and removes all datagrams.
    pub(crate) fn release_all(&mut self, out: &mut Vec<(Packet, InputValues)>) {
        while self.oldest != NONE {
            self.remove(self.oldest, Removal::Expired);
        }
        self.drain_ready(out);
    }

    fn is_over(&self, place: u32, now_ns: u64) -> bool {
        let opened_ns = self.datagrams[place as usize].opened_ns;
        // Only a clock that went backwards leaves a datagram in the future.
        now_ns.abs_diff(opened_ns) >= self.config.timeout_ns
    }

    /// The index of the datagram. Adds the datagram if it is unknown or has timed out.
    fn place_of(&mut self, key: &DatagramKey, now_ns: u64) -> u32 {
        if let Some(&place) = self.places.get(key) {
            if !self.is_over(place, now_ns) {
                return place;
            }
            self.remove(place, Removal::Expired);
        }
        if self.places.len() == self.config.max_datagrams {
            self.remove(self.oldest, Removal::Evicted);
        }
        let datagram = Datagram {
            key: *key,
            opened_ns: now_ns,
            first: None,
            head: NONE,
            tail: NONE,
            older: self.newest,
            newer: NONE,
        };
        let place = match self.free_datagrams.pop() {
            Some(place) => {
                self.datagrams[place as usize] = datagram;
                place
            }
            None => {
                self.datagrams.push(datagram);
                (self.datagrams.len() - 1) as u32
            }
        };
        match self.newest {
            NONE => self.oldest = place,
            newest => self.datagrams[newest as usize].newer = place,
        }
        self.newest = place;
        self.places.insert(*key, place);
        place
    }

    /// Removes a datagram. Its held fragments become ready for release, without ports.
    fn remove(&mut self, place: u32, why: Removal) {
        let (head, tail) = self.take_held(place);
        let mut next = head;
        while next != NONE {
            match why {
                Removal::Evicted => self.counters.evicted += 1,
                Removal::Expired => self.counters.expired += 1,
            }
            next = self.held[next as usize].next;
        }
        self.append_ready(head, tail);
        let Datagram {
            key, older, newer, ..
        } = self.datagrams[place as usize];
        match older {
            NONE => self.oldest = newer,
            older => self.datagrams[older as usize].newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            newer => self.datagrams[newer as usize].older = older,
        }
        self.places.remove(&key);
        self.free_datagrams.push(place);
    }

    fn take_held(&mut self, place: u32) -> (u32, u32) {
        let datagram = &mut self.datagrams[place as usize];
        let list = (datagram.head, datagram.tail);
        (datagram.head, datagram.tail) = (NONE, NONE);
        list
    }

    fn append_ready(&mut self, head: u32, tail: u32) {
        if head == NONE {
            return;
        }
        match self.ready.1 {
            NONE => self.ready.0 = head,
            last => self.held[last as usize].next = head,
        }
        self.ready.1 = tail;
    }

    fn keep(&mut self, held: Held) -> Option<u32> {
        if let Some(index) = self.free_held.pop() {
            self.held[index as usize] = held;
            return Some(index);
        }
        if self.held.len() == self.config.max_datagrams {
            return None;
        }
        self.held.push(held);
        Some((self.held.len() - 1) as u32)
    }

    fn drain_ready(&mut self, out: &mut Vec<(Packet, InputValues)>) {
        let mut next = self.ready.0;
        while next != NONE {
            let held = &self.held[next as usize];
            out.push((held.packet, held.values.clone()));
            self.free_held.push(next);
            next = held.next;
        }
        self.ready = (NONE, NONE);
    }
}

/// Whether the flow of a later fragment can depend on its first fragment: its protocol has ports,
/// or is unknown because of IPv6 extension headers.
pub(crate) fn needs_first(ip: &IpHeader, icmp_ports: bool) -> bool {
    let number = ip.protocol;
    protocol::has_ports(number)
        || icmp_ports && protocol::is_icmp(number)
        || ip.family == turboflow_record::Family::V6 && extension::is(number)
}

/// Whether later fragments may need this fragment's ports.
pub(crate) fn is_first(fragment: &Fragment) -> bool {
    fragment.offset_bytes == 0 && fragment.more
}

/// A tuple with the addresses of one tuple, and ports and protocol of another of the same family.
fn with_transport_of(addresses: &FiveTuple, transport: &FiveTuple) -> FiveTuple {
    FiveTuple::new(
        addresses.source(),
        addresses.destination(),
        transport.source_port(),
        transport.destination_port(),
        transport.protocol(),
    )
}
