// SPDX-License-Identifier: Apache-2.0
//! Connects the stages of a run: frames pass through parser, clock, engine and aggregator and
//! become flow records. Every loss on the way is counted.
//!
//! ```text
//!              front (one thread)                    shard (one or more threads)       outputs
//! frames ─▶ parser ─▶ cell clock ─▶ batch a shard ─▶ engine ─▶ flow cache ─▶ columns ─▶ writers
//!              └─▶ counters by reason                                            (one thread)
//! ```
//!
//! [`Meter`] is the pipeline in memory, without files. [`run`] is a whole run: it meters a
//! [`Source`] (capture files, network interfaces or remote engines) and writes the outputs.

mod batch;
mod clock;
mod config;
mod engines;
mod feed;
mod front;
mod inspecting;
mod ledger;
mod merger;
mod meter;
mod outputs;
mod shard;
mod short;
mod snapshots;
mod sources;
mod state_words;
mod stop;
mod tables;
mod threads;
mod watermark;

pub use config::{
    BridgeConfig, ConfigError, Count, CountAboveZero, EngineConfig, Field, FlowConfig, Interval,
    Linger, LogFormat, MeterConfig, MetricsAt, Mtu, OutputConfig, PipelineConfig, Rotation,
    RunConfig, RunSizes, Seed, Separation, ServiceConfig, Size, SnapLength, SourceConfig, Time,
    Timeout, TimeoutsConfig, Window, list, units,
};
pub use inspecting::{InspectedElsewhere, InspectionConfig};
pub use ledger::{
    EtherTypeCount, Imbalance, InspectionCounts, Ledger, ReasonCount, TelemetryCounts,
    TelemetryUnread,
};
pub use meter::{Meter, MeterReport};
pub use outputs::{Output, OutputChange, OutputReport, OutputSnapshot, RunOutputs};
pub use shard::DeliverRecords;
pub use short::ShortFlows;
pub use snapshots::{LiveSnapshot, Snapshots};
pub use sources::{
    Controls, Engines, FileCounters, Files, FilesProgress, Limits, LiveProgress, Pace, PaceClock,
    Progress, RunEvent, RunReport, Source, inspect, run, wall_ns,
};
pub use stop::Stop;
