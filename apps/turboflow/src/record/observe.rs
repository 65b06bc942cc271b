// SPDX-License-Identifier: Apache-2.0
//! Reports events of a run to the person at the terminal and to the service manager.

use turboflow_engine::PortState;
use turboflow_run::{CountAboveZero, Limits, RunConfig, RunEvent, Time};

use super::progress::ProgressBar;
use super::unparsed::UnparsedFile;
use crate::log::say;
#[cfg(target_os = "linux")]
use crate::systemd::Heartbeat;

/// Handles the events of a run.
pub(super) struct Observer<'a> {
    bar: &'a mut ProgressBar,
    /// `None` in runs over files, which are no services.
    #[cfg(target_os = "linux")]
    heartbeat: Option<Heartbeat>,
    unparsed: Option<UnparsedFile>,
}

impl<'a> Observer<'a> {
    pub(super) fn new(
        bar: &'a mut ProgressBar,
        is_live: bool,
        unparsed: Option<UnparsedFile>,
    ) -> Self {
        #[cfg(not(target_os = "linux"))]
        let _ = is_live;
        Self {
            bar,
            #[cfg(target_os = "linux")]
            heartbeat: is_live.then(Heartbeat::start),
            unparsed,
        }
    }

    pub(super) fn observe(&mut self, event: RunEvent<'_>) {
        match event {
            RunEvent::Progress(progress) => {
                #[cfg(target_os = "linux")]
                if let Some(heartbeat) = &mut self.heartbeat {
                    heartbeat.beat();
                }
                self.bar.draw(&progress);
            }
            RunEvent::Changed(name, state) => {
                self.bar.clear();
                say_change(name, state);
            }
            RunEvent::Failed(error) => {
                self.bar.clear();
                say!(Error EngineFailed; "{error}; the run continues without it");
            }
            RunEvent::Unparsed(frame) => {
                if let Some(file) = &mut self.unparsed {
                    file.write(&frame);
                }
            }
        }
    }

    /// Returns the file for frames that are not packets.
    pub(super) fn finish(self) -> Option<UnparsedFile> {
        self.unparsed
    }
}

pub(super) const fn limits(run: &RunConfig) -> Limits {
    Limits {
        duration: match run.source.duration {
            Some(Time(duration)) => Some(duration),
            None => None,
        },
        packets: match run.source.packets {
            Some(CountAboveZero(packets)) => Some(packets),
            None => None,
        },
    }
}

fn say_change(name: &str, state: PortState) {
    match state {
        PortState::Displaced => say!(Error EngineDisplaced, interface = name;
            "{name}: the engine was detached, or replaced by another program; earlier \
             packets are metered"),
        PortState::Down => say!(Warning InterfaceDown, interface = name;
            "{name} is down; its packets are metered again once it is up"),
        PortState::Disconnected => say!(Error ProbeUnheard, interface = name;
            "{name}: its connection ended before its final counters arrived; if it connects again, \
             the counts go on"),
        PortState::Silent => say!(Error ProbeUnheard, interface = name;
            "{name} has fallen silent, and its final counters have not arrived; once it is heard \
             again, the counts go on"),
        PortState::Gone => say!(Error InterfaceGone, interface = name;
            "{name} was removed; the packets that it had received are metered"),
        PortState::Up => say!(Info InterfaceUp, interface = name; "{name} is up"),
    }
}
