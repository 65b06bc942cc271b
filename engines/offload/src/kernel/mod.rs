// SPDX-License-Identifier: Apache-2.0
//! The table in the Linux kernel, beside the microflow table that counts.

mod engine;
mod own_counts;
mod table;
mod thread;

pub use engine::OffloadEngine;
pub use table::KernelTable;
