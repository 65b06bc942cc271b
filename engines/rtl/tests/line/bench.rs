// SPDX-License-Identifier: Apache-2.0
//! Gives the same steps to a line and its model, and compares the records that leave, one by one.

use std::fmt;

use turboflow_engine_rtl::{Build, Left, Line, LineConfig, Model, Size, Step, VerilatedLine, Why};
use turboflow_merge::KeyHasher;

use crate::traffic::{Random, Shape, Traffic};

/// A difference, or the reason why the line stopped.
pub(crate) struct Difference(String);

impl fmt::Debug for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A run of the bench.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) build: Build,
    pub(crate) size: Size,
    pub(crate) ends_cut: bool,
    pub(crate) fault: u32,
    pub(crate) shape: Shape,
    pub(crate) packets: u64,
    /// Flows only use this many entries, the first ones; 0: any entries.
    pub(crate) entries: u32,
    /// One of this many places is without a packet; 0: none.
    pub(crate) idle: u64,
    pub(crate) seed: u64,
}

/// The results of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ran {
    pub(crate) displaced: usize,
    pub(crate) swept: usize,
}

impl Run {
    pub(crate) fn config(&self) -> LineConfig {
        LineConfig {
            ends_cut: self.ends_cut,
            fault: self.fault,
            ..LineConfig::new(self.build, self.size, KeyHasher::new(self.seed))
        }
    }

    /// Runs both. Cells end as with the wall: everything leaves before the next packet comes.
    pub(crate) fn compare(&self) -> Result<Ran, Difference> {
        let config = self.config();
        let mut both = Both {
            line: VerilatedLine::new(config),
            model: Model::new(config),
            found: Vec::new(),
            expected: Vec::new(),
            inside: 0,
            ran: Ran::default(),
        };
        let mut traffic = Traffic::new(self.shape, self.seed);
        if self.entries > 0 {
            let hash = config.hash();
            traffic.flows_with(|key| hash.place(key).entry < self.entries);
        }
        let mut random = Random(self.seed);
        let mut cell_ns = None;
        let mut steps = Vec::new();
        for _ in 0..self.packets {
            let packet = traffic.packet();
            if cell_ns != Some(traffic.cell_ns()) {
                cell_ns = Some(traffic.cell_ns());
                both.give(&mut steps)?;
                both.begin(traffic.cell_ns())?;
            }
            while self.idle > 0 && random.one_in(self.idle) {
                steps.push(Step::Idle);
            }
            steps.push(Step::Packet(packet));
            if steps.len() >= 4_096 {
                both.give(&mut steps)?;
            }
        }
        both.give(&mut steps)?;
        both.begin(u64::MAX >> 1)?;
        Ok(both.ran)
    }
}

struct Both {
    line: VerilatedLine,
    model: Model,
    found: Vec<Left>,
    expected: Vec<Left>,
    /// Number of packets in the line.
    inside: u64,
    ran: Ran,
}

impl Both {
    fn give(&mut self, steps: &mut Vec<Step>) -> Result<(), Difference> {
        let packets = steps.iter().filter(|step| matches!(step, Step::Packet(_)));
        self.inside += packets.count() as u64;
        self.model.give(steps, &mut self.expected);
        self.step(steps)?;
        steps.clear();
        Ok(())
    }

    fn step(&mut self, steps: &[Step]) -> Result<(), Difference> {
        let before = self.found.len();
        let given = self.line.try_give(steps, &mut self.found);
        given.map_err(|stopped| Difference(stopped.to_string()))?;
        let packets = self.found[before..].iter().map(|left| left.base.packets);
        self.inside = self.inside.wrapping_sub(packets.sum());
        Ok(())
    }

    /// Begins a cell, and waits until all records of the previous one have left.
    fn begin(&mut self, start_ns: u64) -> Result<(), Difference> {
        let cell = [Step::Cell(start_ns)];
        self.model.give(&cell, &mut self.expected);
        self.step(&cell)?;
        let mut waited = 0;
        // A few more, until all stages know that the line is clean.
        while self.inside > 0 || waited < 128 {
            if waited > 400_000 {
                return Err(Difference(format!("{} packets stay inside", self.inside)));
            }
            self.step(&[Step::Idle; 16])?;
            waited += 16;
        }
        self.compare()
    }

    /// Displaced records must be equal one by one; swept records must be equal as a set.
    fn compare(&mut self) -> Result<(), Difference> {
        let [mut found, mut expected] = [&mut self.found, &mut self.expected].map(|all| {
            all.drain(..)
                .partition::<Vec<Left>, _>(|left| left.why != Why::Age)
        });
        let displaced = (&found.0, &expected.0);
        if displaced.0 != displaced.1 {
            let at = displaced
                .0
                .iter()
                .zip(displaced.1)
                .position(|(a, b)| a != b);
            let at = at.unwrap_or(displaced.0.len().min(displaced.1.len()));
            return Err(Difference(format!(
                "displaced record {at} is {:?}, not {:?}",
                displaced.0.get(at),
                displaced.1.get(at)
            )));
        }
        self.ran.displaced += found.0.len();
        self.ran.swept += found.1.len();
        for swept in [&mut found.1, &mut expected.1] {
            swept.sort_by_key(|left| (left.key, left.base.words()));
        }
        match found.1 == expected.1 {
            true => Ok(()),
            false => Err(Difference(format!(
                "{} records were swept, not {}, or others",
                found.1.len(),
                expected.1.len()
            ))),
        }
    }
}
