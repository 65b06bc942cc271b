// SPDX-License-Identifier: Apache-2.0
//! Where packets enter an engine: network interfaces, ports of a switch or a card.

/// What a port is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortState {
    /// The engine no longer receives its packets: it was detached, or another program replaced it.
    Displaced,
    /// It is down. Its packets are metered again once it is up.
    Down,
    /// It no longer exists.
    Gone,
    /// It is up.
    Up,
}

impl PortState {
    /// Whether the port delivers nothing any more, whatever happens.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Displaced | Self::Gone)
    }
}

/// What a port counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Packets that the source saw here, past the filter.
    pub seen: u64,
    /// Packets that were lost here, as far as the source counts them by port.
    pub dropped: u64,
    /// Packets that were delivered to the engine.
    pub delivered: u64,
    /// Their bytes on the wire.
    pub delivered_bytes: u64,
    /// Packets seen a second time on loopback, and left out.
    pub copies: u64,
    /// Delivered packets that were merged from several, as far as the source knows.
    pub merged: u64,
}

impl std::ops::AddAssign for PortCounters {
    fn add_assign(&mut self, other: Self) {
        self.seen += other.seen;
        self.dropped += other.dropped;
        self.delivered += other.delivered;
        self.delivered_bytes += other.delivered_bytes;
        self.copies += other.copies;
        self.merged += other.merged;
    }
}

/// A port of an engine at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Its name.
    pub name: String,
    /// What it is doing, as far as the engine knows.
    pub state: PortState,
    /// The number of the host's network interface behind it: whether that is up is asked of the host.
    pub interface_index: Option<u32>,
    /// What it counted.
    pub counters: PortCounters,
}
