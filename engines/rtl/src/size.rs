// SPDX-License-Identifier: Apache-2.0
//! The size and the configuration of a line.

use turboflow_merge::KeyHasher;

pub use crate::built::Build;
use crate::built::{DIRECT, METER_V4, METER_V6, V4, V6};
use crate::hash::{SEED_WORDS, Toeplitz};

/// The part of a line that is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Number of stages: a power of two, at most as many as were built.
    pub stages: u32,
    /// Buckets of each subtable in a stage: a power of two, at most as many as were built.
    pub buckets: u32,
}

/// Clocks of the sequencer, for a packet in hand and for its place: `rtl/tf_sequencer.sv`.
const SEQUENCER_CLOCKS: usize = 2;
/// Clocks of the hash: `HashLatency` in `rtl/tf_pkg.sv`.
pub const HASH_CLOCKS: usize = 4;
/// Clocks of the table that gives the stage of a key: `SpreadLatency` in `rtl/tf_pkg.sv`.
pub const SPREAD_CLOCKS: usize = 4;
/// Clocks that a token spends in a stage: `StageLatency` in `rtl/tf_pkg.sv`.
pub const STAGE_CLOCKS: usize = 13;

/// Clocks that any place takes from the head to the end of a line with this many stages. A line of
/// one stage has no table that gives the stage.
#[must_use]
pub const fn line_clocks(stages: usize) -> usize {
    let table = if stages > 1 { SPREAD_CLOCKS } else { 0 };
    SEQUENCER_CLOCKS + HASH_CLOCKS + table + STAGE_CLOCKS * stages
}

/// A size that exceeds that of the line that was built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} must be a power of two from 1 to {most}, not {given}")]
pub struct InvalidSize {
    /// Name of the number.
    pub what: &'static str,
    /// Largest value that the line has.
    pub most: u32,
    /// Value that was given.
    pub given: u32,
}

impl Build {
    /// The line for IPv4.
    pub const V4: Self = V4;
    /// The line for IPv6.
    pub const V6: Self = V6;
    /// The direct-mapped table of the TurboFlow paper.
    pub const DIRECT: Self = DIRECT;
    /// The meter for IPv4.
    pub const METER_V4: Self = METER_V4;
    /// The meter for IPv6.
    pub const METER_V6: Self = METER_V6;

    /// The whole line.
    #[must_use]
    pub const fn size(&self) -> Size {
        Size {
            stages: 1 << self.stage_bits,
            buckets: 1 << self.bucket_bits,
        }
    }

    /// Slots of a line of this build if only this size is used.
    #[must_use]
    pub const fn slots(&self, size: Size) -> u32 {
        (size.stages * size.buckets * self.subtables) << self.slot_bits
    }

    /// Checks that the line has at least this size.
    ///
    /// # Errors
    /// The first number that is larger than what was built.
    pub fn check(&self, size: Size) -> Result<(), InvalidSize> {
        let numbers = [
            ("the number of stages", size.stages, self.size().stages),
            ("the number of buckets", size.buckets, self.size().buckets),
        ];
        for (what, given, most) in numbers {
            if !given.is_power_of_two() || given > most {
                return Err(InvalidSize { what, most, given });
            }
        }
        Ok(())
    }
}

/// The configuration registers of a line, set before packets come.
#[derive(Clone, Copy, Debug)]
pub struct LineConfig {
    /// The line that was built.
    pub build: Build,
    /// How much of it is used.
    pub size: Size,
    /// Whether no packet joins a record with FIN or RST, as with a linger of 0.
    pub ends_cut: bool,
    /// Packets between two sweeps while packets come; 0: sweeps only take places without a packet.
    pub sweep_every: u16,
    /// Packets of a period of activity, from [`LineConfig::LEAST_AGE_PERIOD`] to 2^24. Among the
    /// powers of two, twice the number of the line's slots evicts the fewest records
    /// (`docs/fpga.md`).
    pub age_period: u32,
    /// The number of the forward that is removed from the line, to test the tests; 0: none.
    pub fault: u32,
    /// The seed of the hash.
    pub seed: [u64; SEED_WORDS],
}

impl LineConfig {
    /// More than twice the packets that are on the way to a slot at the same time.
    pub const LEAST_AGE_PERIOD: u32 = 16;

    /// A line of this build in this size, with the key of `hasher`.
    ///
    /// # Panics
    /// If the line does not have the size: see [`Build::check`].
    #[must_use]
    pub fn new(build: Build, size: Size, hasher: KeyHasher) -> Self {
        if let Err(error) = build.check(size) {
            panic!("{error}");
        }
        Self {
            build,
            size,
            ends_cut: false,
            sweep_every: 64,
            age_period: (2 * build.slots(size)).clamp(Self::LEAST_AGE_PERIOD, 1 << 24),
            fault: 0,
            seed: std::array::from_fn(|word| hasher.hash(&[word as u64, u64::MAX]).0),
        }
    }

    /// The hash of keys.
    #[must_use]
    pub fn hash(&self) -> Toeplitz {
        Toeplitz::new(self)
    }
}
