// SPDX-License-Identifier: Apache-2.0
//! Equations 1 to 4 of the paper, corrected.

/// Latencies in clocks (Table 3). The paper writes `L_uwr` as `L_uwl` in Equation 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Latencies {
    /// Latency to look up, and to write, the flow-key cache: `L_lfc`, `L_wfc`.
    pub(crate) look_up_cache: f64,
    pub(crate) write_cache: f64,
    /// Latency to look up, and to write, the tracking table: `L_lft`, `L_wft`.
    pub(crate) look_up_tracking: f64,
    pub(crate) write_tracking: f64,
    /// Latency to update a counter, and to write key and counter: `L_ufr`, `L_wfr`.
    pub(crate) update_record: f64,
    pub(crate) write_record: f64,
    /// Latency to update workload registers: `L_uwr`.
    pub(crate) update_workload: f64,
    /// Latency of the comparator: `L_cp`.
    pub(crate) compare: f64,
    /// Latency of the queue to the next stage: `L_dq`.
    pub(crate) write_queue: f64,
}

/// The latencies of Table 3.
pub(crate) const TABLE_3: Latencies = Latencies {
    look_up_cache: 1.0,
    write_cache: 1.0,
    look_up_tracking: 1.0,
    write_tracking: 1.0,
    update_record: 2.0,
    write_record: 1.0,
    update_workload: 2.0,
    compare: 1.0,
    write_queue: 1.0,
};

/// Bits of a flow key.
const KEY_BITS: f64 = 104.0;

impl Latencies {
    /// Clocks for a new key in stage 1, with `subtables` lookups (Equation 1).
    pub(crate) fn new_key(&self, subtables: f64) -> f64 {
        let look_up = self.look_up_cache.max(subtables * self.look_up_tracking);
        let writes = [
            self.write_cache,
            self.write_record,
            self.update_workload,
            self.write_tracking,
            self.write_queue,
        ];
        look_up + self.compare + writes.into_iter().fold(0.0, f64::max)
    }

    /// Clocks for a key in a later stage (Equation 3), without the hash: it is computed only once,
    /// but Equation 4 would count it in every stage.
    pub(crate) fn later_stage(&self) -> f64 {
        let writes = [
            self.update_record,
            self.write_cache,
            self.write_record,
            self.write_queue,
        ];
        self.look_up_cache + writes.into_iter().fold(0.0, f64::max)
    }

    /// Mean clocks for a key (Equation 4). A key passes 0 to `stages - 1` later stages, on average
    /// `(stages - 1) / 2`, not `stages / 2` as printed.
    pub(crate) fn mean(&self, hash: f64, subtables: f64, stages: f64) -> f64 {
        hash + self.new_key(subtables) + (stages - 1.0) / 2.0 * self.later_stage()
    }
}

/// Million new keys per second at a clock in MHz. Equation 2 prints the reciprocal of this, times
/// the size of a key.
pub(crate) fn mkeys_per_s(clock_mhz: f64, clocks_per_key: f64) -> f64 {
    clock_mhz / clocks_per_key
}

/// Gbit/s of keys: Equation 2, corrected.
pub(crate) fn key_gbps(clock_mhz: f64, clocks_per_key: f64) -> f64 {
    mkeys_per_s(clock_mhz, clocks_per_key) * KEY_BITS / 1e3
}

/// Million minimum-size frames per second on a link: 64 bytes, preamble and gap.
pub(crate) fn minimum_frames_mpps(gbps: f64) -> f64 {
    gbps * 1e3 / (84.0 * 8.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_key_takes_5_clocks_and_100_gbps_of_small_frames_are_too_many() {
        assert_eq!(TABLE_3.new_key(2.0), 5.0);
        assert_eq!(TABLE_3.later_stage(), 3.0);
        let rate = mkeys_per_s(358.0, 5.0);
        assert!((rate - 71.6).abs() < 1e-9, "{rate}");
        assert!(rate < minimum_frames_mpps(100.0) / 2.0);
        assert!(key_gbps(358.0, 5.0) < 7.5);
    }

    #[test]
    fn a_line_of_one_stage_passes_no_later_stage() {
        assert_eq!(TABLE_3.mean(0.0, 2.0, 1.0), TABLE_3.new_key(2.0));
        // The sum in the paper's first line: 1/N x L x (1 + ... + (N - 1)).
        let sum: f64 = (1..32).map(f64::from).sum();
        let expected = 5.0 + 3.0 * sum / 32.0;
        assert!((TABLE_3.mean(0.0, 2.0, 32.0) - expected).abs() < 1e-9);
    }
}
