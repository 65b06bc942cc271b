// SPDX-License-Identifier: Apache-2.0
//! Plans the metering of links before anything is bought: the worst case of microflow records,
//! table memory, aggregator cores, bandwidth, capacity, cost and power.
//!
//! ```text
//!  packets (hash, time) ─▶ Simulation ─▶ Measured ─┐
//!                                                  ├─▶ Question ─▶ Plan
//!  stated rates, flow records ────────▶ Traffic ───┘      ▲
//!                                            Assumptions ─┘
//! ```
//!
//! The model is the paper's (TurboFlow, sections 5.4 and 6.4 to 6.7); [`paper`] computes the
//! paper's tables with it. [`offload`] adds a table of flows in a card or in the kernel, after
//! which only the first packets of a flow reach the host. The simulation takes hashes and times
//! only: its caller reads captures or interfaces. No I/O, no clock, no thread.

mod assumption;
mod capacity;
mod cost;
mod curve;
mod impossible;
mod measured;
pub mod offload;
pub mod paper;
mod question;
mod recorded;
mod simulation;
mod traffic;
mod worst_case;

pub use assumption::{Assumed, Assumption, Assumptions};
pub use capacity::{Limit, Machine, links_carried};
pub use cost::{Cost, MonitoringCost, Server, WorkloadRate, cost_per_terabit};
pub use curve::ShareCurve;
pub use impossible::Impossible;
pub use measured::{Interval, Ipv6, Measured, MeasuredTable};
pub use question::{Capacity, Export, Need, Plan, Question, TableRow, Target};
pub use recorded::{PlannedTraffic, Recorded, RecordedFlow, Recording, Step, TooMany};
pub use simulation::{MAX_INTERVALS, MAX_TABLES, Observed, Simulation, SimulationConfig};
pub use traffic::Traffic;
pub use worst_case::{
    MAX_SLOTS, eviction_probability, slots_for_probability, slots_for_rate,
    worst_case_microflows_per_second,
};
