// SPDX-License-Identifier: Apache-2.0
//! `turboflow record -i --engine xdp`: the engine in the kernel, on its interfaces.

use anyhow::bail;
use rustix::thread::{CapabilitySet, capabilities};
use turboflow_capture::live::{Interface, Promiscuous, RingSize};
use turboflow_engine_xdp::{
    DriverKnows, HandUp, KEY_HALVES, KernelConfig, KernelEngine, KernelError, Tables, XdpMode,
    check_layout,
};
use turboflow_merge::{KeyHasher, Layout, Marks};
use turboflow_packet::LinkType;
use turboflow_run::{
    LiveEvent, LiveLimits, LiveOutputs, Output, PipelineConfig, Snapshots, record_engines, wall_ns,
};

use super::args::{Clock, Mode, Table};
use super::progress::ProgressBar;
use super::report::Report;
use super::unparsed::UnparsedFile;
use super::{RecordArgs, Settings, live, privileges};
use crate::beside::Beside;
use crate::log::say;
use crate::metrics::SNAPSHOTS;
use crate::signals::STOP;
use crate::units::grouped;

/// Slots of a table: a MiB of IPv4 rows.
const SLOTS: u64 = 16_384;

/// Of the ring for frames that are no packet. It is emptied 20 times a second, and bounds them to 20 MiB a second.
const UNPARSED_RING_BYTES: u32 = 1 << 20;

/// The engine, and what keeps its interfaces as it wants them.
pub(super) struct Engine {
    engine: KernelEngine,
    _promiscuous: Vec<Promiscuous>,
}

/// Loads the engine and puts it on all interfaces, or on none; then no more rights are needed.
pub(super) fn open(args: &RecordArgs, settings: &Settings) -> anyhow::Result<Engine> {
    let mut config = config_of(args, settings)?;
    live::check_names(args)?;
    check_rights()?;
    config.longest_frame_bytes = 0;
    for name in &args.interface {
        config.longest_frame_bytes = config
            .longest_frame_bytes
            .max(Interface::longest_frame_bytes(name)?);
        if Interface::link_type_of(name)? != LinkType::Ethernet {
            bail!(
                "{name} is no Ethernet interface, and the engine in the kernel reads no other frames; \
                 --engine software works"
            );
        }
    }
    if let Some(user) = &args.user {
        privileges::check(user)?;
    }
    let promiscuous = match args.no_promiscuous {
        true => Vec::new(),
        false => {
            let names = args.interface.iter();
            names
                .map(|name| Promiscuous::hold(name))
                .collect::<Result<_, _>>()?
        }
    };
    // Last: it may take another program's place.
    let (engine, modes) = start(args, config, DriverKnows::asked_by(&settings.layout))?;
    if let Some(user) = &args.user {
        privileges::drop_to(user)?;
    }
    if !args.quiet {
        announce(args, &engine, &modes);
    }
    Ok(Engine {
        engine,
        _promiscuous: promiscuous,
    })
}

/// Whether this process has all rights that the engine takes; without, the kernel's errors name none.
fn check_rights() -> anyhow::Result<()> {
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
            "--engine xdp lacks the right to do its work ({}): run as root, or give the program its rights once, with \
             `sudo setcap cap_bpf,cap_perfmon,cap_net_admin,cap_net_raw=ep $(command -v turboflow)`; \
             --engine software needs CAP_NET_RAW alone",
            missing.join(", ")
        );
    }
    Ok(())
}

/// Loads the engine and puts it on its interfaces, bound to the only one where a definition asks for what its driver knows.
fn start(
    args: &RecordArgs,
    mut config: KernelConfig,
    asked: DriverKnows,
) -> anyhow::Result<(KernelEngine, Vec<XdpMode>)> {
    let told = match &config.interfaces[..] {
        [only] if mode_of(args) != XdpMode::Generic => DriverKnows::told_by(only)?,
        _ => DriverKnows::default(),
    };
    if asked.timestamps && !told.timestamps {
        bail!(
            "`hardware_timestamp` is told by drivers that know it (Linux 6.7), to a program on one interface (-i) in native mode: {}; \
             or leave it out of the definition",
            match config.interfaces.len() {
                1 if mode_of(args) == XdpMode::Generic =>
                    "take --xdp-mode native or auto".to_owned(),
                1 => format!("that of {} tells none", config.interfaces[0]),
                several => format!("here are {several}"),
            }
        );
    }
    config.is_bound = asked.timestamps || asked.tags && told.tags;
    let attached = |config: &KernelConfig| {
        let mut engine = KernelEngine::load(config)?;
        let modes = engine.attach(mode_of(args), args.replace)?;
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
        // The driver refuses native mode here: frames have what they have.
        config.is_bound = false;
        started = attached(&config);
    }
    let (engine, modes) = started?;
    if asked.tags && !(config.is_bound && told.tags) && !args.quiet {
        warn_of_tags(args);
    }
    Ok((engine, modes))
}

/// Says where tags that a definition asks for are not seen.
fn warn_of_tags(args: &RecordArgs) {
    for name in &args.interface {
        // Whether it is there still is said by whoever reads it.
        if Interface::takes_tags_out(name).unwrap_or(false) {
            say!(Warning TagsUnseen, interface = name.as_str();
                "the driver of {name} takes VLAN tags out of frames, and this engine is not told them (they are told by some \
                 drivers, to a program on one interface in native mode), so `vlan` is not what was on the wire; mend: \
                 ethtool -K {name} rxvlan off");
        }
    }
}

/// Whether this engine has room for records of that layout.
pub(super) fn has_room(layout: &Layout) -> anyhow::Result<()> {
    match check_layout(layout) {
        Err(error @ KernelError::TooLarge { .. }) => Err(error.into()),
        // Other reasons are said in the words of the options.
        _ => Ok(()),
    }
}

/// Says what is wrong with the options, as far as that can be told without the kernel.
pub(super) fn check(args: &RecordArgs, settings: &Settings) -> anyhow::Result<()> {
    config_of(args, settings).map(drop)
}

/// What this engine cannot do, in the words of the options that ask for it.
fn refuse_what_it_cannot(args: &RecordArgs) -> anyhow::Result<()> {
    let unable = [
        (args.biflow, "--biflow"),
        (args.decapsulate.is_some(), "--decapsulate"),
        (args.reassemble_flows, "--reassemble-flows"),
        (args.icmp_ports, "--icmp-ports"),
        (!args.filter.is_empty(), "a filter"),
        (
            args.snap_length.is_some() && args.unparsed_to.is_none(),
            "--snap-length (but for frames that --unparsed-to writes)",
        ),
        (args.readers > 1, "--readers"),
    ];
    let asked: Vec<_> = unable
        .into_iter()
        .filter_map(|(is_asked, option)| is_asked.then_some(option))
        .collect();
    if !asked.is_empty() {
        bail!(
            "the engine in the kernel does not know {}; leave it out, or use --engine software",
            asked.join(", ")
        );
    }
    if let Some(path) = &args.unparsed_to {
        let path = path.to_string_lossy();
        if path == "-" || path.contains('%') {
            bail!(
                "--unparsed-to {path}: one capture file for the whole run, which has its name once it is complete, at the end; \
                 it does not go to standard output, nor begin anew: choose a name without `%`"
            );
        }
    }
    Ok(())
}

fn config_of(args: &RecordArgs, settings: &Settings) -> anyhow::Result<KernelConfig> {
    refuse_what_it_cannot(args)?;
    let config = &settings.config;
    RingSize::new(args.ring_size)?;
    let largest = 1_u64 << args.ring_size.ilog2();
    let hasher = KeyHasher::new(config.seed);
    let config = KernelConfig {
        is_bound: false,
        interfaces: args.interface.clone(),
        layout: Some(settings.layout.clone()),
        tables: match args.table {
            Table::PerCpu => Tables::PerCpu,
            Table::RowLock => Tables::RowLock,
        },
        slots: u32::try_from(args.microflow_slots.unwrap_or(SLOTS)).unwrap_or(u32::MAX),
        ring_bytes: u32::try_from(largest)?,
        cell_ns: config.timeouts.cell_ns(config.max_age_ns),
        evict_after: match config.timeouts.linger_ns {
            Some(0) => Marks::ENDS,
            _ => 0,
        },
        clock: match args.xdp_clock {
            Clock::Precise => turboflow_engine_xdp::Clock::Precise,
            Clock::Coarse => turboflow_engine_xdp::Clock::Coarse,
        },
        wall_ns,
        drops: args.xdp_drop,
        longest_frame_bytes: u32::MAX,
        hand_up: args.unparsed_to.is_some().then(|| HandUp {
            snap_bytes: args.snap_length.unwrap_or(HandUp::MAX_SNAP_BYTES),
            ring_bytes: UNPARSED_RING_BYTES,
        }),
        tested: None,
        hash_keys: std::array::from_fn(|at| hash_key(&hasher, at)),
    };
    config.validate()?;
    Ok(config)
}

/// Of the same seed as everything else, and as unknown.
fn hash_key(hasher: &KeyHasher, at: usize) -> u64 {
    const { assert!(KEY_HALVES < 256) };
    hasher.hash(&[at as u64, 0]).0
}

const fn mode_of(args: &RecordArgs) -> XdpMode {
    match args.xdp_mode {
        Mode::Auto => XdpMode::Auto,
        Mode::Native => XdpMode::Native,
        Mode::Generic => XdpMode::Generic,
    }
}

fn announce(args: &RecordArgs, engine: &KernelEngine, modes: &[XdpMode]) {
    let mib = grouped(engine.memory_bytes().div_ceil(1 << 20));
    let tables = match args.table {
        Table::PerCpu => "a table on every CPU",
        Table::RowLock => "one table with locks",
    };
    let ends = match args.xdp_drop {
        true => ", and go nowhere from here (--xdp-drop)",
        false => "",
    };
    for (name, mode) in args.interface.iter().zip(modes) {
        let mode = mode.name();
        say!(Info Listening, interface = name.as_str();
            "listening on {name}: the engine in the kernel, {mode} mode, {tables}, {mib} MiB of the kernel's memory in all; \
             packets that come in{ends}; Ctrl-C ends");
    }
    for (name, mode) in args.interface.iter().zip(modes) {
        if *mode == XdpMode::Generic {
            warn_of_merging(name);
        }
    }
}

/// In generic mode a frame comes by when it may be several of the wire in one.
fn warn_of_merging(name: &str) {
    // Whether it is there still is said by whoever reads it.
    let active = Interface::merges_received(name).unwrap_or_default();
    if active.is_empty() {
        say!(Info PacketsMerged, interface = name;
            "note: in generic mode, what another interface of this host sends to {name} (veth, tap) may come as several packets in one; \
             those too long for its MTU are counted as merged. In native mode it does not");
    } else {
        live::warn_of_offloads(name, &active);
    }
}

/// Meters interfaces until something ends it.
pub(super) fn record(
    args: &RecordArgs,
    settings: &Settings,
    engine: Engine,
    outputs: LiveOutputs,
    unparsed: Option<Beside>,
    bar: &mut ProgressBar,
) -> anyhow::Result<Report> {
    let limits = live::limits(args);
    let mut unparsed = match (unparsed, &args.unparsed_to) {
        (Some(file), Some(path)) => Some(UnparsedFile::new(path.display().to_string(), file)?),
        _ => None,
    };
    let ran = live::told(bar, |observe| {
        record_engines(
            &settings.config,
            vec![Box::new(engine.engine)],
            limits,
            outputs,
            &STOP,
            &SNAPSHOTS,
            |event| match (event, &mut unparsed) {
                (LiveEvent::Unparsed(frame), Some(file)) => file.write(&frame),
                (event, _) => observe(event),
            },
        )
    })?;
    let lost = ran.unparsed_lost;
    let mut report = Report::of_interfaces(ran);
    report.unparsed = unparsed.map(|file| file.finish(lost));
    Ok(report)
}

/// Meters interfaces for a screen, which shows itself how they are.
pub(super) fn watch(
    config: &PipelineConfig,
    engine: Engine,
    output: Output,
    snapshots: &Snapshots,
) -> anyhow::Result<Report> {
    let limits = LiveLimits::default();
    let outputs = live::alone(output);
    let silent = |_: LiveEvent<'_>| ();
    let ran = record_engines(
        config,
        vec![Box::new(engine.engine)],
        limits,
        outputs,
        &STOP,
        snapshots,
        silent,
    )?;
    Ok(Report::of_interfaces(ran))
}
