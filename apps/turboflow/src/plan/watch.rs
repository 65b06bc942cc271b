// SPDX-License-Identifier: Apache-2.0
//! Feeds packets of captures or interfaces to the simulation.

use anyhow::bail;
use serde::Serialize;
use turboflow_merge::KeyHasher;
use turboflow_packet::Frame;
use turboflow_plan::{Measured, Observed, Simulation, SimulationConfig};
use turboflow_record::{Family, Packet, WORDS_V4};

use super::PlanArgs;
use super::args::refused;
use crate::exit::Outcome;
use crate::log::say;
use crate::record::{Frames, NotGiven};
use crate::units::counted;

/// The simulation, and counters of what it did not see.
pub(super) struct Watched {
    pub(super) source: Source,
    pub(super) measured: Measured,
    not_given: NotGiven,
}

/// The source of measured numbers.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Source {
    /// Captures or interfaces, as text.
    pub(super) name: String,
    /// IP packets metered.
    pub(super) packets: u64,
    /// Frames without an IP packet.
    pub(super) frames_without_flow: u64,
    /// Duration, without silences longer than the idle timeout.
    pub(super) seconds: f64,
    /// Sum of those silences.
    pub(super) silent_seconds: f64,
    /// Packets per second in the busiest half second.
    pub(super) busiest_packets_per_second: f64,
    /// The idle timeout that defines active flows, in seconds.
    pub(super) idle_timeout_seconds: f64,
    /// Whether everything was read: nothing was damaged, dropped or cut short. Standard error has
    /// the details.
    pub(super) is_whole: bool,
}

pub(super) fn watch(args: &PlanArgs, config: &SimulationConfig) -> anyhow::Result<Watched> {
    let mut simulation = Simulation::new(config).map_err(|error| refused(&error))?;
    let frames = Frames::open(&args.to_run()?)?;
    let name = frames.name();
    let (mut parser, hasher) = (frames.parser(), KeyHasher::new(args.seed()));
    let (mut observed, mut frames_without_flow) = (Vec::new(), 0);
    let not_given = frames.give(args.lasts(), |frames: &[Frame<'_>]| {
        observed.clear();
        for frame in frames {
            match parser.parse(frame) {
                Ok(packet) => observed.push(observe(&hasher, &packet)),
                Err(_) => frames_without_flow += 1,
            }
        }
        simulation.observe(&observed);
    })?;
    let measured = simulation.finish();
    if measured.packets == 0 && !args.filter().is_empty() {
        refuse_the_filter(args, &name, frames_without_flow)?;
    }
    Ok(Watched {
        source: Source {
            name,
            packets: measured.packets,
            frames_without_flow,
            seconds: measured.seconds(),
            silent_seconds: measured.silent_ns as f64 / 1e9,
            busiest_packets_per_second: measured.busiest_packets_per_second(),
            idle_timeout_seconds: config.idle_timeout_ns as f64 / 1e9,
            is_whole: not_given.is_nothing(),
        },
        measured,
        not_given,
    })
}

/// An error for a filter that leaves no packets, which is clearer than "too few packets".
fn refuse_the_filter(args: &PlanArgs, name: &str, frames_without_flow: u64) -> anyhow::Result<()> {
    let filter = args.filter();
    match frames_without_flow {
        0 => bail!("no packet of {name} matched the filter `{filter}`"),
        frames => bail!(
            "{} of {name} matched the filter `{filter}`, but none of them is an IP packet",
            counted(frames, "frame")
        ),
    }
}

fn observe(hasher: &KeyHasher, packet: &Packet) -> Observed {
    let words = packet.tuple.raw_words();
    let hash = match packet.tuple.family() {
        Family::V4 => hasher.hash::<WORDS_V4>(&[words[0], words[1]]),
        Family::V6 => hasher.hash(words),
    };
    Observed {
        hash,
        timestamp_ns: packet.timestamp_ns,
        wire_bytes: packet.frame_length_bytes,
        is_ipv6: packet.tuple.family() == Family::V6,
    }
}

impl Watched {
    /// Reports packets that the answer does not include.
    pub(super) fn say(&self) -> Outcome {
        let untracked = self.measured.untracked_packets;
        if untracked > 0 {
            say!(Warning FlowsLeftEarly, packets = untracked;
                "more flows were active than can be tracked: each of {} counts as a new flow; \
                 lower --idle-timeout", counted(untracked, "packet"));
        }
        self.not_given.say()
    }
}
