// SPDX-License-Identifier: Apache-2.0
//! The table in the Linux kernel. The microflow table beside it counts the packets.

mod engine;
mod own_counts;
mod table;
mod thread;

pub use engine::OffloadEngine;
pub use table::KernelTable;
