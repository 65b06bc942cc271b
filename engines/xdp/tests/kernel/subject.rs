// SPDX-License-Identifier: Apache-2.0
//! The engine under test in the conformance suite. Engines built on this one replace this file, and
//! reuse the rest of the suite.

use turboflow_engine_xdp::{KernelConfig, KernelEngine, KernelError, Tester};

pub(crate) use turboflow_engine_xdp::{ABILITIES, INPUTS};

pub(crate) type SubjectEngine = KernelEngine;

pub(crate) fn load_subject(config: &KernelConfig) -> Result<SubjectEngine, KernelError> {
    KernelEngine::load(config)
}

pub(crate) fn tester_of(engine: &SubjectEngine) -> Tester {
    engine.tester()
}
