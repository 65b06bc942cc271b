// SPDX-License-Identifier: Apache-2.0
//! How the meter is: what its ledger says, and how fast that grows.

use turboflow_run::Ledger;

/// The ledger of a moment.
#[derive(Clone, Debug, Default)]
pub struct Moment {
    /// The counters.
    pub ledger: Ledger,
    /// Up to which time packets have been metered.
    pub clock_ns: u64,
}

/// An interface, as the kernel has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterfaceHealth {
    /// Its name.
    pub name: String,
    /// `up`, `down` or `removed`.
    pub state: &'static str,
    /// Packets that passed the filter.
    pub seen: u64,
    /// Of these, those for which its ring had no room.
    pub dropped: u64,
    /// Packets that stand for several.
    pub merged: u64,
}

/// The meter at one moment, with the moment before.
#[derive(Clone, Debug, Default)]
pub struct Health {
    /// Now.
    pub now: Moment,
    /// At the last refresh.
    pub before: Moment,
    /// The interfaces; none for files.
    pub interfaces: Vec<InterfaceHealth>,
    /// Flows that may be open.
    pub flows_max: u64,
    /// Threads that meter.
    pub threads: u64,
}

impl Health {
    /// Replaces the moment.
    pub fn update(&mut self, now: Moment, interfaces: Vec<InterfaceHealth>) {
        // A clock that was set back begins anew.
        let is_later = now.clock_ns > self.now.clock_ns;
        let before = std::mem::replace(&mut self.now, now);
        self.before = match is_later && before.clock_ns > 0 {
            true => before,
            false => self.now.clone(),
        };
        self.interfaces = interfaces;
    }

    /// How fast a counter grew since the last refresh.
    #[must_use]
    pub fn a_second(&self, counter: impl Fn(&Ledger) -> u64) -> u64 {
        let grown = self.grown(counter);
        let passed_ns = self.now.clock_ns.saturating_sub(self.before.clock_ns);
        if passed_ns == 0 {
            return 0;
        }
        let rate = u128::from(grown) * 1_000_000_000 / u128::from(passed_ns);
        u64::try_from(rate).unwrap_or(u64::MAX)
    }

    /// Microflow records for each packet metered since the last refresh; of the whole run, where
    /// there was no packet.
    #[must_use]
    pub fn microflows_a_packet(&self) -> Option<f64> {
        let metered = |ledger: &Ledger| ledger.packets_recorded + ledger.packets_resident;
        let (packets, microflows) = match self.grown(metered) {
            0 => (metered(&self.now.ledger), evicted(&self.now.ledger)),
            packets => (packets, self.grown(evicted)),
        };
        (packets > 0).then(|| microflows as f64 / packets as f64)
    }

    fn grown(&self, counter: impl Fn(&Ledger) -> u64) -> u64 {
        counter(&self.now.ledger).saturating_sub(counter(&self.before.ledger))
    }
}

/// Microflow records that have left the engine, and packets that passed it by.
pub(crate) const fn evicted(ledger: &Ledger) -> u64 {
    let evicted = &ledger.microflows_evicted;
    evicted.total()
}

/// Frames that are in no flow.
pub(crate) const fn not_metered(ledger: &Ledger) -> u64 {
    ledger.packets_non_ip
        + ledger.packets_malformed
        + ledger.packets_truncated
        + ledger.packets_unknown_link_type
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(packets: u64, clock_ms: u64) -> Moment {
        let mut ledger = Ledger {
            packets_received: packets,
            packets_resident: packets,
            ..Ledger::default()
        };
        ledger.microflows_evicted.age = packets / 10;
        ledger.microflows_evicted.collision = packets / 10;
        Moment {
            ledger,
            clock_ns: clock_ms * 1_000_000,
        }
    }

    #[test]
    fn rates_are_growth_over_the_packets_clock() {
        let mut health = Health::default();
        let received = |ledger: &Ledger| ledger.packets_received;
        assert_eq!(
            (health.a_second(received), health.microflows_a_packet()),
            (0, None)
        );
        // Nothing is known of the time before the first look.
        health.update(moment(1_000, 10_000), Vec::new());
        assert_eq!(health.a_second(received), 0);
        health.update(moment(2_000, 10_500), Vec::new());
        assert_eq!(health.a_second(received), 2_000);
        assert_eq!(health.microflows_a_packet(), Some(0.2));
        // A clock that stands still or was set back has no rate.
        health.update(moment(3_000, 10_500), Vec::new());
        assert_eq!(health.a_second(received), 0);
        health.update(moment(4_000, 2_000), Vec::new());
        assert_eq!(health.a_second(received), 0);
        health.update(moment(4_000, 3_000), Vec::new());
        assert_eq!(health.microflows_a_packet(), Some(0.2));
    }
}
