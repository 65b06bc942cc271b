// SPDX-License-Identifier: Apache-2.0
//! The engine under test in the conformance suite: with few rows, and with half of the flows
//! dropped. Dropped packets are recorded too.

use turboflow_engine::Abilities;
use turboflow_engine_offload::OffloadEngine;
use turboflow_engine_xdp::{KernelConfig, KernelEngine, KernelError, OffloadConfig, Tester};

pub(crate) use turboflow_engine_xdp::INPUTS;

use crate::run::{DropsHalf, TIMES, offload_config, over};

/// Rows of the table: fewer than flows.
const ROWS: u32 = 16;

pub(crate) type SubjectEngine = OffloadEngine;

pub(crate) const ABILITIES: Abilities = turboflow_engine_offload::ABILITIES;

pub(crate) fn load_subject(config: &KernelConfig) -> Result<SubjectEngine, KernelError> {
    let config = KernelConfig {
        offload: Some(OffloadConfig {
            tap_rows: 64,
            ring_bytes: 1 << 16,
            ..offload_config(ROWS)
        }),
        ..config.clone()
    };
    let kernel = KernelEngine::load(&config)?;
    Ok(over(kernel, &config, Box::new(DropsHalf), TIMES))
}

pub(crate) fn tester_of(engine: &SubjectEngine) -> Tester {
    engine.kernel().tester()
}
