// SPDX-License-Identifier: Apache-2.0
//! The evaluation of the TurboFlow paper, and of claims in the offload paper and in papers on
//! sketches: `make evaluation`.
//!
//! Every part is measured in its own process. So a failing part does not affect the others, and
//! each starts with fresh memory. Results are stored line by line, and an interrupted run can be
//! resumed.

mod facts;
mod machine;
mod parts;
mod redis;
mod report;
mod results;
mod run;
mod saptm;

use std::io::Write;

pub use parts::Scale;
pub use results::results;
pub use run::{RunOptions, redraw, run};

/// Measures one part, and writes each fact at once, one JSON object per line.
///
/// # Errors
/// If no part has that name, the part cannot be measured, or `out` cannot be written.
pub fn measure(part: &str, scale: &Scale, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut broken = None;
    (parts::part(part)?.measure)(scale, &mut |fact| {
        let line = serde_json::to_string(&fact).expect("names and numbers are JSON");
        // The reader processes each line as soon as it is complete.
        let written = writeln!(out, "{line}").and_then(|()| out.flush());
        broken = written.err().or(broken.take());
    })?;
    broken.map_or(Ok(()), |error| Err(error.into()))
}
