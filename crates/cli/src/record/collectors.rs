// SPDX-License-Identifier: Apache-2.0
//! Outputs that are collectors: `-w ipfix+udp://host:4739`.

use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use turboflow_export::transport::{Clock, SendOptions, Target, send_to};
use turboflow_export::wire::{WireOptions, left_out};
use turboflow_pipeline::Output;
use turboflow_record::ElementOptions;

use super::RecordArgs;
use super::settings::Settings;
use crate::log::say;

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
    }
}

/// The output that sends to `target`.
pub(super) fn output(
    target: &Target,
    args: &RecordArgs,
    settings: &Settings,
    wire: &WireOptions,
) -> anyhow::Result<Output> {
    let schema = settings.layout.schema();
    static COLLECTORS: AtomicU32 = AtomicU32::new(0);
    let number = COLLECTORS.fetch_add(1, Ordering::Relaxed);
    let own_domain = (std::process::id() << 8).wrapping_add(number);
    let wire = WireOptions {
        domain: args.observation_domain.unwrap_or(own_domain),
        ..wire.clone()
    };
    let mut options = SendOptions {
        rate: args.export_rate,
        ..SendOptions::new(Clock { wall_ms, monotonic })
    };
    if !args.interface.is_empty() {
        // A writer that waited would lose packets: rather lose records, and say so.
        options.patience = Duration::ZERO;
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
    })
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
