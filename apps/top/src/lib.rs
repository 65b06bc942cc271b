// SPDX-License-Identifier: Apache-2.0
//! What `turboflow top` shows: rates of flows, hosts and protocols, and how the meter is.
//!
//! ```text
//! flow records ─▶ Traffic (bins) ─▶ Picture (rows) ─▶ Screen (view, sort, filter) ─▶ draw ─▶ Buffer
//!      ledger ─▶ Health ──────────────────────────────────────────────────────────────┘
//! ```
//!
//! Records come from metering with an active timeout of one bin ([`BIN_NS`]), so that every flow
//! says twice a second what passed since: exact rates of open flows, and nothing new on the hot
//! path. Nothing here reads a clock or a terminal: times are those of packets, keys are a [`Key`],
//! and a screen is drawn into cells of text.

mod bins;
mod bounded;
mod draw;
mod filter;
mod health;
mod picture;
mod screen;
mod sink;
mod traffic;

pub use bins::{AVERAGE_BINS, BIN_NS, BINS_A_SECOND, Measured, PerSecond, Sums, Window};
pub use draw::{Colours, draw, lines};
pub use filter::FlowFilter;
pub use health::{Health, InterfaceHealth, Moment};
pub use picture::{FlowRow, HostRow, Left, Picture, ShareRow};
pub use screen::{Key, Screen, Sort, Source, View};
pub use sink::TrafficWriter;
pub use traffic::{FLOWS_MAX, FlowKey, HOSTS_MAX, PORTS_MAX, Traffic};
