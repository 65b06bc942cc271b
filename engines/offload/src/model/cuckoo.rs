// SPDX-License-Identifier: Apache-2.0
//! Where a card keeps its rows: a cuckoo table. A row that finds its buckets full displaces
//! another, and so on, until one finds room.

/// Rows that are displaced for one, at most.
const MAX_MOVES: usize = 500;

/// A cuckoo table of numbered rows.
#[derive(Clone, Debug)]
pub struct Cuckoo {
    ways: u32,
    slots: usize,
    buckets: u64,
    /// Hash and number of a row; `EMPTY` if there is none.
    places: Vec<(u64, u32)>,
    random: u64,
    /// How rows moved for the last one, to undo it.
    moves: Vec<usize>,
}

const EMPTY: (u64, u32) = (0, u32::MAX);

impl Cuckoo {
    /// A table of at least so many rows, in buckets of `slots`.
    #[must_use]
    pub fn new(rows: u32, ways: u32, slots: u32, seed: u64) -> Self {
        let slots = slots.max(1) as usize;
        let buckets = (rows as usize).div_ceil(slots).max(1);
        Self {
            ways: ways.max(1),
            slots,
            buckets: buckets as u64,
            places: vec![EMPTY; buckets * slots],
            random: seed | 1,
            moves: Vec::new(),
        }
    }

    /// Rows that it has room for.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.places.len()
    }

    /// Puts in a row. Returns how many buckets were accessed, as an error if it found no room; then
    /// nothing has moved.
    pub fn insert(&mut self, hash: u64, number: u32) -> Result<u32, u32> {
        self.moves.clear();
        let mut homeless = (hash, number);
        let mut accesses = 0;
        // The bucket that it was displaced from is full.
        let mut from = u64::MAX;
        for _ in 0..=MAX_MOVES {
            let buckets = (0..self.ways).map(|way| self.bucket(homeless.0, way));
            let buckets: [u64; 4] = fill(buckets);
            for &bucket in buckets.iter().take(self.ways.min(4) as usize) {
                if bucket == from {
                    continue;
                }
                accesses += 1;
                let start = bucket as usize * self.slots;
                let room = (start..start + self.slots).find(|place| self.places[*place] == EMPTY);
                if let Some(place) = room {
                    self.places[place] = homeless;
                    return Ok(accesses);
                }
            }
            let way = self.next_random() % u64::from(self.ways.min(4));
            let slot = self.next_random() as usize % self.slots;
            from = buckets[way as usize];
            let place = from as usize * self.slots + slot;
            std::mem::swap(&mut self.places[place], &mut homeless);
            self.moves.push(place);
            accesses += 1;
        }
        for place in self.moves.drain(..).rev() {
            std::mem::swap(&mut self.places[place], &mut homeless);
        }
        Err(accesses)
    }

    /// Takes out a row; returns how many buckets were accessed.
    pub fn remove(&mut self, hash: u64, number: u32) -> u32 {
        for way in 0..self.ways.min(4) {
            let start = self.bucket(hash, way) as usize * self.slots;
            let mut places = start..start + self.slots;
            if let Some(place) = places.find(|place| self.places[*place] == (hash, number)) {
                self.places[place] = EMPTY;
                return way + 1;
            }
        }
        self.ways
    }

    fn bucket(&self, hash: u64, way: u32) -> u64 {
        let own = mix(hash.wrapping_add(u64::from(way).wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        ((u128::from(own) * u128::from(self.buckets)) >> 64) as u64
    }

    fn next_random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random >> 11
    }
}

/// The first four numbers, and zeros.
fn fill(numbers: impl Iterator<Item = u64>) -> [u64; 4] {
    let mut filled = [0; 4];
    for (to, number) in filled.iter_mut().zip(numbers) {
        *to = number;
    }
    filled
}

/// Mixes the bits of a word (`SplitMix64`).
pub(super) const fn mix(word: u64) -> u64 {
    let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: u32 = 1 << 16;

    /// Mean accesses of an insertion around a load, and how many were refused, of 1,000.
    fn at_load(ways: u32, slots: u32, percent: u32) -> (f64, u32) {
        let mut table = Cuckoo::new(ROWS, ways, slots, 7);
        let before = ROWS / 100 * percent;
        for number in 0..before {
            let _ = table.insert(mix(number.into()), number);
        }
        let (mut accesses, mut refused) = (0, 0);
        for number in before..before + 1_000 {
            match table.insert(mix(number.into()), number) {
                Ok(own) => accesses += own,
                Err(own) => {
                    accesses += own;
                    refused += 1;
                }
            }
        }
        (f64::from(accesses) / 1_000.0, refused)
    }

    /// As the evaluation's simulation of such tables: 2 ways of 4 slots take 1 to 2 accesses at
    /// half load, some 20 at 90 %, and hundreds at 97 %, where rows are refused.
    #[test]
    fn a_row_takes_more_accesses_the_fuller_the_table_is() {
        let means: Vec<(f64, u32)> = [50, 80, 90, 95, 97].map(|load| at_load(2, 4, load)).into();
        assert!(
            means.is_sorted_by(|a, b| a.0 < b.0),
            "accesses and refused: {means:?}"
        );
        assert!(means[0].0 < 2.5 && means[0].1 == 0, "{means:?}");
        assert!((8.0..40.0).contains(&means[2].0), "{means:?}");
        assert!(means[4].0 > 100.0 && means[4].1 > 0, "{means:?}");
        let wide = at_load(2, 8, 95);
        assert!(wide.0 < means[3].0, "8 slots: {wide:?}, 4: {means:?}");
    }

    #[test]
    fn a_row_without_room_moves_nothing() {
        let mut table = Cuckoo::new(64, 2, 4, 3);
        let mut held = Vec::new();
        let mut refused = 0;
        for number in 0..100 {
            let hash = mix(number.into());
            match table.insert(hash, number) {
                Ok(_) => held.push((hash, number)),
                Err(_) => refused += 1,
            }
        }
        assert!(refused >= 36, "{refused} refused");
        let found = table.places.iter().filter(|place| **place != EMPTY);
        assert_eq!(found.count(), held.len());
        // Each is where it is looked for.
        for (hash, number) in held {
            let before = table.places.iter().filter(|place| **place == EMPTY).count();
            table.remove(hash, number);
            let after = table.places.iter().filter(|place| **place == EMPTY).count();
            assert_eq!(after, before + 1);
        }
    }
}
