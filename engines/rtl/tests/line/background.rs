// SPDX-License-Identifier: Apache-2.0
//! Cells that end while packets keep coming: the line is swept in the background.

use std::collections::BTreeMap;

use proptest::prelude::*;
use turboflow_engine_rtl::{
    Build, Left, Line, LineConfig, Model, Size, Step, Stopped, VerilatedLine,
};
use turboflow_merge::{Base, KeyHasher};

use crate::traffic::{Mix, Random, Shape, Traffic};

/// Number of places that a sweep takes: its own, and `SpecialGap` of `rtl/tf_pkg.sv`.
const SWEEP_CLOCKS: u64 = 4;
/// Clocks for the beginning of a cell, its first sweep, and the last one, which may come before the
/// head knows that the line is clean.
const TURN_CLOCKS: u64 = 3 * SWEEP_CLOCKS;

/// Records of each flow and cell, merged.
type Merged = BTreeMap<([u64; 5], u64), Base>;

/// The records of every flow and cell, merged, in order. If packets come in order, it is an error
/// if the records of a flow do not.
fn merged(all: &[Left], cell_ns: u64, in_order: bool) -> Result<Merged, String> {
    let mut flows = Merged::new();
    let mut last: BTreeMap<[u64; 5], u64> = BTreeMap::new();
    for left in all {
        let cell = left.base.first_ns / cell_ns;
        if left.base.last_ns / cell_ns != cell {
            return Err(format!("a record of two cells: {left:?}"));
        }
        let before = last.insert(left.key, left.base.last_ns);
        if in_order && before.is_some_and(|last_ns| last_ns > left.base.first_ns) {
            return Err(format!("a record behind a later one: {left:?}"));
        }
        let merge = |base: &mut Base| base.merge(&left.base);
        let flow = flows.entry((left.key, cell));
        flow.and_modify(merge).or_insert(left.base);
    }
    Ok(flows)
}

/// A number of clocks, and the packets taken in them.
#[derive(Clone, Copy, Debug, Default)]
struct Pace {
    clocks: u64,
    packets: u64,
}

impl Pace {
    fn keys_a_clock(&self) -> f64 {
        self.packets as f64 / self.clocks as f64
    }
}

/// The pace at which packets were taken.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Paces {
    /// While the line was swept in the background: from the beginning of a cell until the line was
    /// clean.
    sweeping: Pace,
    /// How many times that happened.
    sweeps: u64,
    /// Otherwise. Cells that had to wait for the sweeps of the previous cell count in neither.
    clean: Pace,
}

/// A run of consecutive cells of this length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Background {
    pub(crate) build: Build,
    pub(crate) size: Size,
    pub(crate) mix: Mix,
    pub(crate) flows: u64,
    pub(crate) cell_ns: u64,
    pub(crate) strange: bool,
    pub(crate) packets: u64,
    pub(crate) sweep_every: u16,
    /// One of this many places is without a packet; 0: none.
    pub(crate) idle: u64,
    pub(crate) fault: u32,
}

impl Background {
    pub(crate) fn new(size: Size, flows: u64, cell_ns: u64, packets: u64) -> Self {
        Self {
            build: Build::V4,
            size,
            mix: Mix::Trains,
            flows,
            cell_ns,
            strange: false,
            packets,
            sweep_every: 64,
            idle: 0,
            fault: 0,
        }
    }

    fn config(&self) -> LineConfig {
        LineConfig {
            fault: self.fault,
            sweep_every: self.sweep_every,
            ..LineConfig::new(self.build, self.size, KeyHasher::new(self.flows))
        }
    }

    fn traffic(&self) -> Traffic {
        let shape = Shape {
            mix: self.mix,
            flows: self.flows,
            key_bits: self.build.key_bits,
            cell_ns: self.cell_ns,
            strange: self.strange,
        };
        Traffic::new(shape, self.flows)
    }

    /// Runs the line and its model.
    pub(crate) fn compare(&self) -> Result<Paces, String> {
        let mut given = Given::new(self.config());
        let (mut traffic, mut random) = (self.traffic(), Random(self.flows));
        let mut entered_ns = None;
        given.idle(1_024)?;
        for _ in 0..self.packets {
            let packet = traffic.packet();
            if entered_ns != Some(traffic.cell_ns()) {
                entered_ns = Some(traffic.cell_ns());
                given.begin(traffic.cell_ns())?;
            }
            while self.idle > 0 && random.one_in(self.idle) {
                given.step(Step::Idle)?;
            }
            given.step(Step::Packet(packet))?;
        }
        given.begin(u64::MAX >> 1)?;
        let in_order = !self.strange;
        let expected = merged(&given.expected, self.cell_ns, in_order)?;
        let packets = |all: &[Left]| -> u64 { all.iter().map(|left| left.base.packets).sum() };
        for _ in 0..4_096 {
            if packets(&given.found) >= self.packets {
                break;
            }
            given.idle(256)?;
        }
        match merged(&given.found, self.cell_ns, in_order)? == expected {
            true => Ok(given.paces),
            false => Err("the records of a flow and cell differ".to_owned()),
        }
    }
}

/// A line and its model, with the state of their input.
struct Given {
    line: VerilatedLine,
    model: Model,
    found: Vec<Left>,
    expected: Vec<Left>,
    paces: Paces,
    /// What was taken since the cell began, while the line is being swept.
    sweeping: Option<Pace>,
    /// Whether the cell had to wait for the sweeps of the previous cell.
    waited: bool,
    /// Number of clocks for which the line has been clean.
    clean_clocks: u64,
}

impl Given {
    fn new(config: LineConfig) -> Self {
        Self {
            line: VerilatedLine::new(config),
            model: Model::new(config),
            found: Vec::new(),
            expected: Vec::new(),
            paces: Paces::default(),
            sweeping: None,
            waited: false,
            clean_clocks: 0,
        }
    }

    /// Returns the number of clocks that it took.
    fn give(&mut self, steps: &[Step]) -> Result<u64, String> {
        let before = self.line.clocks();
        let given = self.line.try_give(steps, &mut self.found);
        given.map_err(|stopped: Stopped| stopped.to_string())?;
        Ok(self.line.clocks() - before)
    }

    fn idle(&mut self, clocks: usize) -> Result<(), String> {
        self.give(&vec![Step::Idle; clocks]).map(|_| ())
    }

    /// Begins a cell. If it waits for the sweeps of the previous cell, which then take every place,
    /// it is counted nowhere until the line is clean.
    fn begin(&mut self, start_ns: u64) -> Result<(), String> {
        self.model.give(&[Step::Cell(start_ns)], &mut self.expected);
        let clocks = self.give(&[Step::Cell(start_ns)])?;
        self.waited = self.sweeping.is_some();
        self.sweeping = Some(Pace { clocks, packets: 0 });
        self.clean_clocks = 0;
        Ok(())
    }

    fn step(&mut self, step: Step) -> Result<(), String> {
        self.model.give(&[step], &mut self.expected);
        let clocks = self.give(&[step])?;
        let packets = u64::from(matches!(step, Step::Packet(_)));
        let add = |pace: &mut Pace| {
            pace.clocks += clocks;
            pace.packets += packets;
        };
        let Some(pace) = &mut self.sweeping else {
            add(&mut self.paces.clean);
            return Ok(());
        };
        if self.waited && pace.packets == 0 {
            // The cell has begun when its first packet is taken.
            pace.packets = packets;
            return Ok(());
        }
        add(pace);
        // All stages learn of the cell within the latency of the line.
        let told = pace.clocks > self.line.latency() as u64;
        self.clean_clocks = match told && self.line.is_clean() {
            true => self.clean_clocks + clocks,
            false => 0,
        };
        if self.clean_clocks >= TURN_CLOCKS {
            if !self.waited {
                self.paces.sweeping.clocks += pace.clocks;
                self.paces.sweeping.packets += pace.packets;
                self.paces.sweeps += 1;
            }
            self.sweeping = None;
        }
        Ok(())
    }
}

#[test]
fn sweeps_in_the_background_leave_most_clocks_to_keys() {
    for (build, stages, buckets, flows, cell_ns, packets) in [
        (Build::V4, 4, 16, 3_000, 10_000_000, 600_000),
        (Build::V6, 4, 4, 800, 3_000_000, 200_000),
        (Build::V4, 1, 16, 800, 3_000_000, 200_000),
        (Build::DIRECT, 1, 256, 800, 3_000_000, 200_000),
    ] {
        let run = Background {
            build,
            ..Background::new(Size { stages, buckets }, flows, cell_ns, packets)
        };
        let paces = run.compare();
        let paces = paces.unwrap_or_else(|error| panic!("{run:?}: {error}"));
        let (sweeping, clean) = (paces.sweeping.keys_a_clock(), paces.clean.keys_a_clock());
        eprintln!(
            "{}, {stages} x {buckets} buckets: {sweeping:.4} keys a clock in {} sweeps of {} clocks, \
             {clean:.4} otherwise",
            build.name,
            paces.sweeps,
            paces.sweeping.clocks / paces.sweeps.max(1)
        );
        assert!(paces.sweeps >= 2, "{run:?}: {paces:?}");
        assert!(sweeping >= 0.94, "{run:?}: {paces:?}");
        assert_eq!(paces.clean.packets, paces.clean.clocks, "{run:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    /// Any build, any part of it in use, and any mix, with and without late packets, in cells that
    /// are swept in the background and in cells that are too short for that.
    #[test]
    fn totals_and_order_are_exact_whatever_is_swept(
        (kind, stage_bits, bucket_bits) in (0_usize..3, 0_u32..3, 0_u32..5),
        (mix, load, cell_bits) in (0_usize..4, 1_u64..30, 13_u32..19),
        (strange, idle, sweep_every) in (any::<bool>(), 0_u64..5, 1_u16..100),
    ) {
        let build = [Build::V4, Build::V6, Build::DIRECT][kind];
        let size = Size {
            stages: (1 << stage_bits).min(build.size().stages),
            buckets: 1 << bucket_bits,
        };
        let run = Background {
            build,
            mix: [Mix::Uniform, Mix::Zipf, Mix::Trains, Mix::Alternating][mix],
            strange,
            sweep_every,
            // With 1, no place would have a packet.
            idle: if idle == 1 { 0 } else { idle },
            ..Background::new(
                size,
                (u64::from(build.slots(size)) * load / 10).max(2),
                1 << cell_bits,
                5_000,
            )
        };
        let paces = run.compare();
        prop_assert!(paces.is_ok(), "{:?}: {:?}", run, paces);
        let paces = paces.unwrap_or_default();
        if !strange && run.idle == 0 {
            let (every, sweeping) = (u64::from(sweep_every), paces.sweeping);
            let turns = TURN_CLOCKS * paces.sweeps;
            let least = (sweeping.clocks.saturating_sub(turns)) * every / (every + SWEEP_CLOCKS);
            prop_assert!(sweeping.packets >= least, "{:?}: {:?}", run, paces);
            prop_assert_eq!(paces.clean.packets, paces.clean.clocks, "{:?}", run);
        }
    }
}
