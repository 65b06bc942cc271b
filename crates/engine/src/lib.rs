// SPDX-License-Identifier: Apache-2.0
//! The interface of all engines. The code behind it (aggregator, drivers, outputs) does not depend
//! on which engine is used.
//!
//! There are two kinds. A [`PacketEngine`] runs in this process and is given packets. A
//! [`RemoteEngine`] runs somewhere else (in a kernel, a switch, an FPGA, on another host) and hands
//! over batches of microflow records. Both declare what they support ([`Abilities`]) and use one
//! set of counters ([`EngineCounters`]).
//!
//! ```text
//!              in this process                            elsewhere
//! packets ─▶ PacketEngine::observe                packets ─▶ RemoteEngine
//!                  │ evicted                                    │ collect
//!                  ▼                                            ▼
//!        [MicroflowRecord<K, N>]                         MicroflowBatch, watermark
//!                  └───────────────▶ aggregator ◀───────────────┘
//! ```
//!
//! `docs/engines.md` says how a new engine is added.
//!
//! [`wire`] is the format in which microflow records are sent between hosts.

mod abilities;
mod batch;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod counters;
mod error;
mod own_count;
mod packet_engine;
mod plain_engines;
mod port;
mod remote_engine;
mod rows;
mod shape;
mod short_flow;
pub mod wire;

pub use abilities::{Abilities, Demands, KeyAbility, Lacking};
pub use batch::{BatchSums, MicroflowBatch};
pub use counters::{EngineCounters, Evicted};
pub use error::EngineError;
pub use own_count::OwnCount;
pub use packet_engine::{EvictAll, PacketEngine, PacketEngines};
pub use plain_engines::{BoxedEngine, PlainEngines};
pub use port::{Port, PortCounters, PortState};
pub use remote_engine::{Collected, EngineEvent, RemoteEngine, UnparsedFrame};
pub use rows::PlainRows;
pub use shape::{BASE_WORDS, FIRST_NS_AT, RecordShape, record_of_words};
pub use short_flow::ShortFlow;
