// SPDX-License-Identifier: Apache-2.0
//! Loads the engine with a table of verdicts into the kernel, attaches it, and starts to decide
//! flows.

use anyhow::Context;
use turboflow_engine_offload::{Decider, FirstPacket, LearnerConfig, OffloadEngine};
use turboflow_engine_xdp::{KernelConfig, OffloadConfig, TapBudget};
use turboflow_merge::{KeyHasher, Layout};
use turboflow_run::{PipelineConfig, RunConfig};

use super::inspects::{Inspects, TAP_BYTES};
use super::{OffloadOptions, OffloadSetup, OpenEngines, Options};
use crate::engines::xdp::open as xdp;

/// The longest time that a row stays after the end of its connection, in nanoseconds: packets of
/// either side that are still on their way belong to this flow.
const LINGER_NS: u64 = 5_000_000_000;
/// Maximum packets to inspect of a flow other than TCP (`PacketLimits` in `crates/inspect`).
const OTHER_PACKETS: u64 = 24;
/// Packet budgets per row of the table, because flows without a row need a budget too.
const BUDGETS_A_ROW: u64 = 2;
const LEAST_BUDGETS: u64 = 1 << 16;

/// Loads the engine and attaches it to all interfaces, or to none.
pub(super) fn open(
    setup: &OffloadSetup,
    run: &RunConfig,
    pipeline: &PipelineConfig,
    layout: &Layout,
) -> anyhow::Result<OpenEngines> {
    let config = config_of(setup, run, pipeline, layout)?;
    let rows = setup.rows();
    xdp::check_rights(OffloadOptions::ENGINE)?;
    // Before the program is attached, so that packets do not wait for the inspector to start.
    let decider: Box<dyn Decider> = match &pipeline.inspection {
        Some(inspection) => {
            Box::new(Inspects::start(inspection).context("cannot inspect payload")?)
        }
        None => Box::new(FirstPacket),
    };
    let times = times_of(setup, pipeline);
    let name = OffloadOptions::ENGINE;
    let attached = xdp::attach(&setup.xdp, run, config, layout, name, None)?;
    let engine = OffloadEngine::new(attached.engine, rows, decider, times)?;
    Ok(OpenEngines {
        name: run.source.interfaces.join(" "),
        engines: vec![Box::new(engine)],
        held: vec![attached.held],
        captures: Default::default(),
    })
}

/// How long rows stay in the table.
pub(in crate::engines) fn times_of(
    setup: &OffloadSetup,
    pipeline: &PipelineConfig,
) -> LearnerConfig {
    let linger_ns = pipeline.timeouts.linger_ns;
    LearnerConfig {
        idle_ns: setup.idle_ns(),
        linger_ns: linger_ns.map_or(LINGER_NS, |linger_ns| linger_ns.min(LINGER_NS)),
    }
}

impl OffloadSetup {
    pub(in crate::engines) fn rows(&self) -> u32 {
        u32::try_from(self.own.rows.0).unwrap_or(u32::MAX)
    }

    fn idle_ns(&self) -> u64 {
        u64::try_from(self.own.row_idle.0.as_nanos()).unwrap_or(u64::MAX)
    }
}

/// The configuration of the engine in the kernel.
pub(in crate::engines) fn config_of(
    setup: &OffloadSetup,
    run: &RunConfig,
    pipeline: &PipelineConfig,
    layout: &Layout,
) -> anyhow::Result<KernelConfig> {
    let hasher = KeyHasher::new(pipeline.seed);
    let packets = setup.own.tap_packets.0;
    let budget = |limit: u64| u8::try_from(packets.min(limit)).unwrap_or(u8::MAX);
    let tap_rows = (setup.own.rows.0.saturating_mul(BUDGETS_A_ROW)).max(LEAST_BUDGETS);
    let ring_bytes = 1_u64 << setup.own.tap_ring.0.max(1).ilog2();
    let offload = OffloadConfig {
        rows: setup.rows(),
        tap_rows: u32::try_from(tap_rows.next_multiple_of(4)).unwrap_or(u32::MAX),
        budget: TapBudget {
            tcp: budget(u64::from(u8::MAX)),
            udp: budget(OTHER_PACKETS),
            other: budget(OTHER_PACKETS),
        },
        ring_bytes: u32::try_from(ring_bytes).unwrap_or(u32::MAX),
        snap_bytes: match pipeline.inspection {
            Some(_) => TAP_BYTES,
            None => FirstPacket.snap_bytes(),
        },
        idle_ns: setup.idle_ns(),
        keys_vlan: layout.has_vlan_key(),
        // Keys that differ from those of the microflow table.
        hash_keys: [1, 2].map(|which| std::array::from_fn(|at| hasher.hash(&[at as u64, which]).0)),
        bridge: None,
    };
    let config = xdp::config_of(&setup.xdp, run, pipeline, layout)?;
    Ok(KernelConfig {
        offload: Some(offload),
        ..config
    })
}
