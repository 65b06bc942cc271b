// SPDX-License-Identifier: Apache-2.0
//! The compiled programs and their maps: what is configured before they are loaded.

use libbpf_rs::libbpf_sys::BPF_F_XDP_DEV_BOUND_ONLY;
use libbpf_rs::{ErrorKind, MapCore, MapHandle, Object, ObjectBuilder, OpenObject};
use turboflow_engine::{PlainRows, RecordShape};
use turboflow_record::WORDS_V4;

use crate::driver::splits_headers;
use crate::layout::short_flow_key_words;
use crate::memory::SharedMemory;
use crate::plan::KernelPlan;
use crate::planned::row_words;
use crate::{HandUp, KernelConfig, KernelError, Tables};

/// The compiled program, aligned as its ELF headers require.
#[repr(C, align(8))]
struct Aligned<Bytes: ?Sized>(Bytes);

static PROGRAM: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(
    env!("OUT_DIR"),
    "/microflow.bpf.o"
)));

/// The device-bound program. It is a separate object, because it needs the kernel's types (BTF) and
/// another licence.
static BOUND: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/bound.bpf.o")));

/// The program with a table of verdicts. It is a separate object, so that the engine without
/// verdicts runs an unchanged program.
static OFFLOAD: &Aligned<[u8]> =
    &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/offload.bpf.o")));

/// The program with verdicts as a bridge between two ports. It needs the kernel's types (BTF).
static BRIDGE: &Aligned<[u8]> =
    &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/bridge.bpf.o")));

/// Words between two IPv4 rows of a table: a cache line.
pub(crate) const ROW_WORDS_V4: usize = PlainRows::<WORDS_V4>::WORDS;
/// Words between two IPv6 rows: two cache lines.
pub(crate) const ROW_WORDS_V6: usize = 16;

/// Program that reads the kernel's tick counter.
pub(crate) const TICK_NAME: &str = "read_tick";

/// Loads the programs that a configuration needs, and creates their maps.
pub(crate) fn load(
    config: &KernelConfig,
    tables: u32,
    interfaces: &[(String, u32)],
    plan: Option<&KernelPlan>,
    shape: Option<RecordShape>,
) -> Result<Object, KernelError> {
    let is_bound = config.is_bound && plan.is_some();
    let program = match &config.offload {
        Some(offload) if offload.bridge.is_some() => BRIDGE,
        Some(_) => OFFLOAD,
        None if is_bound => BOUND,
        None => PROGRAM,
    };
    let mut open = ObjectBuilder::default()
        .open_memory(&program.0)
        .map_err(KernelError::refused("read its own program"))?;
    let indices: Vec<u32> = interfaces.iter().map(|(_, index)| *index).collect();
    configure(&mut open, config, tables, &indices, plan, shape)?;
    open.load().map_err(|source| match interfaces {
        [(name, _)] if is_bound && is_no_driver(source.kind()) => {
            let name = name.clone();
            KernelError::NoDriver { name, source }
        }
        _ => KernelError::refused("load its program")(source),
    })
}

/// The metering program that a configuration runs.
pub(crate) const fn program_name(has_plan: bool, is_bound: bool) -> &'static str {
    match (has_plan, is_bound) {
        (false, _) => PROGRAM_NAME,
        (true, false) => PLANNED_NAME,
        (true, true) => BOUND_NAME,
    }
}

/// Program for the default definition.
pub(crate) const PROGRAM_NAME: &str = "microflows";
/// Program for any other definition.
pub(crate) const PLANNED_NAME: &str = "planned";
/// Program for any other definition, bound to an interface: the only program of its object.
const BOUND_NAME: &str = "bound";
/// The program for the default definition on generated packets, for tests and measurements.
const FIRE_NAME: &str = "fire";
/// Carries out orders for verdicts. Not a metering program; only objects with verdicts have it.
pub(crate) const ORDERS_NAME: &str = "carry_out_orders";
/// Programs of a bridge that count the fate of redirected frames.
pub(crate) const FATES: [&str; 2] = ["note_sent", "note_refused"];
/// Metering programs of one object, of which one is loaded: the verifier takes time for each.
const METERING: [&str; 2] = [PROGRAM_NAME, PLANNED_NAME];

/// Error of loading a bound program: the device does not support it, or the kernel does not.
const fn is_no_driver(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::InvalidInput | ErrorKind::Unsupported)
}

/// Sets sizes and constants before anything is loaded into the kernel.
fn configure(
    open: &mut OpenObject,
    config: &KernelConfig,
    tables: u32,
    interfaces: &[u32],
    plan: Option<&KernelPlan>,
    shape: Option<RecordShape>,
) -> Result<(), KernelError> {
    const DOING: &str = "set up its program";
    let has_plan = plan.is_some_and(|plan| plan.judged().is_none());
    let mine = program_name(has_plan, config.is_bound);
    for mut program in open.progs_mut() {
        let name = program.name().to_str().unwrap_or_default();
        let is_beside = !METERING.contains(&name) && (!has_plan || name != FIRE_NAME);
        let wanted = match name {
            TICK_NAME => config.clock.tick_ns().is_some(),
            ORDERS_NAME => true,
            name if FATES.contains(&name) => true,
            _ => name == mine || config.tested.is_some() && is_beside,
        };
        program.set_autoload(wanted);
        if name == BOUND_NAME {
            program.set_ifindex(interfaces[0]);
            program.set_flags(BPF_F_XDP_DEV_BOUND_ONLY);
        }
    }
    let rows = config.slots * tables * 2;
    let has_v4 = shape.is_none_or(|shape| shape.wide_key_words.is_none());
    let row_v4 = shape.map_or(ROW_WORDS_V4, |shape| row_words(shape.words_v4()));
    let row_v6 = shape.map_or(ROW_WORDS_V6, |shape| row_words(shape.words_v6()));
    for mut map in open.maps_mut() {
        if HandUp::configure(config.hand_up, &mut map).map_err(KernelError::refused(DOING))? {
            continue;
        }
        if let Some(offload) = &config.offload
            && offload
                .configure(&mut map, plan)
                .map_err(KernelError::refused(DOING))?
        {
            continue;
        }
        match map.name().to_str() {
            Some("table_v4") if !has_v4 => Ok(()),
            Some("table_v4") => map
                .set_max_entries(rows)
                .and_then(|()| map.set_value_size(8 * row_v4 as u32)),
            Some("table_v6") => map
                .set_max_entries(rows)
                .and_then(|()| map.set_value_size(8 * row_v6 as u32)),
            Some("locks") if config.tables == Tables::RowLock => map.set_max_entries(config.slots),
            Some("evicted") => map.set_max_entries(config.ring_bytes),
            Some("short_flows") => map.set_key_size(8 * short_flow_key_words(shape) as u32),
            Some(".rodata.config") => {
                let mut named = config.interfaces.iter().zip(interfaces);
                let splits_headers = named.any(|(name, index)| splits_headers(name, *index));
                map.set_initial_value(&config.bytes(interfaces, has_plan, splits_headers))
            }
            Some(".rodata.plan") => match plan {
                Some(plan) => map.set_initial_value(&plan.bytes(&config.hash_keys)),
                None => Ok(()),
            },
            _ => Ok(()),
        }
        .map_err(KernelError::refused(DOING))?;
    }
    Ok(())
}

/// A map of the loaded program.
pub(crate) fn map(object: &Object, name: &'static str) -> Result<MapHandle, KernelError> {
    let map = object
        .maps()
        .find(|map| map.name() == name)
        .ok_or(KernelError::Incomplete { name })?;
    MapHandle::try_from(&map).map_err(KernelError::refused("open its maps"))
}

/// A map of the loaded program that user space reads and writes directly.
pub(crate) fn shared_memory(
    object: &Object,
    what: &'static str,
) -> Result<SharedMemory, KernelError> {
    let map = map(object, what)?;
    SharedMemory::map(&map).map_err(|source| KernelError::Map { what, source })
}
