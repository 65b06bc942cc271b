// SPDX-License-Identifier: Apache-2.0
//! The state of the meter: its ledger, and the growth of its counters.

use turboflow_run::Ledger;

/// The ledger at one moment.
#[derive(Clone, Debug, Default)]
pub struct Moment {
    /// The counters.
    pub ledger: Ledger,
    /// Time up to which packets have been metered.
    pub clock_ns: u64,
}

/// State of an interface, as reported by the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterfaceHealth {
    /// Its name.
    pub name: String,
    /// `up`, `down` or `removed`.
    pub state: &'static str,
    /// Packets that passed the filter.
    pub seen: u64,
    /// How many of these were dropped because the ring was full.
    pub dropped: u64,
    /// Frames that the kernel merged from several packets.
    pub merged: u64,
}

/// State of the meter at two moments.
#[derive(Clone, Debug, Default)]
pub struct Health {
    /// At the latest refresh.
    pub now: Moment,
    /// At the previous refresh.
    pub before: Moment,
    /// The interfaces; none for files.
    pub interfaces: Vec<InterfaceHealth>,
    /// Limit on open flows.
    pub flows_max: u64,
    /// Number of metering threads.
    pub threads: u64,
}

impl Health {
    /// Sets the latest moment.
    pub fn update(&mut self, now: Moment, interfaces: Vec<InterfaceHealth>) {
        // After the clock was set back, no earlier moment can be compared.
        let is_later = now.clock_ns > self.now.clock_ns;
        let before = std::mem::replace(&mut self.now, now);
        self.before = match is_later && before.clock_ns > 0 {
            true => before,
            false => self.now.clone(),
        };
        self.interfaces = interfaces;
    }

    /// Growth of a counter per second since the previous refresh.
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

    /// Microflow records per packet metered since the previous refresh, or over the whole run if
    /// there was no packet since.
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

/// Microflow records evicted by the engine, and packets that bypassed its table.
pub(crate) const fn evicted(ledger: &Ledger) -> u64 {
    let evicted = &ledger.microflows_evicted;
    evicted.total()
}

/// Frames that belong to no flow.
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
    fn rates_are_growth_per_time_of_the_packets_clock() {
        let mut health = Health::default();
        let received = |ledger: &Ledger| ledger.packets_received;
        assert_eq!(
            (health.a_second(received), health.microflows_a_packet()),
            (0, None)
        );
        // There is no rate at the first refresh.
        health.update(moment(1_000, 10_000), Vec::new());
        assert_eq!(health.a_second(received), 0);
        health.update(moment(2_000, 10_500), Vec::new());
        assert_eq!(health.a_second(received), 2_000);
        assert_eq!(health.microflows_a_packet(), Some(0.2));
        // There is no rate while the clock stands still or was set back.
        health.update(moment(3_000, 10_500), Vec::new());
        assert_eq!(health.a_second(received), 0);
        health.update(moment(4_000, 2_000), Vec::new());
        assert_eq!(health.a_second(received), 0);
        health.update(moment(4_000, 3_000), Vec::new());
        assert_eq!(health.microflows_a_packet(), Some(0.2));
    }
}
