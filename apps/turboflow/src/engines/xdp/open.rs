// SPDX-License-Identifier: Apache-2.0
//! Loads the engine into the kernel and attaches it to its interfaces.

use std::any::Any;
use std::path::Path;

use anyhow::bail;
use rustix::thread::{CapabilitySet, capabilities};
use turboflow_capture::live::{Interface, Promiscuous, RingSize};
use turboflow_engine_xdp::{
    DriverKnows, HandUp, KEY_HALVES, KernelConfig, KernelEngine, KernelError, Tables, XdpMode,
    check_layout,
};
use turboflow_merge::{KeyHasher, Layout, Marks};
use turboflow_packet::LinkType;
use turboflow_run::{EngineConfig, PipelineConfig, RunConfig, SnapLength, wall_ns};

use super::{Clock, DROP, MODE, Mode, OpenEngines, Options, Table, XdpOptions};
use crate::interfaces;
use crate::keys::Key;
use crate::log::say;
use crate::units::grouped;

/// Default slots of a microflow table: 1 MiB of IPv4 rows.
const SLOTS: u64 = 16_384;

/// Size of the ring for frames that are not packets, in bytes. It is emptied 20 times a second,
/// which limits these frames to 20 MiB/s.
const UNPARSED_RING_BYTES: u32 = 1 << 20;

/// Loads the engine and attaches it to all interfaces, or to none.
pub(super) fn open(
    options: &XdpOptions,
    run: &RunConfig,
    pipeline: &PipelineConfig,
    layout: &Layout,
) -> anyhow::Result<OpenEngines> {
    let config = config_of(options, run, pipeline, layout)?;
    let attached = attach(options, run, config, layout, XdpOptions::ENGINE, None)?;
    Ok(OpenEngines {
        name: run.source.interfaces.join(" "),
        engines: vec![Box::new(attached.engine)],
        held: vec![attached.held],
        captures: Default::default(),
    })
}

/// The engine, attached to all its interfaces.
pub(in crate::engines) struct Attached {
    pub(in crate::engines) engine: KernelEngine,
    /// Keeps the interfaces in promiscuous mode.
    pub(in crate::engines) held: Box<dyn Any + Send>,
}

/// Attaches the engine with this configuration to all interfaces, or to none. `name`: the engine
/// that the user named, which may be one that builds on this one. `pins`: the folder for pinned
/// links, which outlive the process.
pub(in crate::engines) fn attach(
    options: &XdpOptions,
    run: &RunConfig,
    mut config: KernelConfig,
    layout: &Layout,
    name: &'static str,
    pins: Option<&Path>,
) -> anyhow::Result<Attached> {
    interfaces::check_names(run)?;
    check_rights(name)?;
    config.longest_frame_bytes = 0;
    for interface in &run.source.interfaces {
        config.longest_frame_bytes = config
            .longest_frame_bytes
            .max(Interface::longest_frame_bytes(interface)?);
        if Interface::link_type_of(interface)? != LinkType::Ethernet {
            bail!(
                "{interface} is not an Ethernet interface, and the {name} engine reads no other \
                 frames; use {}",
                Key::Engine.with(EngineConfig::SOFTWARE)
            );
        }
    }
    let promiscuous = match run.source.promiscuous {
        false => Vec::new(),
        true => {
            let names = run.source.interfaces.iter();
            names
                .map(|name| Promiscuous::hold(name))
                .collect::<Result<Vec<_>, _>>()?
        }
    };
    // Last, because it may replace another XDP program.
    let asked = DriverKnows::asked_by(layout);
    let (engine, modes) = start(run, options, config, asked, pins)?;
    if !run.service.quiet {
        announce(run, options, name, &engine, &modes);
    }
    Ok(Attached {
        engine,
        held: Box::new(promiscuous),
    })
}

/// Checks that this process has all capabilities that the engine `name` needs, because the kernel's
/// errors do not say which are missing.
pub(in crate::engines) fn check_rights(name: &str) -> anyhow::Result<()> {
    let without = Key::Engine.with(EngineConfig::SOFTWARE);
    check_rights_of(
        &Key::Engine.with(name),
        &format!("; {without} needs CAP_NET_RAW alone"),
    )
}

/// Checks the capabilities of `check_rights` for `who`. `or`: an alternative that needs fewer, with
/// a leading semicolon.
pub(in crate::engines) fn check_rights_of(who: &str, or: &str) -> anyhow::Result<()> {
    const OF_BPF: CapabilitySet = CapabilitySet::BPF.union(CapabilitySet::PERFMON);
    let wanted = [
        (CapabilitySet::BPF, "CAP_BPF"),
        (CapabilitySet::PERFMON, "CAP_PERFMON"),
        (CapabilitySet::NET_ADMIN, "CAP_NET_ADMIN"),
        (CapabilitySet::NET_RAW, "CAP_NET_RAW"),
    ];
    let mut held = capabilities(None)?.effective;
    if held.contains(CapabilitySet::SYS_ADMIN) {
        held |= OF_BPF;
    }
    let missing = wanted
        .into_iter()
        .filter(|(right, _)| !held.contains(*right));
    let missing: Vec<_> = missing.map(|(_, name)| name).collect();
    if !missing.is_empty() {
        bail!(
            "{who} lacks the right to do its work ({}): run as root, or give the program its rights once, with \
             `sudo setcap cap_bpf,cap_perfmon,cap_net_admin,cap_net_raw=ep $(command -v turboflow)`{or}",
            missing.join(", ")
        );
    }
    Ok(())
}

/// Loads the engine and attaches it. If the definition needs metadata of the driver and there is
/// one interface, the program is bound to that interface.
fn start(
    run: &RunConfig,
    xdp: &XdpOptions,
    mut config: KernelConfig,
    asked: DriverKnows,
    pins: Option<&Path>,
) -> anyhow::Result<(KernelEngine, Vec<XdpMode>)> {
    let told = match &config.interfaces[..] {
        [only] if mode_of(xdp) != XdpMode::Generic => DriverKnows::told_by(only)?,
        _ => DriverKnows::default(),
    };
    if asked.timestamps && !told.timestamps {
        bail!(
            "`hardware_timestamp` needs one interface ({}), native mode, and a driver that reports \
             it (Linux 6.7): {}; or leave it out of the definition",
            Key::Interfaces,
            match config.interfaces.len() {
                1 if mode_of(xdp) == XdpMode::Generic =>
                    format!("use {} or auto", Key::Of(MODE).with("native")),
                1 => format!("the driver of {} reports none", config.interfaces[0]),
                several => format!("there are {several} interfaces"),
            }
        );
    }
    // A program with a table of verdicts is never bound: it sees VLAN tags only in frames.
    let may_bind = config.offload.is_none();
    config.is_bound = may_bind && (asked.timestamps || asked.tags && told.tags);
    let attached = |config: &KernelConfig| {
        let mut engine = KernelEngine::load(config)?;
        let offload = config.offload.as_ref();
        let is_bridge = offload.is_some_and(|offload| offload.bridge.is_some());
        let modes = match pins {
            Some(folder) => {
                engine.attach_pinned(folder, xdp.replace)?;
                vec![XdpMode::Native; config.interfaces.len()]
            }
            // Only native mode can redirect frames and report what became of them.
            None if is_bridge => engine.attach(XdpMode::Native, xdp.replace)?,
            None => engine.attach(mode_of(xdp), xdp.replace)?,
        };
        Ok::<_, KernelError>((engine, modes))
    };
    let mut started = attached(&config);
    if config.is_bound
        && !asked.timestamps
        && matches!(
            started,
            Err(KernelError::NoDriver { .. }
                | KernelError::Attach { .. }
                | KernelError::Replaced { .. })
        )
    {
        // The driver refuses native mode. VLAN tags are then seen only in the frames.
        config.is_bound = false;
        started = attached(&config);
    }
    let (engine, modes) = started?;
    if asked.tags && !(config.is_bound && told.tags) && !run.service.quiet {
        warn_of_tags(run);
    }
    Ok((engine, modes))
}

/// Warns of interfaces whose driver strips the VLAN tags that the definition needs.
fn warn_of_tags(run: &RunConfig) {
    for name in &run.source.interfaces {
        // If the interface has vanished, its reader reports that.
        if Interface::takes_tags_out(name).unwrap_or(false) {
            say!(Warning TagsUnseen, interface = name.as_str();
                "the driver of {name} removes VLAN tags from frames, and the engine does not get them \
                 (some drivers pass them to a program on one interface in native mode), so `vlan` \
                 is not what was on the wire; remedy: ethtool -K {name} rxvlan off");
        }
    }
}

/// Whether this engine supports records of this layout.
pub(super) fn has_room(layout: &Layout) -> anyhow::Result<()> {
    match check_layout(layout) {
        Err(error @ KernelError::TooLarge { .. }) => Err(error.into()),
        // Other reasons are reported in terms of the options.
        _ => Ok(()),
    }
}

/// The configuration of the engine.
pub(in crate::engines) fn config_of(
    xdp: &XdpOptions,
    run: &RunConfig,
    config: &PipelineConfig,
    layout: &Layout,
) -> anyhow::Result<KernelConfig> {
    RingSize::new(run.source.ring_size.0)?;
    let largest = 1_u64 << run.source.ring_size.0.ilog2();
    let hasher = KeyHasher::new(config.seed);
    let config = KernelConfig {
        is_bound: false,
        interfaces: run.source.interfaces.clone(),
        layout: Some(layout.clone()),
        tables: match xdp.table {
            Table::PerCpu => Tables::PerCpu,
            Table::RowLock => Tables::RowLock,
        },
        slots: u32::try_from(run.engine.microflow_slots.map_or(SLOTS, |slots| slots.0))
            .unwrap_or(u32::MAX),
        ring_bytes: u32::try_from(largest)?,
        cell_ns: config.timeouts.cell_ns(config.max_age_ns),
        evict_after: match config.timeouts.linger_ns {
            Some(0) => Marks::ENDS,
            _ => 0,
        },
        clock: match xdp.clock {
            Clock::Precise => turboflow_engine_xdp::Clock::Precise,
            Clock::Coarse => turboflow_engine_xdp::Clock::Coarse,
        },
        wall_ns,
        drops: xdp.drop,
        longest_frame_bytes: u32::MAX,
        hand_up: xdp.unparsed_to.is_some().then_some(HandUp {
            snap_bytes: match run.source.snap_length {
                Some(SnapLength(bytes)) => bytes,
                None => HandUp::MAX_SNAP_BYTES,
            },
            ring_bytes: UNPARSED_RING_BYTES,
        }),
        offload: None,
        tested: None,
        hash_keys: std::array::from_fn(|at| hash_key(&hasher, at)),
    };
    config.validate()?;
    Ok(config)
}

/// A hash key, derived from the run's seed and therefore equally unpredictable.
fn hash_key(hasher: &KeyHasher, at: usize) -> u64 {
    const { assert!(KEY_HALVES < 256) };
    hasher.hash(&[at as u64, 0]).0
}

const fn mode_of(xdp: &XdpOptions) -> XdpMode {
    match xdp.mode {
        Mode::Auto => XdpMode::Auto,
        Mode::Native => XdpMode::Native,
        Mode::Generic => XdpMode::Generic,
    }
}

fn announce(
    run: &RunConfig,
    xdp: &XdpOptions,
    engine_name: &str,
    engine: &KernelEngine,
    modes: &[XdpMode],
) {
    let mib = grouped(engine.memory_bytes().div_ceil(1 << 20));
    let tables = match xdp.table {
        Table::PerCpu => "a table on every CPU",
        Table::RowLock => "one table with locks",
    };
    let ends = match xdp.drop {
        true => format!(", then dropped ({})", Key::Of(DROP)),
        false => String::new(),
    };
    for (name, mode) in run.source.interfaces.iter().zip(modes) {
        let mode = mode.name();
        say!(Info Listening, interface = name.as_str();
            "listening on {name}: {engine_name} engine, {mode} mode, {tables}, {mib} MiB of the kernel's memory \
             in all; incoming packets are metered{ends}; Ctrl-C ends");
    }
    for (name, mode) in run.source.interfaces.iter().zip(modes) {
        if *mode == XdpMode::Generic {
            warn_of_merging(name);
        }
    }
}

/// Warns that in generic mode, the stack may have merged several frames of the wire into one.
fn warn_of_merging(name: &str) {
    // If the interface has vanished, its reader reports that.
    let active = Interface::merges_received(name).unwrap_or_default();
    if active.is_empty() {
        say!(Info PacketsMerged, interface = name;
            "note: in generic mode, packets that another interface of this host sends to {name} \
             (veth, tap) may arrive merged into one; those longer than its MTU are counted as \
             merged. Native mode does not merge them");
    } else {
        interfaces::warn_of_offloads(name, &active);
    }
}
