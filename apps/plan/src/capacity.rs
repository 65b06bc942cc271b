// SPDX-License-Identifier: Apache-2.0
//! How many links one machine carries (TurboFlow, section 6.4, Table 11).

use serde::Serialize;

/// Halvings of the interval: more than an `f64` has digits.
const HALVINGS: u32 = 200;

/// How many links fit if the table's slots are divided evenly among them: the largest number, not
/// necessarily whole, whose microflow records together do not exceed the aggregator's rate.
///
/// `microflows_per_second` maps slots to the records of one link, and must not rise with the slots.
/// More links mean smaller shares of the table, so more records from each.
///
/// # Source
/// TurboFlow, section 6.2: "We allocate a different segment of the mFR table for each link".
#[must_use]
pub fn links_carried(
    microflows_per_second: impl Fn(f64) -> f64,
    table_slots: f64,
    aggregator_records_per_second: f64,
) -> f64 {
    let fits = |links: f64| {
        links * microflows_per_second(table_slots / links) <= aggregator_records_per_second
    };
    // A link makes the fewest records with an infinite table. The lower limit keeps the result
    // finite if that number is zero.
    let fewest = microflows_per_second(f64::INFINITY).max(1e-15 * aggregator_records_per_second);
    let (mut fit, mut too_many) = (0.0, 2.0 * aggregator_records_per_second / fewest);
    for _ in 0..HALVINGS {
        let middle = fit + (too_many - fit) / 2.0;
        if fits(middle) {
            fit = middle;
        } else {
            too_many = middle;
        }
    }
    fit
}

/// The part of a machine that limits its links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// The bus between forwarding engine and processor.
    Bus,
    /// The cores of the aggregator.
    Cores,
    /// The memory of the microflow table.
    Table,
}

/// The properties of a machine that determine how many links it carries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// Slots of the table, for all links.
    pub table_slots: f64,
    /// Microflow records a second that the cores merge.
    pub core_records_per_second: f64,
    /// Microflow records a second that the bus carries.
    pub bus_records_per_second: f64,
}

impl Machine {
    /// The number of links that the machine carries, not necessarily whole, and the limit: the part
    /// whose doubling would add the most links. See [`links_carried`] for `microflows_per_second`.
    ///
    /// The paper's Table 11 considers only table and cores (section 6.4), as if the bus had no
    /// limit.
    pub fn carries(&self, microflows_per_second: impl Fn(f64) -> f64) -> (f64, Limit) {
        let of = |machine: Self| {
            let Self {
                table_slots,
                core_records_per_second: cores,
                bus_records_per_second: bus,
            } = machine;
            links_carried(&microflows_per_second, table_slots, cores.min(bus))
        };
        let links = of(*self);
        let (mut limit, mut most) = (Limit::Cores, links);
        for (part, twice) in self.doubled() {
            let more = of(twice);
            // Bisection leaves tiny differences although nothing has changed.
            if more > most * (1.0 + 1e-9) {
                (limit, most) = (part, more);
            }
        }
        (links, limit)
    }

    fn doubled(self) -> [(Limit, Self); 3] {
        [
            (
                Limit::Cores,
                Self {
                    core_records_per_second: 2.0 * self.core_records_per_second,
                    ..self
                },
            ),
            (
                Limit::Bus,
                Self {
                    bus_records_per_second: 2.0 * self.bus_records_per_second,
                    ..self
                },
            ),
            (
                Limit::Table,
                Self {
                    table_slots: 2.0 * self.table_slots,
                    ..self
                },
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scarcest_part_of_a_machine_is_the_limit() {
        let machine = Machine {
            table_slots: 1e6,
            core_records_per_second: 1e7,
            bus_records_per_second: 3e7,
        };
        // The table does not reduce these records. So the limit is the cores, or the bus if it
        // carries fewer records than the cores merge.
        let (links, limit) = machine.carries(|_| 500e3);
        assert!((links - 20.0).abs() < 1e-9, "{links}");
        assert_eq!(limit, Limit::Cores);
        let narrow = Machine {
            bus_records_per_second: 1e6,
            ..machine
        };
        let (links, limit) = narrow.carries(|_| 500e3);
        assert!((links - 2.0).abs() < 1e-9, "{links}");
        assert_eq!(limit, Limit::Bus);
        // A link that needs its full share of the table: with less, its records exceed every other
        // limit.
        let step = |slots: f64| if slots >= 64.0 { 1.0 } else { 1e9 };
        let (links, limit) = machine.carries(step);
        assert!((links - 15_625.0).abs() < 1e-6, "{links}");
        assert_eq!(limit, Limit::Table);
    }

    #[test]
    fn divides_the_aggregators_rate_where_the_table_has_no_effect() {
        let links = links_carried(|_| 500e3, 0.0, 13.73e6);
        assert!((links - 27.46).abs() < 1e-9, "{links}");
    }

    #[test]
    fn balances_links_against_their_shares_of_the_table() {
        // The rate halves when the table doubles, so links * 1e9 * links / slots equals the
        // aggregator's rate.
        let links = links_carried(|slots| 1e9 / slots, 1e6, 1e7);
        assert!((links - 100.0).abs() < 1e-9, "{links}");
        let more_table = links_carried(|slots| 1e9 / slots, 4e6, 1e7);
        assert!((more_table - 200.0).abs() < 1e-9, "{more_table}");
    }

    #[test]
    fn stops_where_a_table_cannot_be_halved() {
        let step = |slots: f64| if slots >= 64.0 { 1.0 } else { 1e9 };
        let links = links_carried(step, 640.0, 1e6);
        assert!((links - 10.0).abs() < 1e-9, "{links}");
    }
}
