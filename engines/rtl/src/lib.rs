// SPDX-License-Identifier: Apache-2.0
//! The FPGA engine: SAPTM's line of stages in SystemVerilog (`rtl/`), a model of the line, and
//! the simulated line as an engine.
//!
//! A [`Line`] takes a packet in every clock, and returns the records that packets displace.
//! [`Model`] is a line in the simplest possible code. With the feature `rtl`, `VerilatedLine` is
//! the SystemVerilog itself, translated by Verilator; `RtlEngines` meters packets with it. Both
//! return the same records in the same order. `VerilatedMeter` is a line with its egress and
//! registers, as on a card: messages of the wire form leave it. `VerilatedParser` is the part of a
//! card before the meter: it turns frames into packets. `VerilatedCard` combines both, in the box
//! of a shell.
//!
//! `docs/fpga.md` describes the design.

#[cfg(feature = "rtl")]
mod body;
#[allow(
    unreachable_pub,
    dead_code,
    reason = "the build script reads the same file, and translates all lines"
)]
mod built;
#[cfg(feature = "rtl")]
mod card;
mod engine;
mod fields;
#[cfg(feature = "rtl")]
mod frames;
mod hash;
mod line;
#[cfg(feature = "rtl")]
mod meter;
mod model;
mod package;
#[cfg(feature = "rtl")]
mod parser;
mod size;
mod spread;
#[cfg(feature = "rtl")]
mod verilated;

#[cfg(feature = "rtl")]
pub use card::{CardCounters, HostPacket, Shell, VerilatedCard};
#[cfg(feature = "rtl")]
pub use engine::RtlEngines;
pub use engine::{ABILITIES, LineEngine, ModelEngines};
#[cfg(feature = "rtl")]
pub use frames::{Damage, GivenFrame, Handed};
pub use hash::{Place, SEED_WORDS, Toeplitz};
pub use line::{Arrival, Key, Left, Line, Step, Why, key_bits};
#[cfg(feature = "rtl")]
pub use meter::{Counter, VerilatedMeter};
pub use model::Model;
pub use package::{PackageError, Unsupported, check_layout, record_package};
#[cfg(feature = "rtl")]
pub use parser::{Pace, Parsed, Verdict, VerilatedParser};
pub use size::{
    Build, HASH_CLOCKS, InvalidSize, LineConfig, SPREAD_CLOCKS, STAGE_CLOCKS, Size, line_clocks,
};
#[cfg(feature = "rtl")]
pub use verilated::{Stopped, VerilatedLine};
