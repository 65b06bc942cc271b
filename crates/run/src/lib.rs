// SPDX-License-Identifier: Apache-2.0
//! Composes the rooms: frames come in, go through parser, clock, engine and aggregator, and leave
//! as flow records; nothing is lost on the way without being counted.
//!
//! ```text
//!              front (one thread)                    shard (one or more threads)       outputs
//! frames ─▶ parser ─▶ cell clock ─▶ batch a shard ─▶ engine ─▶ flow cache ─▶ columns ─▶ writers
//!              └─▶ counters by reason                                            (one thread)
//! ```
//!
//! [`Meter`] is the part without files and threads of its own; [`record_files`] runs it over capture
//! files, [`replay_files`] does so at their own pace, `record_interfaces` over network interfaces;
//! `record_engines` merges what engines elsewhere hand over.

mod clock;
mod config;
mod feed;
mod files;
mod front;
mod lane;
mod ledger;
#[cfg(target_os = "linux")]
mod live;
#[cfg(target_os = "linux")]
mod merger;
mod meter;
mod outputs;
mod pending;
#[cfg(target_os = "linux")]
mod remote;
mod replay;
mod shard;
mod short;
mod snapshots;
mod threads;

pub use config::{
    ConfigError, Count, CountAboveZero, EngineConfig, Field, FlowConfig, Interval, Linger,
    LogFormat, MeterConfig, MetricsAt, Mtu, OutputConfig, PipelineConfig, Rotation, RunConfig,
    RunSizes, Seed, Separation, ServiceConfig, Size, SnapLength, SourceConfig, Time, Timeout,
    TimeoutsConfig, units,
};
pub use files::{FilesReport, Progress, Stop, record_files};
pub use ledger::{Imbalance, Ledger, ReasonCount};
#[cfg(target_os = "linux")]
pub use live::{LiveEvent, LiveLimits, LiveProgress, LiveReport, record_interfaces, wall_ns};
pub use meter::{DeliverRecords, Meter, MeterReport};
pub use outputs::{LiveOutputs, Output, OutputChange, OutputReport, OutputSnapshot};
#[cfg(target_os = "linux")]
pub use remote::record_engines;
pub use replay::{Pace, ReplayClock, replay_files};
pub use short::ShortFlows;
pub use snapshots::{LiveSnapshot, Snapshots};
