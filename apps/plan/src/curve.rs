// SPDX-License-Identifier: Apache-2.0
//! Microflow records per packet, by size of the table.

/// A measured curve: the share of packets that begin a new microflow record, by slots of the table
/// (TurboFlow, section 6.3, Figure 11).
/// Between measured sizes the curve is linear in the logarithm of the size, as Figure 11 is drawn.
/// Below the smallest size it continues the first line, up to one record per packet. Above the
/// largest size it is constant: nothing was measured there, and a larger table is never worse.
#[derive(Clone, Debug, PartialEq)]
pub struct ShareCurve {
    /// Natural logarithm of slots, and microflow records per packet; ordered by size.
    points: Vec<(f64, f64)>,
}

impl ShareCurve {
    /// A curve through pairs of slots and microflow records per packet.
    ///
    /// # Panics
    /// If there is no pair, or a pair has 0 slots.
    #[must_use]
    pub fn new(pairs: impl IntoIterator<Item = (u64, f64)>) -> Self {
        let mut points: Vec<(f64, f64)> = pairs
            .into_iter()
            .map(|(slots, share)| {
                assert!(slots > 0, "a table has slots");
                ((slots as f64).ln(), share)
            })
            .collect();
        assert!(!points.is_empty(), "a curve goes through a point at least");
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points.dedup_by(|a, b| a.0 == b.0);
        Self { points }
    }

    /// Microflow records per packet with a table of `slots` slots. The number may be fractional: a
    /// table is rarely divided evenly among links.
    #[must_use]
    pub fn share(&self, slots: f64) -> f64 {
        if slots < 1.0 {
            return 1.0;
        }
        let at = slots.ln();
        let next = self.points.partition_point(|(point, _)| *point <= at);
        let last = self.points.len() - 1;
        if next > last {
            return self.points[last].1;
        }
        if last == 0 {
            // With a single point, the slope towards small tables is unknown.
            return 1.0;
        }
        let (from, to) = (self.points[next.max(1) - 1], self.points[next.max(1)]);
        let slope = (to.1 - from.1) / (to.0 - from.0);
        (from.1 + (at - from.0) * slope).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goes_through_its_points_and_straight_between_them() {
        let curve = ShareCurve::new([(4_096, 0.1), (64, 0.4), (512, 0.25)]);
        for (slots, share) in [(64.0, 0.4), (512.0, 0.25), (4_096.0, 0.1)] {
            assert!((curve.share(slots) - share).abs() < 1e-12, "{slots}");
        }
        // Half-way in the logarithm.
        let middle = curve.share((64.0f64 * 512.0).sqrt());
        assert!((middle - 0.325).abs() < 1e-12, "{middle}");
    }

    #[test]
    fn continues_towards_small_tables_and_is_constant_for_large_ones() {
        let curve = ShareCurve::new([(64, 0.4), (512, 0.25)]);
        assert!((curve.share(8.0) - 0.55).abs() < 1e-12);
        assert_eq!(curve.share(0.5), 1.0);
        assert_eq!(curve.share(0.0), 1.0);
        assert_eq!(curve.share(1e9), 0.25);
        let steep = ShareCurve::new([(64, 0.9), (512, 0.1)]);
        assert_eq!(steep.share(2.0), 1.0);
        assert_eq!(ShareCurve::new([(64, 0.4)]).share(8.0), 1.0);
        assert_eq!(ShareCurve::new([(64, 0.4)]).share(64.0), 0.4);
    }
}
