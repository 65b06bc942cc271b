// SPDX-License-Identifier: Apache-2.0
//! What an insertion into a cuckoo table costs, by load, for the shapes that were simulated.

/// A simulated curve: loads, and the mean accesses of an insertion at each. The last load is the
/// highest one at which at most a few percent of insertions are refused.
struct Curve {
    ways: u32,
    slots: u32,
    points: &'static [(f64, f64)],
}

/// # Source
/// The simulation of `engines/offload/src/model/cuckoo.rs`, with tables of 2^19 slots and at most
/// 500 moves. A test of the evaluation compares these numbers with it.
const CURVES: [Curve; 4] = [
    Curve {
        ways: 2,
        slots: 4,
        points: &[
            (0.50, 1.25),
            (0.60, 1.57),
            (0.70, 2.33),
            (0.80, 4.75),
            (0.85, 8.32),
            (0.90, 17.7),
            (0.93, 37.2),
            (0.95, 79.2),
            (0.96, 140.0),
            (0.97, 319.0),
        ],
    },
    Curve {
        ways: 2,
        slots: 8,
        points: &[
            (0.50, 1.06),
            (0.60, 1.16),
            (0.70, 1.49),
            (0.80, 2.25),
            (0.85, 3.50),
            (0.90, 6.26),
            (0.93, 11.0),
            (0.95, 17.6),
            (0.97, 35.8),
            (0.98, 59.9),
            (0.99, 149.0),
        ],
    },
    Curve {
        ways: 4,
        slots: 1,
        points: &[
            (0.50, 2.15),
            (0.60, 2.98),
            (0.70, 4.99),
            (0.80, 10.1),
            (0.85, 17.2),
            (0.90, 39.4),
            (0.93, 82.2),
            (0.95, 194.0),
            (0.96, 343.0),
        ],
    },
    Curve {
        ways: 3,
        slots: 1,
        points: &[
            (0.50, 2.66),
            (0.60, 4.14),
            (0.70, 8.21),
            (0.80, 24.1),
            (0.85, 61.9),
            (0.88, 153.0),
        ],
    },
];

/// The shapes of cuckoo tables that a card may have: ways, and slots of a bucket.
pub fn cuckoo_shapes() -> impl Iterator<Item = (u32, u32)> {
    CURVES.iter().map(|curve| (curve.ways, curve.slots))
}

/// The simulated points of a shape, ordered by load: the load and the mean accesses of an
/// insertion. Empty for other shapes.
#[must_use]
pub fn cuckoo_points(ways: u32, slots: u32) -> &'static [(f64, f64)] {
    let mut curves = CURVES.iter();
    let found = curves.find(|curve| (curve.ways, curve.slots) == (ways, slots));
    found.map_or(&[], |curve| curve.points)
}

/// Mean accesses of an insertion at a load, interpolated linearly in the logarithm of accesses.
/// `None` above the last point, where the table refuses insertions.
pub(super) fn accesses(points: &[(f64, f64)], load: f64) -> Option<f64> {
    // An insertion into an empty table reads one bucket.
    let from = std::iter::once((0.0, 1.0)).chain(points.iter().copied());
    let pairs = from.zip(points.iter().copied());
    let mut around = pairs.filter(|(_, to)| load <= to.0);
    let ((low, cheap), (high, dear)) = around.next()?;
    let share = (load - low) / (high - low);
    Some(cheap * (dear / cheap).powf(share))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_go_through_the_points_and_end_with_them() {
        let points = [(0.5, 2.0), (0.9, 8.0)];
        assert_eq!(accesses(&points, 0.0), Some(1.0));
        assert_eq!(accesses(&points, 0.5), Some(2.0));
        // Half-way in the logarithm.
        let middle = accesses(&points, 0.7).unwrap();
        assert!((middle - 4.0).abs() < 1e-9, "{middle}");
        assert!((accesses(&points, 0.9).unwrap() - 8.0).abs() < 1e-9);
        assert_eq!(accesses(&points, 0.901), None);
    }

    #[test]
    fn every_shape_has_a_curve_that_rises() {
        assert_eq!(cuckoo_shapes().count(), 4);
        for (ways, slots) in cuckoo_shapes() {
            let points = cuckoo_points(ways, slots);
            let rises = |pair: &[(f64, f64)]| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1;
            assert!(points.windows(2).all(rises), "{ways} {slots}");
        }
        assert!(cuckoo_points(5, 1).is_empty());
    }
}
