// SPDX-License-Identifier: Apache-2.0
//! A loaded bridge: its ports are connected, and the fate of frames is counted.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use libbpf_rs::{MapCore, MapFlags, Object};

use crate::bridge::config::{BridgeAction, BridgeConfig};
use crate::config::KernelConfig;
use crate::error::KernelError;
use crate::memory::SharedMemory;
use crate::object::{FATES, map, shared_memory};

/// Sets what happens to packets without a verdict while the bridge runs. Clones act on the same
/// bridge.
#[derive(Clone)]
pub struct BridgeActions {
    memory: Arc<SharedMemory>,
}

impl BridgeActions {
    /// Sets the actions for packets without a verdict that arrive from now on: for those of TCP and
    /// UDP flows, and for all other frames.
    pub fn set(&self, undecided: BridgeAction, other: BridgeAction) {
        for (word, action) in self.memory.words().iter().zip([undecided, other]) {
            word.store(number_of(action), Ordering::Relaxed);
        }
    }
}

/// `enum action` in `bpf/verdict.h`.
const fn number_of(action: BridgeAction) -> u64 {
    match action {
        BridgeAction::Pass => 1,
        BridgeAction::Drop => 2,
    }
}

/// A loaded bridge.
pub(crate) struct Bridge {
    pub(crate) actions: BridgeActions,
    /// The programs that count the fate of redirected frames. Closing these links detaches them.
    _fates: Vec<libbpf_rs::Link>,
}

impl Bridge {
    /// The bridge of a configuration, if it has one.
    pub(crate) fn of(
        config: &KernelConfig,
        object: &Object,
        interfaces: &[(String, u32)],
    ) -> Result<Option<Self>, KernelError> {
        let offload = config.offload.as_ref();
        let Some(bridge) = offload.and_then(|offload| offload.bridge.as_ref()) else {
            return Ok(None);
        };
        let ports: Vec<u32> = interfaces.iter().map(|(_, index)| *index).collect();
        let fates = match config.attached() {
            // A program that is measured in place of the bridge needs no such counts.
            Some(_) => Vec::new(),
            None => count_fates(object)?,
        };
        Self::open(object, bridge, &ports, fates).map(Some)
    }

    /// Connects the ports, and starts counting. Frames redirected by the program that was attached
    /// before this one are not counted (`outstanding` in `bpf/bridge.h`).
    fn open(
        object: &Object,
        config: &BridgeConfig,
        ports: &[u32],
        fates: Vec<libbpf_rs::Link>,
    ) -> Result<Self, KernelError> {
        let actions = BridgeActions {
            memory: Arc::new(shared_memory(object, ".data.bridge")?),
        };
        actions.set(config.undecided, config.other);
        let other_ports = map(object, "bridge_ports")?;
        // Frames received on the first port leave by the second, and vice versa.
        for (place, port) in (0u32..).zip(ports.iter().rev()) {
            other_ports
                .update(&place.to_ne_bytes(), &port.to_ne_bytes(), MapFlags::ANY)
                .map_err(KernelError::refused("connect the ports of its bridge"))?;
        }
        Ok(Self {
            actions,
            _fates: fates,
        })
    }
}

/// Counts the fate of redirected frames from now on.
fn count_fates(object: &Object) -> Result<Vec<libbpf_rs::Link>, KernelError> {
    let fates = FATES.map(|name| {
        let program = object.progs_mut().find(|program| program.name() == name);
        let program = program.ok_or(KernelError::Incomplete { name })?;
        program
            .attach_trace()
            .map_err(KernelError::refused("count what becomes of frames"))
    });
    fates.into_iter().collect()
}
