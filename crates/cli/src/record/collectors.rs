// SPDX-License-Identifier: Apache-2.0
//! Outputs that are collectors: `-w ipfix+udp://host:4739`.

use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use turboflow_export::transport::{Clock, SendOptions, Target, send_to};
use turboflow_export::wire::{Protocol, WireOptions, left_out};
use turboflow_pipeline::Output;
use turboflow_record::ElementOptions;

use super::RecordArgs;
use super::settings::Settings;
use crate::exit::say;

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

/// The output that sends to `target`, the `index`-th of all outputs.
pub(super) fn output(
    target: &Target,
    index: usize,
    args: &RecordArgs,
    settings: &Settings,
    wire: &WireOptions,
) -> anyhow::Result<Output> {
    let schema = settings.layout.schema();
    let (process, index) = (std::process::id(), index as u32);
    let own_domain = match target.protocol {
        // Its engine id has 8 bits, of which runs one after the other take different ones.
        Protocol::Netflow5 => process.wrapping_add(index),
        _ => process << 8 | index,
    };
    let wire = WireOptions {
        domain: args.observation_domain.unwrap_or(own_domain),
        ..wire.clone()
    };
    let mut options = SendOptions {
        rate: args.export_rate,
        template_interval: args.template_interval,
        ..SendOptions::new(Clock { wall_ms, monotonic })
    };
    if !args.interface.is_empty() {
        // A writer that waited would lose packets: rather lose records, and say so.
        options.patience = Duration::ZERO;
    }
    let writer = send_to(target, schema, &wire, &options)?;
    let missing = left_out(target.protocol, schema, &wire.elements);
    if !missing.is_empty() && !args.quiet {
        say!(
            "turboflow: {target}: {} has no field for {}",
            target.protocol,
            missing.join(", ")
        );
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
