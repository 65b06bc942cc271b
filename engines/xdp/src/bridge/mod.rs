// SPDX-License-Identifier: Apache-2.0
//! A bridge of two ports, based on the table of verdicts: `bpf/bridge.h`. Frames go from one port
//! to the other without user space, which only reads counters and writes verdicts.

pub(crate) mod config;
mod counters;
pub(crate) mod opened;
mod pins;

use std::sync::Arc;

use crate::{KernelEngine, KernelError};

pub use config::{BridgeAction, BridgeConfig};
pub use counters::{BridgePortCounters, RuleCount, RuleCounter};
pub use opened::BridgeActions;

impl KernelEngine {
    /// Sets what happens to packets without a verdict; `None` if this is not a bridge.
    #[must_use]
    pub fn bridge_actions(&self) -> Option<BridgeActions> {
        self.bridge.as_ref().map(|bridge| bridge.actions.clone())
    }

    /// Whether this is a bridge.
    #[must_use]
    pub const fn is_bridge(&self) -> bool {
        self.bridge.is_some()
    }

    /// The counters of the bridge, by the port on which frames were received.
    ///
    /// # Errors
    /// If this is not a bridge, or the kernel does not return the counters.
    pub fn bridge_counters(&self) -> Result<[BridgePortCounters; 2], KernelError> {
        let mut ports = counters::read_ports(&self.object)?;
        let received = self.counters()?.packets_received;
        for (port, received) in ports.iter_mut().zip(received) {
            port.received = received;
        }
        Ok(ports)
    }

    /// Counts packets by rule.
    #[must_use]
    pub fn rule_counter(&self) -> RuleCounter {
        RuleCounter::new(Arc::clone(&self.object))
    }
}
