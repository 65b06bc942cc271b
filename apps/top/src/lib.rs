// SPDX-License-Identifier: Apache-2.0
//! The screen of `turboflow top`: rates of flows, hosts and protocols, and the state of the meter.
//!
//! ```text
//! flow records ─▶ Traffic (bins) ─▶ Picture (rows) ─▶ Screen (view, sort, filter) ─▶ draw ─▶ Buffer
//!      ledger ─▶ Health ──────────────────────────────────────────────────────────────┘
//! ```
//!
//! The records come from a meter whose active timeout is one bin ([`BIN_NS`]). So every open flow
//! exports its traffic twice a second: rates are exact, and the hot path needs no extra work. This
//! crate reads no clock and no terminal. Times are those of packets, keys are a [`Key`], and a
//! screen is drawn into cells of text.

mod applications;
mod bins;
mod bounded;
mod draw;
mod filter;
mod health;
mod picture;
mod screen;
mod sink;
mod traffic;

pub use applications::{APPLICATIONS_MAX, ApplicationId};
pub use bins::{AVERAGE_BINS, BIN_NS, BINS_A_SECOND, Measured, PerSecond, Sums, Window};
pub use draw::{Colours, draw, lines};
pub use filter::FlowFilter;
pub use health::{Health, InterfaceHealth, Moment};
pub use picture::{ApplicationRow, FlowRow, HostRow, Left, Picture, ShareRow};
pub use screen::{Key, Screen, Sort, Source, View};
pub use sink::TrafficWriter;
pub use traffic::{FLOWS_MAX, FlowKey, HOSTS_MAX, PORTS_MAX, Traffic};
