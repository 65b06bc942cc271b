// SPDX-License-Identifier: Apache-2.0
//! Runs programs on single frames, without a network (`BPF_PROG_TEST_RUN`): for tests and
//! measurements.

use std::sync::Arc;

use libbpf_rs::libbpf_sys::BPF_F_TEST_XDP_LIVE_FRAMES;
use libbpf_rs::{MapCore, MapFlags, Object, ProgramInput};

use crate::KernelError;
use crate::TestedProgram;
use crate::layout::words;
use crate::object::{PLANNED_NAME, PROGRAM_NAME, map};

/// Size of `struct outcome` in `bpf/layout.h`.
const OUTCOME_BYTES: usize = 56;

/// Number of counted return values of a program: those of XDP, and spare ones.
const RETURNED: usize = 8;

/// The result of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TestRun {
    /// The program's verdict: 2 is `XDP_PASS`.
    pub verdict: u32,
    /// Mean nanoseconds per repetition.
    pub duration_ns: u64,
}

/// Runs the programs of an engine.
#[derive(Clone)]
pub struct Tester {
    object: Arc<Object>,
    has_plan: bool,
}

impl Tester {
    pub(crate) const fn new(object: Arc<Object>, has_plan: bool) -> Self {
        Self { object, has_plan }
    }

    /// Runs a program `repeat` times on a frame, on the current CPU.
    ///
    /// # Errors
    /// Where the kernel refuses the frame, for example if it is shorter than an Ethernet header.
    pub fn run(
        &self,
        program: TestedProgram,
        frame: &[u8],
        repeat: u32,
    ) -> Result<TestRun, KernelError> {
        let flags = match program {
            TestedProgram::Send => BPF_F_TEST_XDP_LIVE_FRAMES,
            _ => 0,
        };
        let input = ProgramInput {
            data_in: Some(frame),
            repeat,
            flags,
            ..Default::default()
        };
        let name = program.name(self.has_plan);
        let program = self
            .object
            .progs_mut()
            .find(|program| program.name() == name)
            .ok_or(KernelError::Incomplete { name })?;
        let output = program
            .test_run(input)
            .map_err(KernelError::refused("run its program on a frame"))?;
        Ok(TestRun {
            verdict: output.return_value,
            duration_ns: u64::try_from(output.duration.as_nanos()).unwrap_or(u64::MAX),
        })
    }

    /// How often [`TestedProgram::FireCounted`] and [`TestedProgram::Sink`] returned each verdict,
    /// over all CPUs.
    ///
    /// # Errors
    /// Where the kernel does not return it.
    pub fn returned(&self) -> Result<[u64; RETURNED], KernelError> {
        let map = map(&self.object, "returned")?;
        let mut counts = [0; RETURNED];
        for (verdict, count) in (0u32..).zip(&mut counts) {
            let cpus = map
                .lookup_percpu(&verdict.to_ne_bytes(), MapFlags::ANY)
                .map_err(KernelError::refused("read what its program returned"))?;
            *count = cpus.iter().flatten().flat_map(|cpu| words(cpu)).sum();
        }
        Ok(counts)
    }

    /// The result of [`TestedProgram::Parse`] for the last frame: the bytes of `struct outcome` in
    /// `bpf/layout.h`.
    ///
    /// # Errors
    /// Where the kernel does not return it.
    pub fn parsed(&self) -> Result<[u8; OUTCOME_BYTES], KernelError> {
        map(&self.object, "parsed")?
            .lookup(&0u32.to_ne_bytes(), MapFlags::ANY)
            .map_err(KernelError::refused("read what it parsed"))?
            .and_then(|bytes| bytes.try_into().ok())
            .ok_or(KernelError::Incomplete { name: "parsed" })
    }
}

impl TestedProgram {
    pub(crate) const fn name(self, has_plan: bool) -> &'static str {
        match self {
            Self::Microflows | Self::Fire if has_plan => PLANNED_NAME,
            Self::Microflows => PROGRAM_NAME,
            Self::Parse => "parse",
            Self::Pass => "pass",
            Self::ClockOnly => "clock_only",
            Self::SpreadOnly => "spread_only",
            Self::Fire => "fire",
            Self::FireCounted => "fire_counted",
            Self::RedirectOnly | Self::Send => "send",
            Self::Sink => "sink",
            Self::RedirectAlone => "redirect_alone",
        }
    }
}
