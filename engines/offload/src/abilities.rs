// SPDX-License-Identifier: Apache-2.0
//! The abilities of this engine, also available in programs built without it.

use turboflow_engine::Abilities;
use turboflow_record::{Input, InputSet};

/// Those of the engine in the kernel, which counts, except for what only drivers know: its program
/// for that is bound to a device.
pub const ABILITIES: Abilities = Abilities {
    name: "offload",
    inputs: without_driver(turboflow_engine_xdp::INPUTS),
    ..turboflow_engine_xdp::ABILITIES
};

/// Those of the engine between the two ports of a bridge, which also provides what it decides.
pub const BRIDGE_ABILITIES: Abilities = Abilities {
    inputs: ABILITIES.inputs.union(InputSet::DECIDED),
    ..ABILITIES
};

const fn without_driver(inputs: InputSet) -> InputSet {
    inputs.without(InputSet::EMPTY.with(Input::HardwareTimestamp))
}
