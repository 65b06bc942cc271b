// SPDX-License-Identifier: Apache-2.0
//! `turboflow record -i`: opening interfaces, and what is said while they are captured.

use std::path::Path;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use turboflow_capture::filter::{Compiler, Program};
use turboflow_capture::live::{InterfaceConfig, Offload, RingSize, State, wait};
use turboflow_engine::PortState;
use turboflow_packet::Frame;
use turboflow_run::{
    CountAboveZero, LiveEvent, LiveLimits, LiveOutputs, Output, PipelineConfig, RunConfig,
    Snapshots, Time, record_interfaces,
};

use super::frames::NotGiven;
use super::progress::ProgressBar;
use super::report::Report;
use super::{Settings, privileges};
use crate::engines::Engine;
use crate::log::say;
use crate::metrics::SNAPSHOTS;
use crate::signals::STOP;
use crate::systemd::Heartbeat;
use crate::units::grouped;

pub(super) use turboflow_capture::live::Interface;

/// Opens all interfaces, or none, for each reader a ring of every one; then no more rights are
/// needed.
pub(super) fn open_all(run: &RunConfig) -> anyhow::Result<Vec<Vec<Interface>>> {
    check_names(run)?;
    let ring = RingSize::new(run.source.ring_size.0)?;
    let count = usize::try_from(run.source.readers.0)?;
    let mut readers: Vec<Vec<Interface>> = (0..count).map(|_| Vec::new()).collect();
    for name in &run.source.interfaces {
        let config = InterfaceConfig {
            ring,
            snap_length_bytes: run.source.snap_length.map(|bytes| bytes.0),
            only_own_frames: !run.source.promiscuous,
            filter: compile(run, name)?,
        };
        let rings = Interface::open_group(name, &config, count)?;
        for (reader, ring) in readers.iter_mut().zip(rings) {
            reader.push(ring);
        }
    }
    if let Some(user) = &run.service.user {
        privileges::drop_to(user)?;
    }
    if let (Some(interfaces), false) = (readers.first(), run.service.quiet) {
        interfaces
            .iter()
            .for_each(|interface| announce(run, interface));
    }
    Ok(readers)
}

/// Says what is wrong with the options, as far as that can be told without an interface.
pub(super) fn check(run: &RunConfig, engine: &Engine) -> anyhow::Result<()> {
    check_names(run)?;
    if *engine == Engine::Software {
        RingSize::new(run.source.ring_size.0)?;
    }
    run.service
        .user
        .as_deref()
        .map_or(Ok(()), privileges::check)
}

/// Says which interface cannot be, or would be metered twice.
pub(super) fn check_names(run: &RunConfig) -> anyhow::Result<()> {
    for (index, name) in run.source.interfaces.iter().enumerate() {
        Interface::check_name(name)?;
        if run.source.interfaces[..index].contains(name) {
            bail!("interface {name} is named twice: its packets would be metered twice");
        }
    }
    Ok(())
}

/// Interfaces that are not there.
pub(super) fn absent(run: &RunConfig) -> Vec<&str> {
    let names = run.source.interfaces.iter().map(String::as_str);
    let is_absent = |name: &&str| !Path::new("/sys/class/net").join(name).exists();
    names.filter(is_absent).collect()
}

fn compile(run: &RunConfig, name: &str) -> anyhow::Result<Option<Program>> {
    let Some(expression) = &run.source.filter else {
        return Ok(None);
    };
    let link_type = Interface::link_type_of(name)?;
    let program = Compiler::load()?.for_interface(expression, name, link_type)?;
    Ok(Some(program))
}

fn announce(run: &RunConfig, interface: &Interface) {
    let name = interface.name();
    let ring = grouped(interface.ring_bytes() as u64 >> 10);
    let which = if run.source.promiscuous {
        "all frames it sees (promiscuous)"
    } else {
        "frames for this host"
    };
    let rings = match run.source.readers.0 {
        1 => format!("ring of {ring} KiB"),
        readers => format!("{readers} rings of {ring} KiB"),
    };
    say!(Info Listening, interface = name;
        "listening on {name}: {which}, {rings}; Ctrl-C ends");
    if interface.state() == State::Down {
        say!(Warning InterfaceDown, interface = name;
            "{name} is down; its packets are metered once it is up");
    }
    warn_of_offloads(name, &interface.offloads());
}

pub(super) fn warn_of_offloads(name: &str, active: &[Offload]) {
    let names = |received: bool| {
        let wanted = active
            .iter()
            .filter(|offload| offload.merges_received() == received);
        wanted.map(|offload| offload.name()).collect::<Vec<_>>()
    };
    let switched_off = |names: &[&str]| names.join(" off ") + " off";
    let (received, sent) = (names(true), names(false));
    if !received.is_empty() {
        say!(Warning PacketsMerged, interface = name;
            "{name} merges packets that come in ({}), so fewer and longer ones \
             are counted than were on the wire; mend: ethtool -K {name} {}",
            received.join(", "),
            switched_off(&received),
        );
    }
    if !sent.is_empty() {
        say!(Info PacketsMerged, interface = name;
            "note: packets that this host sends are seen before {name} cuts them ({}); \
             to see them as they go on the wire: ethtool -K {name} {}",
            sent.join(", "),
            switched_off(&sent),
        );
    }
}

/// Meters interfaces until something ends it.
pub(super) fn record(
    run: &RunConfig,
    settings: &Settings,
    readers: Vec<Vec<Interface>>,
    outputs: LiveOutputs,
    bar: &mut ProgressBar,
) -> anyhow::Result<Report> {
    let ran = told(bar, |observe| {
        record_interfaces(
            &settings.config,
            readers,
            limits(run),
            outputs,
            &STOP,
            &SNAPSHOTS,
            observe,
        )
    })?;
    Ok(Report::of_interfaces(ran))
}

pub(super) const fn limits(run: &RunConfig) -> LiveLimits {
    LiveLimits {
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

/// Runs with somebody who is told how it goes: the person at the terminal, and the service manager.
pub(super) fn told<T>(
    bar: &mut ProgressBar,
    run: impl FnOnce(&mut dyn FnMut(LiveEvent<'_>)) -> T,
) -> T {
    let mut heartbeat = Heartbeat::start();
    run(&mut |event| match event {
        LiveEvent::Progress(progress) => {
            heartbeat.beat();
            bar.draw_live(progress.into());
        }
        LiveEvent::Changed(name, state) => {
            bar.clear();
            say_change(name, state);
        }
        LiveEvent::Unparsed(_) => {}
    })
}

/// One output, to which nothing is added.
pub(super) fn alone(output: Output) -> LiveOutputs {
    LiveOutputs {
        first: vec![output],
        changes: channel().1,
        end_patience: None,
    }
}

/// Meters interfaces for a screen, which shows itself how they are.
pub(super) fn watch(
    config: &PipelineConfig,
    readers: Vec<Vec<Interface>>,
    output: Output,
    snapshots: &Snapshots,
) -> anyhow::Result<Report> {
    let limits = LiveLimits::default();
    let outputs = alone(output);
    let silent = |_: LiveEvent<'_>| ();
    let ran = record_interfaces(config, readers, limits, outputs, &STOP, snapshots, silent)?;
    Ok(Report::of_interfaces(ran))
}

/// How long to wait for packets at a time: a signal may go unheard so long.
const WAIT: Duration = Duration::from_millis(50);
/// How long the kernel may take at the end to hand over a block of packets that it has counted.
const CLOSING: Duration = Duration::from_secs(2);

/// Gives the frames of interfaces away that come in that time.
pub(super) fn give(
    readers: Vec<Vec<Interface>>,
    lasts: Duration,
    mut take: impl FnMut(&[Frame<'_>]),
) -> anyhow::Result<NotGiven> {
    let mut interfaces: Vec<Interface> = readers.into_iter().flatten().collect();
    let ends = now() + lasts;
    let is_gone = |interface: &Interface| interface.state() == State::Gone;
    while !STOP.asked() && now() < ends && !interfaces.iter().all(is_gone) {
        if !give_block(&mut interfaces, &mut take) {
            wait(&mut interfaces, WAIT).context("cannot wait for packets")?;
        }
    }
    for interface in &interfaces {
        interface.close_intake()?;
    }
    let gives_up = now() + CLOSING;
    while now() < gives_up && !all_empty(&mut interfaces)? {
        if !give_block(&mut interfaces, &mut take) {
            wait(&mut interfaces, Duration::from_millis(1))?;
        }
    }
    let mut not_given = NotGiven::default();
    for mut interface in interfaces {
        not_given.dropped += interface.counters()?.dropped;
        if is_gone(&interface) {
            not_given.gone.push(interface.name().to_owned());
        }
    }
    Ok(not_given)
}

/// Gives the oldest block away that waits in any ring, if there is one.
fn give_block(interfaces: &mut [Interface], take: &mut impl FnMut(&[Frame<'_>])) -> bool {
    let waiting = interfaces.iter().enumerate();
    let oldest = waiting
        .filter_map(|(index, interface)| Some((interface.next_ns()?, index)))
        .min();
    let Some((_, index)) = oldest else {
        return false;
    };
    if let Some(batch) = interfaces[index].next_batch() {
        take(batch.frames());
    }
    true
}

/// Whether all that the kernel has counted was given.
fn all_empty(interfaces: &mut [Interface]) -> std::io::Result<bool> {
    let mut empty = true;
    for interface in interfaces {
        empty &= interface.is_empty()?;
    }
    Ok(empty)
}

#[allow(
    clippy::disallowed_methods,
    reason = "whoever watches says for how long"
)]
fn now() -> Instant {
    Instant::now()
}

fn say_change(name: &str, state: PortState) {
    match state {
        PortState::Displaced => say!(Error EngineDisplaced, interface = name;
            "{name}: another program has taken the place of the engine in the kernel, or somebody took it off; what had \
             come until then is metered"),
        PortState::Down => say!(Warning InterfaceDown, interface = name;
            "{name} is down; its packets are metered again once it is up"),
        PortState::Gone => say!(Error InterfaceGone, interface = name;
            "{name} was removed; what it had received is metered"),
        PortState::Up => say!(Info InterfaceUp, interface = name; "{name} is up"),
    }
}
