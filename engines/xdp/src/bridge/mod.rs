// SPDX-License-Identifier: Apache-2.0
//! A bridge of two ports over the table of verdicts: `bpf/bridge.h`. Frames go from one port to the
//! other without user space, which reads counters and writes verdicts.

mod config;
mod counters;
mod pins;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use libbpf_rs::{MapCore, MapFlags, Object};

use crate::memory::SharedMemory;
use crate::object::{map, shared_memory};
use crate::{KernelEngine, KernelError};

pub use config::{BridgeAction, BridgeConfig};
pub use counters::{BridgePortCounters, RuleCount};

pub(crate) use config::JudgedWords;

/// Programs that count what became of redirected frames.
pub(crate) const FATES: [&str; 2] = ["note_sent", "note_refused"];

/// What becomes of packets without a verdict, while the bridge runs. Its clones are of one bridge.
#[derive(Clone)]
pub struct BridgeActions {
    memory: Arc<SharedMemory>,
}

impl BridgeActions {
    /// Packets that come from now on are treated so: those of TCP and UDP flows, and all other
    /// frames.
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

/// A bridge that was loaded.
pub(crate) struct Bridge {
    actions: BridgeActions,
    /// Closing them detaches the programs that count what became of frames.
    _fates: Vec<libbpf_rs::Link>,
}

impl Bridge {
    /// Connects the ports, and begins to count. No frame comes before the program is attached.
    pub(crate) fn open(
        object: &Object,
        config: &BridgeConfig,
        ports: &[u32],
    ) -> Result<Self, KernelError> {
        let actions = BridgeActions {
            memory: Arc::new(shared_memory(object, ".data.bridge")?),
        };
        actions.set(config.undecided, config.other);
        let other_ports = map(object, "bridge_ports")?;
        // What comes in at the first leaves by the second, and the other way round.
        for (place, port) in (0u32..).zip(ports.iter().rev()) {
            other_ports
                .update(&place.to_ne_bytes(), &port.to_ne_bytes(), MapFlags::ANY)
                .map_err(KernelError::refused("connect the ports of its bridge"))?;
        }
        let fates = FATES.map(|name| {
            let program = object.progs_mut().find(|program| program.name() == name);
            let program = program.ok_or(KernelError::Incomplete { name })?;
            program
                .attach_trace()
                .map_err(KernelError::refused("count what becomes of frames"))
        });
        Ok(Self {
            actions,
            _fates: fates.into_iter().collect::<Result<_, _>>()?,
        })
    }
}

impl KernelEngine {
    /// What becomes of packets without a verdict; `None` if this is no bridge.
    #[must_use]
    pub fn bridge_actions(&self) -> Option<BridgeActions> {
        self.bridge.as_ref().map(|bridge| bridge.actions.clone())
    }

    /// What the bridge counted, by the port where frames came in.
    ///
    /// # Errors
    /// Where this is no bridge, or the kernel does not return the counters.
    pub fn bridge_counters(&self) -> Result<[BridgePortCounters; 2], KernelError> {
        let mut ports = counters::read_ports(&self.object)?;
        let received = self.counters()?.packets_received;
        for (port, received) in ports.iter_mut().zip(received) {
            port.received = received;
        }
        Ok(ports)
    }

    /// What each rule did, by its number.
    ///
    /// # Errors
    /// As [`bridge_counters`](Self::bridge_counters).
    pub fn rule_counts(&self) -> Result<Vec<RuleCount>, KernelError> {
        counters::read_rules(&self.object)
    }
}
