// SPDX-License-Identifier: Apache-2.0
//! Outputs that are collectors: `-w ipfix+udp://host:4739`.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use turboflow_formats::wire::{Protocol, WireOptions, left_out};
use turboflow_kafka::KafkaTarget;
use turboflow_record::{Column, ColumnKind, ElementOptions};
use turboflow_run::{CountAboveZero, Interval, Mtu, Output, OutputConfig, RunConfig};
use turboflow_transport::{Clock, SendEvent, SendOptions, Target, Tls, send_to};

use super::settings::{Settings, random_number};
use crate::interfaces;
use crate::log::say;

/// The clocks of this process, for senders and collectors.
pub(crate) const CLOCK: Clock = Clock { wall_ms, monotonic };

/// How long the shutdown of a live run waits for a stalled collector: a service must end within 5 s
/// of the request.
const LIVE_LINGER: Duration = Duration::from_secs(4);

/// How long shutdown may take for a collector that accepts records slowly, or at a configured rate.
/// It is shorter than the service manager's timeout (`TimeoutStopSec`), so that losses are still
/// counted.
const LIVE_DEADLINE: Duration = Duration::from_secs(10);

/// The observation domain in files, where exporters are never mixed.
pub(crate) const FILE_DOMAIN: u32 = 1;

/// The collector that an output names; `None` for a file or a topic.
///
/// # Errors
/// The address of the collector is invalid.
pub(super) fn target_of(path: &Path) -> anyhow::Result<Option<Target>> {
    match path.to_str() {
        Some(text) if KafkaTarget::is_meant(text) => Ok(None),
        Some(text) if Target::is_meant(text) => Ok(Some(text.parse()?)),
        _ => Ok(None),
    }
}

/// How records are encoded, with the observation domain for files.
pub(super) fn wire_options(output: &OutputConfig, settings: &Settings) -> WireOptions {
    let elements = ElementOptions {
        enterprise: output.enterprise_number,
        time: output.time_unit,
    };
    let config = &settings.config;
    let Mtu(message_bytes) = output.mtu;
    WireOptions {
        elements: config.definition.elements(config.biflow, &elements),
        domain: output.observation_domain.unwrap_or(FILE_DOMAIN),
        message_bytes: message_bytes.into(),
        has_options: output.options,
        applications: (config.inspection.as_ref()).map(|its| Arc::clone(its.names.names())),
        interface: None,
    }
}

/// The index of the interface, if the run meters exactly one.
fn only_interface(run: &RunConfig) -> Option<u32> {
    match &run.source.interfaces[..] {
        [name] => interfaces::index(name),
        _ => None,
    }
}

/// A new observation domain for an output of this run.
///
/// Collectors tell exporters apart by address and observation domain. Containers on a host often
/// share an address, and their processes often have equal process ids, as do the processes of a
/// restarted service. Therefore the domain starts at a random number. NetFlow v5 has room for its
/// low 16 bits only.
pub(crate) fn own_domain() -> u32 {
    static FIRST: OnceLock<u32> = OnceLock::new();
    static COLLECTORS: AtomicU32 = AtomicU32::new(0);
    let first = *FIRST.get_or_init(|| random_number() as u32);
    let domain = first.wrapping_add(COLLECTORS.fetch_add(1, Ordering::Relaxed));
    // In IPFIX, 0 means that there is none (RFC 7011, section 3.1).
    if domain == 0 { u32::MAX } else { domain }
}

/// How records of an output are sent.
pub(super) fn send_options(run: &RunConfig, output: &OutputConfig) -> SendOptions {
    let Interval(template_interval) = output.template_interval;
    let mut options = SendOptions {
        rate: output.rate.map(|CountAboveZero(rate)| rate),
        observe: match run.service.quiet {
            true => say_lost,
            false => say_all,
        },
        template_interval,
        ..SendOptions::new(CLOCK)
    };
    if run.goes_on() {
        // In a live run, waiting would lose packets. Lost records are at least counted.
        options.patience = Duration::ZERO;
        options.linger = LIVE_LINGER;
        options.deadline = Some(LIVE_DEADLINE);
    }
    options
}

/// The output that sends to `target`.
pub(super) fn output(
    (target, protocol): (&Target, Protocol),
    run: &RunConfig,
    output: &OutputConfig,
    settings: &Settings,
    tls: Option<&Tls>,
) -> anyhow::Result<Output> {
    let schema = settings.layout.schema();
    let wire = WireOptions {
        domain: output.observation_domain.unwrap_or_else(own_domain),
        interface: only_interface(run),
        ..wire_options(output, settings)
    };
    let options = SendOptions {
        tls: tls.cloned(),
        ..send_options(run, output)
    };
    let writer = send_to(target, schema, &wire, &options)?;
    let missing = left_out(protocol, schema, &wire.elements);
    if !missing.is_empty() && !run.service.quiet {
        let columns = missing.join(", ");
        say!(Info ColumnsLeftOut, output = target.to_string();
            "{target}: {protocol} has no field for {columns}");
    }
    let lists = lists(schema);
    if protocol == Protocol::Ipfix && !lists.is_empty() && !run.service.quiet {
        say!(Info SentAsLists, output = target.to_string();
            "{target}: {} in a basicList (RFC 6313), which nfcapd, pmacct and goflow2 skip; they \
             keep the other fields", lists.join(", "));
    }
    Ok(Output {
        name: target.to_string(),
        writer,
        // The sender enforces its own linger and deadline.
        may_stall: false,
    })
}

/// How stored records are sent: the sender waits for a slow collector.
pub(crate) fn sending() -> SendOptions {
    SendOptions {
        observe: say_all,
        ..SendOptions::new(CLOCK)
    }
}

fn say_all(place: &str, event: &SendEvent<'_>) {
    match event {
        SendEvent::Lost(_) => say_lost(place, event),
        SendEvent::Back => say!(Info CollectorUp, output = place; "{place} accepts records again"),
    }
}

fn say_lost(place: &str, event: &SendEvent<'_>) {
    if let SendEvent::Lost(error) = event {
        let error: &io::Error = error;
        say!(Error CollectorDown, output = place;
            "{place}: {error}; sending is tried again until the run ends");
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "messages and files say when they were made"
)]
pub(super) fn wall_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(0))
}

#[allow(
    clippy::disallowed_methods,
    reason = "pacing and patience are times that pass"
)]
fn monotonic() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    Instant::now() - *START.get_or_init(Instant::now)
}

/// The names of the columns that are lists.
fn lists(schema: &[Column]) -> Vec<&str> {
    let lists = schema
        .iter()
        .filter(|column| column.kind == ColumnKind::List);
    lists.map(|column| column.name.as_str()).collect()
}
