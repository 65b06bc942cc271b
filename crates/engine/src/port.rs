// SPDX-License-Identifier: Apache-2.0
//! Ports, where packets enter an engine: network interfaces, ports of a switch or a card.

/// The state of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortState {
    /// The engine no longer receives its packets: it was detached, or another program replaced it.
    Displaced,
    /// The port is a sender of records whose connection or file ended before the sender reported
    /// its end. It may connect again.
    Disconnected,
    /// The port is down. Its packets are metered again once it is up.
    Down,
    /// The port no longer exists.
    Gone,
    /// The port is a sender of records that has sent nothing for long, and has not reported its
    /// end.
    Silent,
    /// The port is up.
    Up,
}

impl PortState {
    /// Whether the port is a sender that was not heard to its end. This is known even after the
    /// engine has ended.
    #[must_use]
    pub const fn is_unheard(self) -> bool {
        matches!(self, Self::Disconnected | Self::Silent)
    }

    /// Whether the port will never deliver packets again.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Displaced | Self::Gone)
    }
}

/// The counters of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Packets seen here that passed the filter.
    pub seen: u64,
    /// Packets lost here, if the source counts losses per port.
    pub dropped: u64,
    /// Packets delivered to the engine.
    pub delivered: u64,
    /// Bytes on the wire of the delivered packets.
    pub delivered_bytes: u64,
    /// Duplicate copies of loopback packets, which are skipped.
    pub copies: u64,
    /// Delivered packets that the host had merged from several, if the source knows.
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

/// A snapshot of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Its name.
    pub name: String,
    /// Its state, as far as the engine knows.
    pub state: PortState,
    /// The host's index of the network interface, if there is one. The host then knows whether the
    /// interface is up.
    pub interface_index: Option<u32>,
    /// Its counters.
    pub counters: PortCounters,
}
