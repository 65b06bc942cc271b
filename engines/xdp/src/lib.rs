// SPDX-License-Identifier: Apache-2.0
//! The forwarding engine in the kernel: an XDP program keeps the microflow table where packets
//! arrive, and hands only evicted records to user space (TurboFlow, section 4; `docs/engines.md`).
//!
//! This program is for the default record definition. A second program takes any other definition
//! as constants (`bpf/plan.h`).
//!
//! ```text
//!  frame ─▶ parse.h ─▶ table.h: private tables, or one ─▶ ring buffer ─▶ inbox ─┐
//!             └─▶ ledger, by reason   └─▶ ledger: evicted, dropped             ├─▶ MicroflowBatch ─▶ aggregator
//!                         └─ at the end of a cell: the half that was turned from ┘
//! ```
//!
//! The program is C (`bpf/`), compiled if the feature `kernel` is enabled. Without it the crate
//! only contains the engine's abilities.

#[cfg(all(feature = "kernel", not(target_endian = "little")))]
compile_error!("the program writes keys as little-endian words, which only such a machine reads");

mod abilities;
#[cfg(feature = "kernel")]
mod attach;
#[cfg(feature = "kernel")]
mod bridge;
#[cfg(feature = "kernel")]
mod clock;
#[cfg(feature = "kernel")]
mod collect;
#[cfg(feature = "kernel")]
mod config;
#[cfg(feature = "kernel")]
mod counters;
#[cfg(feature = "kernel")]
mod driver;
#[cfg(feature = "kernel")]
mod engine;
#[cfg(feature = "kernel")]
mod error;
#[cfg(feature = "kernel")]
mod grace;
#[cfg(feature = "kernel")]
mod in_use;
#[cfg(feature = "kernel")]
mod inbox;
#[cfg(feature = "kernel")]
mod interface;
#[cfg(feature = "kernel")]
mod layout;
#[cfg(feature = "kernel")]
mod link;
#[cfg(feature = "kernel")]
mod memory;
#[cfg(feature = "kernel")]
mod object;
#[cfg(feature = "kernel")]
mod offload;
#[cfg(feature = "kernel")]
mod offload_config;
#[cfg(feature = "kernel")]
mod plan;
#[cfg(feature = "kernel")]
mod planned;
#[cfg(feature = "kernel")]
mod remote;
#[cfg(feature = "kernel")]
mod ring;
#[cfg(feature = "kernel")]
mod short;
#[cfg(feature = "kernel")]
mod tested;
#[cfg(feature = "kernel")]
mod tested_program;
#[cfg(feature = "kernel")]
mod ticks;
#[cfg(feature = "kernel")]
mod unparsed;

pub use abilities::{ABILITIES, INPUTS};
#[cfg(feature = "kernel")]
pub use {
    attach::XdpMode,
    bridge::{
        BridgeAction, BridgeActions, BridgeConfig, BridgePortCounters, RuleCount, RuleCounter,
    },
    config::{Clock, HandUp, KernelConfig, Tables, Tested},
    counters::KernelCounters,
    driver::DriverKnows,
    engine::KernelEngine,
    error::KernelError,
    interface::interface_index,
    layout::{INTERFACES, KEY_HALVES},
    link::Attachment,
    offload::{
        FlowWords, Offload, OffloadCounters, RowOrder, RowOrderKind, RowResult, Tap, TapKind,
        TapRing, VerdictTable, VerdictTimes,
    },
    offload_config::{MAX_TAP_BYTES, OffloadConfig, TapBudget},
    plan::{check_bridge_layout, check_layout},
    tested::{TestRun, Tester},
    tested_program::TestedProgram,
};
