// SPDX-License-Identifier: Apache-2.0
//! Properties of a flow table in a network card or in the host's kernel.

use serde::Serialize;

use super::cuckoo_cost::{accesses, cuckoo_points, cuckoo_shapes};
use crate::Impossible;
use crate::impossible::{above_zero, zero_or_more};

/// Where a flow table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// In a network card. Packets of offloaded flows do not cross the bus.
    Card,
    /// In the host, for example in its kernel. Every packet crosses the bus.
    Host,
}

/// The memory of a cuckoo table, which limits the learning rate as the table fills.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CuckooMemory {
    /// Accesses per second; each reads one bucket.
    pub accesses_per_second: f64,
    /// Number of buckets in which a flow may be.
    pub ways: u32,
    /// Slots in a bucket.
    pub slots: u32,
}

/// A flow table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Card {
    /// Its name, for the answer.
    pub name: String,
    /// Where it is.
    pub place: Place,
    /// Number of rows; a flow takes one.
    pub capacity: f64,
    /// Rows added per second while the table has room.
    pub learning_rate: f64,
    /// The memory of a cuckoo table. Without it, the learning rate is constant until the table is
    /// full.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<CuckooMemory>,
    /// Time from the decision to offload a flow until its row is in place.
    pub delay_seconds: f64,
    /// Time from the end of a flow until its row is free.
    pub event_lag_seconds: f64,
    /// Host memory for each flow, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_bytes_per_flow: Option<f64>,
    /// Throughput of the bus between card and host; if absent, the assumed throughput.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bus_bits_per_second: Option<f64>,
}

/// The load up to which the stated learning rate of a cuckoo table applies.
///
/// # Source
/// Deri and others, section III: the rate "degrades dramatically when more than 90% of the flow
/// table is in use".
const COMFORTABLE_LOAD: f64 = 0.9;

impl Card {
    /// Checks that the numbers are possible.
    ///
    /// # Errors
    /// If a rate or size is not above 0, a time is negative, or the shape of the cuckoo table was
    /// not simulated.
    pub fn check(&self) -> Result<(), Impossible> {
        above_zero("capacity", self.capacity)?;
        above_zero("learning_rate", self.learning_rate)?;
        zero_or_more("delay", self.delay_seconds)?;
        zero_or_more("event_lag", self.event_lag_seconds)?;
        if let Some(bytes) = self.host_bytes_per_flow {
            zero_or_more("host_bytes_per_flow", bytes)?;
        }
        if let Some(rate) = self.bus_bits_per_second {
            above_zero("bus_bits_per_second", rate)?;
        }
        let Some(memory) = self.memory else {
            return Ok(());
        };
        above_zero("accesses_per_second", memory.accesses_per_second)?;
        if cuckoo_points(memory.ways, memory.slots).is_empty() {
            let shapes: Vec<String> = cuckoo_shapes()
                .map(|(ways, slots)| format!("{ways} and {slots}"))
                .collect();
            let mend = format!(
                "{} ways with {} slots each were not simulated; ways and slots may be {}",
                memory.ways,
                memory.slots,
                shapes.join(", ")
            );
            return Err(Impossible::new("ways", f64::from(memory.ways), mend));
        }
        Ok(())
    }

    /// Rows added per second at a load of the table, which is a share of its capacity.
    #[must_use]
    pub fn learning_rate_at(&self, load: f64) -> f64 {
        if load > 1.0 {
            return 0.0;
        }
        let Some(memory) = self.memory else {
            return self.learning_rate;
        };
        let points = cuckoo_points(memory.ways, memory.slots);
        let by_memory = accesses(points, load).map(|cost| memory.accesses_per_second / cost);
        by_memory.map_or(0.0, |rate| rate.min(self.learning_rate))
    }

    /// Rows added per second while the table is at most nine tenths full. If the last simulated
    /// load is lower, that load is the limit.
    #[must_use]
    pub fn comfortable_rate(&self) -> f64 {
        let points = self.memory.map(|one| cuckoo_points(one.ways, one.slots));
        let fullest = points.and_then(<[_]>::last).map_or(1.0, |last| last.0);
        self.learning_rate_at(COMFORTABLE_LOAD.min(fullest))
    }

    /// Rows that can be in use while this many flows begin per second. A fuller cuckoo table could
    /// not learn that many.
    #[must_use]
    pub fn usable_rows(&self, births_per_second: f64) -> f64 {
        let wanted = births_per_second.min(self.comfortable_rate());
        let (mut low, mut high) = (0.0, 1.0);
        if self.learning_rate_at(high) >= wanted {
            return self.capacity;
        }
        // Bisection works because a fuller table never learns faster.
        for _ in 0..50 {
            let middle = f64::midpoint(low, high);
            if self.learning_rate_at(middle) >= wanted {
                low = middle;
            } else {
                high = middle;
            }
        }
        low * self.capacity
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offload::tests::{cuckoo, plain};

    #[test]
    fn a_plain_table_learns_at_one_rate_until_it_is_full() {
        let card = plain();
        assert_eq!(card.check(), Ok(()));
        assert_eq!(
            [0.0, 0.5, 1.0, 1.1].map(|load| card.learning_rate_at(load)),
            [100.0, 100.0, 100.0, 0.0]
        );
        assert_eq!(card.usable_rows(1e9), 1_000.0);
        assert_eq!(card.comfortable_rate(), 100.0);
    }

    #[test]
    fn a_cuckoo_table_learns_ever_less_as_it_fills() {
        // The memory allows exactly the stated rate at a load of 0.95.
        let at_95 = accesses(cuckoo_points(2, 4), 0.95).unwrap();
        let card = cuckoo(100.0 * at_95);
        assert_eq!(card.learning_rate_at(0.9), 100.0);
        assert!((card.learning_rate_at(0.95) - 100.0).abs() < 1e-9);
        assert!(card.learning_rate_at(0.96) < 70.0);
        assert_eq!(card.learning_rate_at(0.98), 0.0);
        assert!((card.usable_rows(100.0) - 950.0).abs() < 1e-6);
        // With a tenth of the births, the table may fill up to the last simulated load.
        assert!((card.usable_rows(10.0) - 970.0).abs() < 1e-6);
        // Births beyond the learning rate do not change how full the table may be.
        assert_eq!(card.usable_rows(1e6), card.usable_rows(100.0));
    }

    #[test]
    fn impossible_cards_are_refused_with_the_key() {
        type Change = fn(&mut Card);
        let changes: [(&str, Change); 7] = [
            ("capacity", |card| card.capacity = 0.0),
            ("learning_rate", |card| card.learning_rate = f64::NAN),
            ("delay", |card| card.delay_seconds = -1.0),
            ("event_lag", |card| card.event_lag_seconds = f64::INFINITY),
            ("host_bytes_per_flow", |card| {
                card.host_bytes_per_flow = Some(-1.0)
            }),
            ("bus_bits_per_second", |card| {
                card.bus_bits_per_second = Some(0.0)
            }),
            ("accesses_per_second", |card| *card = cuckoo(0.0)),
        ];
        for (key, change) in changes {
            let mut card = plain();
            change(&mut card);
            assert_eq!(card.check().unwrap_err().argument, key);
        }
        let mut card = cuckoo(1e6);
        card.memory.as_mut().unwrap().ways = 5;
        let error = card.check().unwrap_err();
        assert_eq!(error.argument, "ways");
        assert!(error.mend.contains("may be 2 and 4, 2 and 8"), "{error}");
    }
}
