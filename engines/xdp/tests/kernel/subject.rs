// SPDX-License-Identifier: Apache-2.0
//! The engine that the conformance suite runs. Engines that stand on this one have another such
//! file, and run the suite as it is.

use turboflow_engine_xdp::{KernelConfig, KernelEngine, KernelError, Tester};

pub(crate) use turboflow_engine_xdp::{ABILITIES, INPUTS};

pub(crate) type SubjectEngine = KernelEngine;

pub(crate) fn load_subject(config: &KernelConfig) -> Result<SubjectEngine, KernelError> {
    KernelEngine::load(config)
}

pub(crate) fn tester_of(engine: &SubjectEngine) -> Tester {
    engine.tester()
}
