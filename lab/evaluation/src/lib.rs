// SPDX-License-Identifier: Apache-2.0
//! The evaluation of the TurboFlow paper, and what the offload paper and the sketches' papers
//! claim, run again: `make evaluation`.
//!
//! Every part is measured in a process of its own, so that one that fails does not take the others
//! with it and leaves no memory behind. What is measured is kept line by line; a run that was
//! interrupted goes on where it stopped.

mod facts;
mod machine;
mod parts;
mod redis;
mod report;
mod results;
mod run;

use std::io::Write;

pub use parts::Scale;
pub use results::results;
pub use run::{RunOptions, redraw, run};

/// Measures one part and writes each of its facts as it is there, a JSON object a line.
///
/// # Errors
/// When there is no part of that name, it cannot be measured, or `out` takes no more.
pub fn measure(part: &str, scale: &Scale, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut broken = None;
    (parts::part(part)?.measure)(scale, &mut |fact| {
        let line = serde_json::to_string(&fact).expect("names and numbers are JSON");
        // The reader takes each line when it is there.
        let written = writeln!(out, "{line}").and_then(|()| out.flush());
        broken = written.err().or(broken.take());
    })?;
    broken.map_or(Ok(()), |error| Err(error.into()))
}
