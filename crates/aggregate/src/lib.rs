// SPDX-License-Identifier: Apache-2.0
//! The flow cache: merges the microflow records of any engine into exact flow records, and decides
//! when each flow ends.
//!
//! The crate depends on no engine, packet, clock or output. Microflow records and the time are
//! passed in, and flow records leave through an [`ExportSink`].

mod cache;
mod flow_table;
mod homes;
mod memory;
mod merge;
mod reach;
mod region;
mod tags;
mod timeouts;

pub use cache::{CacheConfig, CacheCounters, ExportSink, FlowCache};
pub use memory::{has_room, share_heap};
#[doc(hidden)]
pub use reach::Way;
pub use timeouts::{Cell, Timeouts};
