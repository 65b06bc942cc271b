// SPDX-License-Identifier: Apache-2.0
//! Outputs that are collectors: `-w ipfix+udp://host:4739`.

use std::io;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail};
use turboflow_formats::wire::{Protocol, WireOptions, left_out};
use turboflow_record::ElementOptions;
use turboflow_run::Output;
use turboflow_transport::{
    Carrier, Clock, SendEvent, SendOptions, Target, Tls, TlsFiles, TlsPart, TransportError, send_to,
};

use super::RecordArgs;
use super::settings::Settings;
use crate::log::say;

const CLOCK: Clock = Clock { wall_ms, monotonic };

/// How long the end of metering interfaces waits for a collector that takes nothing: a service is
/// over within 5 s of being asked.
const LIVE_LINGER: Duration = Duration::from_secs(4);

/// How long that end may take for a collector that takes records slowly, or at the rate that was
/// asked for: less than a service manager waits (`TimeoutStopSec`), so that what is lost is counted.
const LIVE_DEADLINE: Duration = Duration::from_secs(10);

/// The domain of records in files: there is nobody to be told apart from.
const FILE_DOMAIN: u32 = 1;

/// The collector that an output names; `None` where it names a file.
pub(super) fn target_of(path: &Path) -> anyhow::Result<Option<Target>> {
    match path.to_str() {
        Some(text) if Target::is_meant(text) => Ok(Some(text.parse()?)),
        _ => Ok(None),
    }
}

/// How records are put on the wire; the domain is that of a file.
pub(super) fn wire_options(args: &RecordArgs, settings: &Settings) -> WireOptions {
    let elements = ElementOptions {
        enterprise: args.enterprise_number,
        time: args.export_time,
    };
    let config = &settings.config;
    WireOptions {
        elements: config.definition.elements(config.biflow, &elements),
        domain: args.observation_domain.unwrap_or(FILE_DOMAIN),
        message_bytes: usize::from(args.export_mtu),
        has_options: !args.no_export_options,
    }
}

/// Whether an output is sent by TLS.
pub(super) fn any_by_tls(args: &RecordArgs) -> anyhow::Result<bool> {
    let mut by_tls = false;
    for path in &args.write {
        by_tls |= target_of(path)?.is_some_and(|target| target.carrier == Carrier::Tls);
    }
    Ok(by_tls)
}

/// What TLS needs, where an output is sent by it.
pub(super) fn tls(args: &RecordArgs) -> anyhow::Result<Option<Tls>> {
    let by_tls = any_by_tls(args)?;
    let given = [
        (&args.tls_ca, "--tls-ca"),
        (&args.tls_cert, "--tls-cert"),
        (&args.tls_key, "--tls-key"),
    ];
    if !by_tls {
        if let Some((_, flag)) = given.iter().find(|(file, _)| file.is_some()) {
            bail!("{flag} is for collectors over TLS: -w ipfix+tls://HOST:PORT");
        }
        return Ok(None);
    }
    let files = TlsFiles {
        authorities: args.tls_ca.clone(),
        client: args.tls_cert.clone().zip(args.tls_key.clone()),
    };
    let flag = |error: &TransportError| match error {
        TransportError::Tls { part, .. } => match part {
            TlsPart::Authorities => "--tls-ca",
            TlsPart::Certificate => "--tls-cert",
            TlsPart::Key => "--tls-key",
        },
        _ => "TLS",
    };
    match Tls::new(&files, CLOCK) {
        Ok(tls) => Ok(Some(tls)),
        Err(error) => {
            let flag = flag(&error);
            Err(error).context(flag)
        }
    }
}

/// The output that sends to `target`.
pub(super) fn output(
    target: &Target,
    args: &RecordArgs,
    settings: &Settings,
    wire: &WireOptions,
    tls: Option<&Tls>,
) -> anyhow::Result<Output> {
    let schema = settings.layout.schema();
    static COLLECTORS: AtomicU32 = AtomicU32::new(0);
    let number = COLLECTORS.fetch_add(1, Ordering::Relaxed);
    let own_domain = match target.protocol {
        // Its engine id has 8 bits, of which runs one after the other take different ones.
        Protocol::Netflow5 => std::process::id().wrapping_add(number),
        _ => (std::process::id() << 8).wrapping_add(number),
    };
    let wire = WireOptions {
        domain: args.observation_domain.unwrap_or(own_domain),
        ..wire.clone()
    };
    let mut options = SendOptions {
        rate: args.export_rate,
        tls: tls.cloned(),
        observe: match args.quiet {
            true => say_lost,
            false => say_all,
        },
        template_interval: args.template_interval,
        ..SendOptions::new(CLOCK)
    };
    if !args.interface.is_empty() {
        // A writer that waited would lose packets: rather lose records, and say so.
        options.patience = Duration::ZERO;
        options.linger = LIVE_LINGER;
        options.deadline = Some(LIVE_DEADLINE);
    }
    let writer = send_to(target, schema, &wire, &options)?;
    let missing = left_out(target.protocol, schema, &wire.elements);
    if !missing.is_empty() && !args.quiet {
        let columns = missing.join(", ");
        say!(Info ColumnsLeftOut, output = target.to_string();
            "{target}: {} has no field for {columns}", target.protocol);
    }
    Ok(Output {
        name: target.to_string(),
        writer,
        // Its sender has a linger and a deadline of its own.
        may_stall: false,
    })
}

fn say_all(place: &str, event: &SendEvent<'_>) {
    match event {
        SendEvent::Lost(_) => say_lost(place, event),
        SendEvent::Back => say!(Info CollectorUp, output = place; "{place} takes records again"),
    }
}

fn say_lost(place: &str, event: &SendEvent<'_>) {
    if let SendEvent::Lost(error) = event {
        let error: &io::Error = error;
        say!(Error CollectorDown, output = place;
            "{place}: {error}; tried again until the run ends");
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
