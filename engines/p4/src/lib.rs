// SPDX-License-Identifier: Apache-2.0
//! The P4 engine: microflow records of a programmable switch, or of the same program on a software
//! pipeline (TurboFlow, sections 4 and 5.1).
//!
//! Everything passes through one port of the pipeline, in order: frames to be metered, with their
//! time (`lane.rs`); commands that sweep records out of the table and ask for counters; and reports
//! (`report.rs`). The programs are in `p4/`; `docs/p4.md` describes how to run them.
//!
//! ```text
//! frames ──▶ Replay ─────lane────▶ Port ──▶ pipeline (child process, bmv2)
//!            Live   ───commands──▶  │ ────▶ pipeline with ports of its own (switch, bmv2)
//!              ▲                    │
//!              └──── Receiver ◀─────┘ reports: records, status, frames it does not understand
//! ```

mod abilities;
mod chip;
mod clock;
mod error;
mod frame_stream;
mod lane;
mod link;
mod live;
mod port;
mod program;
mod punted;
mod receiver;
mod record;
mod replay;
mod report;
mod sequence;
mod sources;
mod swx;

pub use abilities::ABILITIES;
pub use error::P4Error;
pub use live::{LIVE_CELL_NS, Live, LiveConfig};
pub use port::Port;
pub use program::{PROGRAMS, Program};
pub use receiver::StrangeFrames;
pub use record::{P4Feature, P4Op, P4Record, Unsupported};
pub use replay::{Came, Frames, Replay, ReplayConfig};
pub use sources::SOURCES;
pub use swx::SwxPort;
