// SPDX-License-Identifier: Apache-2.0
//! The abilities of this engine, also available in programs built without it.

use turboflow_engine::Abilities;
use turboflow_record::{Input, InputSet};

/// The abilities of the engine in the kernel, which counts, but without the inputs that only
/// drivers know: a program with such inputs is bound to a device.
pub const ABILITIES: Abilities = Abilities {
    name: "offload",
    inputs: without_driver(turboflow_engine_xdp::INPUTS),
    ..turboflow_engine_xdp::ABILITIES
};

/// The abilities of the engine between the two ports of a bridge, which also provides its verdicts.
pub const BRIDGE_ABILITIES: Abilities = Abilities {
    inputs: ABILITIES.inputs.union(InputSet::DECIDED),
    ..ABILITIES
};

const fn without_driver(inputs: InputSet) -> InputSet {
    inputs.without(InputSet::EMPTY.with(Input::HardwareTimestamp))
}
