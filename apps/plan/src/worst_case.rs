// SPDX-License-Identifier: Apache-2.0
//! The worst case of a table's microflow records (TurboFlow, section 5.4).

use crate::Traffic;

/// The largest table considered: 2^40 slots, 64 TiB of records.
pub const MAX_SLOTS: u64 = 1 << 40;

/// The probability that a packet finds another flow in its slot and evicts it.
///
/// With 0 slots it is 1: every packet becomes its own record.
///
/// # Source
/// TurboFlow, section 5.4, Equation 1: `P[eviction] = 1 - (1 - 1/T)^â`.
#[must_use]
pub fn eviction_probability(slots: u64, active_flows: f64) -> f64 {
    if slots == 0 {
        return 1.0;
    }
    // Computed with logarithms, which stay exact where 1/T is negligible beside 1.
    -(active_flows * (-1.0 / slots as f64).ln_1p()).exp_m1()
}

/// The expected microflow records per second of one link's table, in the worst case.
///
/// # Source
/// TurboFlow, section 5.4, Equation 2: `E[m] = E[f] + (E[p] - E[f]) * P[eviction]`.
#[must_use]
pub fn worst_case_microflows_per_second(traffic: &Traffic, slots: u64) -> f64 {
    let others = traffic.packets_per_second - traffic.flows_per_second;
    traffic.flows_per_second + others * eviction_probability(slots, traffic.active_flows)
}

/// The smallest table with at most this eviction probability; `None` if it needs more than
/// [`MAX_SLOTS`] slots.
#[must_use]
pub fn slots_for_probability(probability: f64, active_flows: f64) -> Option<u64> {
    smallest(|slots| eviction_probability(slots, active_flows) <= probability)
}

/// The smallest table that makes at most this many microflow records per second, even in the worst
/// case; `None` if it needs more than [`MAX_SLOTS`] slots. A rate below one record per flow is
/// never possible.
#[must_use]
pub fn slots_for_rate(traffic: &Traffic, microflows_per_second: f64) -> Option<u64> {
    smallest(|slots| worst_case_microflows_per_second(traffic, slots) <= microflows_per_second)
}

/// The smallest sufficient number of slots, given that any larger number also suffices; 0 if no
/// table is needed.
fn smallest(is_enough: impl Fn(u64) -> bool) -> Option<u64> {
    if is_enough(0) {
        return Some(0);
    }
    if !is_enough(MAX_SLOTS) {
        return None;
    }
    let (mut too_few, mut enough) = (0, MAX_SLOTS);
    while enough - too_few > 1 {
        let middle = too_few + (enough - too_few) / 2;
        if is_enough(middle) {
            enough = middle;
        } else {
            too_few = middle;
        }
    }
    Some(enough)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn traffic() -> impl Strategy<Value = Traffic> {
        (1.0..1e9, 0.0..1.0, 1.0..1e8).prop_map(|(packets, births, active_flows)| Traffic {
            packets_per_second: packets,
            flows_per_second: packets * births,
            active_flows,
            mean_packet_bytes: None,
        })
    }

    #[test]
    fn equals_the_definition_where_it_can_be_computed() {
        for (slots, flows) in [(1, 1.0), (2, 3.0), (10, 10.0), (1_000, 17.0)] {
            let plain = 1.0 - (1.0 - 1.0 / slots as f64).powf(flows);
            assert!((eviction_probability(slots, flows) - plain).abs() < 1e-12);
        }
        // A power of (1 - 2^-40), computed in 53 bits, would have three correct digits.
        let tiny = eviction_probability(1 << 40, 1.0);
        assert!((tiny * (1u64 << 40) as f64 - 1.0).abs() < 1e-9, "{tiny}");
        assert_eq!(eviction_probability(0, 5.0), 1.0);
    }

    #[test]
    fn no_table_goes_below_one_record_a_flow() {
        let traffic = Traffic {
            packets_per_second: 1e6,
            flows_per_second: 1e5,
            active_flows: 1e4,
            mean_packet_bytes: None,
        };
        assert_eq!(slots_for_rate(&traffic, 0.99e5), None);
        assert_eq!(slots_for_rate(&traffic, 1e6), Some(0));
        assert_eq!(slots_for_rate(&traffic, 0.999_999e6), Some(730));
    }

    proptest! {
        #[test]
        fn falls_with_the_table_and_rises_with_active_flows(
            traffic in traffic(),
            slots in 1u64..1 << 30,
            more in 1u64..1 << 30,
        ) {
            let worst = worst_case_microflows_per_second(&traffic, slots);
            let larger = worst_case_microflows_per_second(&traffic, slots + more);
            prop_assert!(larger <= worst);
            let busier = Traffic { active_flows: traffic.active_flows + more as f64, ..traffic };
            prop_assert!(worst_case_microflows_per_second(&busier, slots) >= worst);
            prop_assert!(worst <= traffic.packets_per_second * (1.0 + 1e-12));
            prop_assert!(worst >= traffic.flows_per_second);
        }

        #[test]
        fn finds_the_smallest_table(probability in 1e-6..1.0f64, active_flows in 1.0..1e6f64) {
            let slots = slots_for_probability(probability, active_flows).unwrap();
            prop_assert!(eviction_probability(slots, active_flows) <= probability);
            prop_assert!(eviction_probability(slots - 1, active_flows) > probability);
        }
    }
}
