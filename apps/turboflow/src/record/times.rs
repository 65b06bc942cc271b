// SPDX-License-Identifier: Apache-2.0
//! The report on times at the end of a run: times that no record can hold, and a clock that was set
//! back.

use turboflow_run::units::time_text;
use turboflow_run::{Ledger, PipelineConfig, RunConfig};

use crate::log::say;
use crate::units::counted;

/// Whose clock gave the packets of a run their times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClockOf {
    ThisMachine,
    Captures,
    Senders,
}

impl ClockOf {
    pub(super) fn of(run: &RunConfig) -> Self {
        match run.source.files.is_empty() {
            false => Self::Captures,
            true if run.is_live() => Self::ThisMachine,
            true => Self::Senders,
        }
    }
}

/// Logs what was wrong with the times of packets, and the remedy.
pub(super) fn say_wrong_times(ledger: &Ledger, config: &PipelineConfig, clock: ClockOf) {
    if ledger.packets_time_clamped > 0 {
        say!(Error TimesClamped, packets = ledger.packets_time_clamped;
            "{} had times before 1970 or after 2554, which records cannot hold, and were recorded \
             at the limit. The capture may state a wrong unit or offset for its times \
             (if_tsresol, if_tsoffset)",
            counted(ledger.packets_time_clamped, "packet"),
        );
    }
    if ledger.clock_steps > 0 {
        let idle = config.timeouts.idle_ns.map_or_else(String::new, |idle_ns| {
            format!(" by more than {}, the idle timeout", time_text(idle_ns))
        });
        let remedy = match clock {
            ClockOf::ThisMachine => "Find out what sets the clock of this machine",
            ClockOf::Senders => "Find out what sets the clocks of the senders",
            ClockOf::Captures => {
                "Sort packets by time first: `reordercap IN OUT`. Merge several captures of one \
                 period: `mergecap -w OUT FILES`. If two taps have different clocks, `editcap -t` \
                 shifts one"
            }
        };
        say!(Warning ClockSetBack, times = ledger.clock_steps;
            "the clock was set back {}{idle}: all open flows were exported each time, so flows are \
             cut. {remedy}",
            counted(ledger.clock_steps, "time"),
        );
    }
}
