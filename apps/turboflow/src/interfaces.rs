// SPDX-License-Identifier: Apache-2.0
//! Network interfaces as a source: checks, opens and announces them.

use anyhow::bail;
use turboflow_capture::filter::{Compiler, Program};
pub(crate) use turboflow_capture::live::index;
use turboflow_capture::live::{Interface, InterfaceConfig, Offload, RingSize, State, kernel_name};
use turboflow_run::RunConfig;

use crate::log::say;
use crate::units::grouped;

/// Opens one ring per reader on every interface, or none at all. No privileges are needed
/// afterwards.
pub(crate) fn open_all(run: &RunConfig) -> anyhow::Result<Vec<Vec<Interface>>> {
    check_names(run)?;
    let ring = RingSize::new(run.source.ring_size.0)?;
    let count = usize::try_from(run.source.readers.0)?;
    let mut readers: Vec<Vec<Interface>> = (0..count).map(|_| Vec::new()).collect();
    for name in &run.source.interfaces {
        let config = InterfaceConfig {
            ring,
            snap_length_bytes: run.source.snap_length.map(|bytes| bytes.0),
            only_own_frames: !run.source.promiscuous,
            only_incoming: false,
            latency_ms: None,
            filter: compile(run, name)?,
        };
        let rings = Interface::open_group(name, &config, count)?;
        for (reader, ring) in readers.iter_mut().zip(rings) {
            reader.push(ring);
        }
    }
    Ok(readers)
}

/// Announces what is captured, and warns if it differs from what was on the wire.
pub(crate) fn announce_all(run: &RunConfig, readers: &[Vec<Interface>]) {
    let interfaces = readers.first().into_iter().flatten();
    interfaces.for_each(|interface| announce(run, interface));
}

/// Checks the rings as far as possible without an interface.
pub(crate) fn check_rings(run: &RunConfig) -> anyhow::Result<()> {
    RingSize::new(run.source.ring_size.0)?;
    Ok(())
}

/// Refuses an interface with an invalid name, or one that would be metered twice.
pub(crate) fn check_names(run: &RunConfig) -> anyhow::Result<()> {
    for names in [&run.source.interfaces, &run.source.cpu_ports] {
        for (index, name) in names.iter().enumerate() {
            Interface::check_name(name)?;
            if names[..index].contains(name) {
                bail!("interface {name} is named twice: its packets would be metered twice");
            }
        }
    }
    Ok(())
}

/// Interfaces of the run that do not exist.
pub(crate) fn absent(run: &RunConfig) -> Vec<&str> {
    let names = run.source.interfaces.iter().chain(&run.source.cpu_ports);
    let names = names.map(String::as_str);
    names.filter(|name| kernel_name(name).is_none()).collect()
}

/// The run with alternative interface names replaced by the kernel's own names.
pub(crate) fn with_kernel_names(run: &RunConfig) -> RunConfig {
    let mut run = run.clone();
    let source = &mut run.source;
    for name in source.interfaces.iter_mut().chain(&mut source.cpu_ports) {
        // Unknown names are reported when the interface is opened.
        if let Some(own) = kernel_name(name) {
            *name = own;
        }
    }
    run
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

pub(crate) fn warn_of_offloads(name: &str, active: &[Offload]) {
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
             are counted than were on the wire; remedy: ethtool -K {name} {}",
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
