// SPDX-License-Identifier: Apache-2.0
//! Packets with in-band telemetry whose values are known: INT-MD, INT reports and IOAM on the wire,
//! and a network with faults.
//!
//! ```
//! use turboflow_workload::telemetry::{Network, NetworkConfig};
//! use turboflow_workload::traffic::FrameBuffer;
//!
//! let mut network = Network::new(&NetworkConfig::default())?;
//! let deepest = network.flows().iter().map(|flow| flow.max_queue_depth).max();
//! assert_eq!(deepest, Some(220));
//! let mut frames = FrameBuffer::default();
//! assert_eq!(network.fill(&mut frames, 10), 10);
//! # Ok::<(), turboflow_workload::workloads::WorkloadError>(())
//! ```

mod network;
mod packet;
mod troubles;

pub use network::{MeasuredFlow, Network, NetworkConfig};
pub use packet::{Carrier, Hop, INT_DSCP, INT_PORT, Measured, REPORT_PORT};
