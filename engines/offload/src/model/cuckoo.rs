// SPDX-License-Identifier: Apache-2.0
//! The place of a card's rows: a cuckoo table, and the cost of an insertion depending on the load.
//! A row that finds its buckets full displaces another row, and so on, until one finds room.
//!
//! Insertions are simulated row by row. For a given seed, the result is the same on every machine.
//! The evaluation draws the curve of costs, and the planner uses points of it.
//!
//! # Source
//! Pagh and Rodler, "Cuckoo hashing", 2004, with several slots a bucket; the victim is chosen at
//! random.

/// The shape of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Number of buckets that a row may be in.
    pub ways: u32,
    /// Number of slots of a bucket. One access reads all of them.
    pub slots_per_bucket: u32,
}

/// The cost of an insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Insertion {
    /// Buckets read, and rows written over others.
    pub accesses: u32,
    /// Whether a slot was found. If not, the table is as it was before.
    pub is_placed: bool,
}

/// The hash of a row's flow, and its number.
type Slot = (u64, u32);

/// A slot without a row: no row has this number.
const FREE: Slot = (0, u32::MAX);

/// A table of numbered rows.
#[derive(Clone, Debug)]
pub struct Cuckoo {
    shape: Shape,
    buckets: u64,
    slots: Vec<Slot>,
    filled: usize,
    /// Maximum number of rows that an insertion may move before it is refused.
    max_moves: usize,
    seed: u64,
    random_state: u64,
    /// The slots whose rows were moved by the current insertion.
    path: Vec<usize>,
}

impl Cuckoo {
    /// An empty table of at least `slots` slots.
    ///
    /// # Panics
    /// When the shape has no way or no slot.
    #[must_use]
    pub fn new(shape: Shape, slots: u64, max_moves: usize, seed: u64) -> Self {
        assert!(
            shape.ways > 0 && shape.slots_per_bucket > 0,
            "a row needs a place"
        );
        let buckets = slots.div_ceil(u64::from(shape.slots_per_bucket)).max(1);
        let slots = (buckets * u64::from(shape.slots_per_bucket)) as usize;
        Self {
            shape,
            buckets,
            slots: vec![FREE; slots],
            filled: 0,
            max_moves,
            seed: mixed(seed),
            random_state: seed,
            path: Vec::new(),
        }
    }

    /// Number of rows for which there is room.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// The share of the slots that hold rows.
    #[must_use]
    pub fn load(&self) -> f64 {
        self.filled as f64 / self.slots.len() as f64
    }

    /// Inserts a row that is not yet in the table.
    ///
    /// The buckets of the row are read in turn, which costs an access each. If all are full, a row
    /// in one of them is displaced, which costs another access. The displaced row is placed in the
    /// same way. All its buckets are read, because a card does not know from which one the row
    /// comes.
    pub fn insert(&mut self, hash: u64, number: u32) -> Insertion {
        let (mut homeless, mut accesses) = ((hash, number), 0);
        self.path.clear();
        loop {
            for way in 0..self.shape.ways {
                accesses += 1;
                let bucket = self.bucket(homeless.0, way);
                if let Some(slot) = self.slot_of(bucket, FREE) {
                    self.slots[slot] = homeless;
                    self.filled += 1;
                    return Insertion {
                        accesses,
                        is_placed: true,
                    };
                }
            }
            if self.path.len() == self.max_moves {
                self.undo(homeless);
                return Insertion {
                    accesses,
                    is_placed: false,
                };
            }
            let slot = self.any_slot(homeless.0);
            std::mem::swap(&mut self.slots[slot], &mut homeless);
            self.path.push(slot);
            accesses += 1;
        }
    }

    /// Removes a row; returns how many buckets were accessed.
    pub fn remove(&mut self, hash: u64, number: u32) -> u32 {
        for way in 0..self.shape.ways {
            let bucket = self.bucket(hash, way);
            if let Some(slot) = self.slot_of(bucket, (hash, number)) {
                self.slots[slot] = FREE;
                self.filled -= 1;
                return way + 1;
            }
        }
        self.shape.ways
    }

    /// Puts every displaced row back in its old place.
    fn undo(&mut self, mut homeless: Slot) {
        while let Some(slot) = self.path.pop() {
            std::mem::swap(&mut self.slots[slot], &mut homeless);
        }
    }

    /// The first slot of a row's bucket in this way.
    fn bucket(&self, hash: u64, way: u32) -> usize {
        let hash = mixed(hash ^ mixed(self.seed.wrapping_add(u64::from(way))));
        // The high half of the product: a number below `buckets`, without a division.
        let bucket = (u128::from(hash) * u128::from(self.buckets)) >> 64;
        bucket as usize * self.shape.slots_per_bucket as usize
    }

    fn slot_of(&self, bucket: usize, row: Slot) -> Option<usize> {
        let slots = bucket..bucket + self.shape.slots_per_bucket as usize;
        slots.into_iter().find(|slot| self.slots[*slot] == row)
    }

    /// A random slot of the row's buckets.
    fn any_slot(&mut self, hash: u64) -> usize {
        self.random_state = self.random_state.wrapping_add(GOLDEN);
        let random = mixed(self.random_state);
        let way = (random >> 32) % u64::from(self.shape.ways);
        let slot = (random & 0xffff_ffff) % u64::from(self.shape.slots_per_bucket);
        self.bucket(hash, way as u32) + slot as usize
    }
}

/// The step of `SplitMix64` between two states: 2^64 divided by the golden ratio.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// A number in which every bit depends on all bits of the input.
///
/// # Source
/// Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014: the output function
/// of `SplitMix64`.
pub(super) const fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// The cost of insertions while a table is filled from one load to the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurvePoint {
    /// The share of the slots that hold rows at the end of the step.
    pub load: f64,
    /// Mean accesses per insertion, including refused ones.
    pub accesses_per_insertion: f64,
    /// The share of insertions that were refused.
    pub refused_share: f64,
}

/// Steps of a curve between an empty and a full table.
const STEPS: usize = 100;
/// A curve ends when refusals reach this share of the slots, because the table then hardly fills
/// up.
const REFUSED_IN_ALL: f64 = 0.005;

/// Fills a table of `slots` slots in steps of a hundredth, until it refuses too many rows.
#[must_use]
pub fn curve(shape: Shape, slots: u64, max_moves: usize, seed: u64) -> Vec<CurvePoint> {
    let mut table = Cuckoo::new(shape, slots, max_moves, seed);
    let refused_most = (table.capacity() as f64 * REFUSED_IN_ALL) as u64;
    let (mut points, mut refused_in_all) = (Vec::new(), 0);
    let mut numbers = 1..u32::MAX;
    for step in 1..=STEPS {
        let until = table.capacity() * step / STEPS;
        let (mut insertions, mut accesses, mut refused) = (0_u64, 0_u64, 0_u64);
        while table.filled < until && refused_in_all + refused < refused_most {
            let Some(number) = numbers.next() else { break };
            let insertion = table.insert(number.into(), number);
            insertions += 1;
            accesses += u64::from(insertion.accesses);
            refused += u64::from(!insertion.is_placed);
        }
        if insertions == 0 {
            break;
        }
        refused_in_all += refused;
        points.push(CurvePoint {
            load: table.load(),
            accesses_per_insertion: accesses as f64 / insertions as f64,
            refused_share: refused as f64 / insertions as f64,
        });
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO_OF_FOUR: Shape = Shape {
        ways: 2,
        slots_per_bucket: 4,
    };

    #[test]
    fn every_placed_row_stays_in_one_of_its_buckets_and_refusals_change_nothing() {
        let mut table = Cuckoo::new(TWO_OF_FOUR, 4_096, 100, 7);
        let (mut placed, mut refused) = (Vec::new(), 0);
        for number in 1..4_500 {
            let before = table.slots.clone();
            if table.insert(number.into(), number).is_placed {
                placed.push(number);
            } else {
                refused += 1;
                assert_eq!(table.slots, before);
            }
        }
        assert!(refused > 400, "{refused}");
        let held = table.slots.iter().filter(|slot| **slot != FREE).count();
        assert_eq!((held, held), (placed.len(), table.filled));
        assert!(table.load() > 0.97, "{}", table.load());
        // Each row is found where it is looked for, and only once.
        for (number, left) in placed.iter().zip((0..placed.len()).rev()) {
            assert!(table.remove((*number).into(), *number) <= 2);
            assert_eq!(table.filled, left);
        }
        assert_eq!(table.remove(1, 1), 2);
        assert!(table.slots.iter().all(|slot| *slot == FREE));
    }

    #[test]
    fn accesses_are_buckets_read_and_rows_displaced() {
        let one = Shape {
            ways: 1,
            slots_per_bucket: 1,
        };
        let mut table = Cuckoo::new(one, 1, 3, 0);
        let insert = |table: &mut Cuckoo, number: u32| {
            let insertion = table.insert(number.into(), number);
            (insertion.accesses, insertion.is_placed)
        };
        assert_eq!(insert(&mut table, 5), (1, true));
        // One read finds the slot taken; three times it is displaced and read again.
        assert_eq!(insert(&mut table, 6), (1 + 3 * 2, false));
        assert_eq!(table.slots, [(5, 5)]);
    }

    #[test]
    fn a_curve_is_the_same_for_a_seed_and_another_for_another_seed() {
        let of = |seed| curve(TWO_OF_FOUR, 1 << 12, 500, seed);
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
        assert_eq!(of(1)[0].accesses_per_insertion, 1.0);
    }

    /// Load, accesses per insertion, and the share of refused insertions.
    type Expected = (f64, f64, f64);

    /// Accesses per insertion and the refused share at some loads, computed by another program with
    /// another hash and other random numbers. Its results differ by a few percent between seeds,
    /// and by more where insertions are refused.
    const OTHERS: [(u32, u32, &[Expected]); 4] = [
        (
            2,
            4,
            &[
                (0.50, 1.24, 0.0),
                (0.80, 4.56, 0.0),
                (0.90, 18.1, 0.0),
                (0.95, 80.7, 0.0),
                (0.97, 329.0, 0.03),
            ],
        ),
        (
            2,
            8,
            &[
                (0.50, 1.06, 0.0),
                (0.80, 2.40, 0.0),
                (0.90, 6.23, 0.0),
                (0.95, 18.0, 0.0),
                (0.97, 35.7, 0.0),
            ],
        ),
        (
            4,
            1,
            &[
                (0.50, 2.19, 0.0),
                (0.80, 10.1, 0.0),
                (0.90, 39.9, 0.0),
                (0.95, 187.0, 0.0),
                (0.97, 878.0, 0.11),
            ],
        ),
        (
            3,
            1,
            &[(0.50, 2.67, 0.0), (0.80, 25.1, 0.0), (0.90, 428.0, 0.04)],
        ),
    ];

    #[test]
    fn curves_are_those_of_an_independent_simulation() {
        for (ways, slots_per_bucket, expected) in OTHERS {
            let shape = Shape {
                ways,
                slots_per_bucket,
            };
            let points = curve(shape, 1 << 19, 500, 1);
            for (load, accesses, refused) in expected {
                let at = |point: &&CurvePoint| (point.load - load).abs() < 0.002;
                let point = points.iter().find(at).expect("the table gets that full");
                let within = if *refused > 0.0 { 0.25 } else { 0.08 };
                let ratio = point.accesses_per_insertion / accesses;
                assert!(
                    (ratio - 1.0).abs() < within,
                    "{shape:?} {point:?} {accesses}"
                );
                let off = (point.refused_share - refused).abs();
                assert!(off <= refused / 2.0 + 1e-3, "{shape:?} {point:?} {refused}");
            }
        }
    }
}
