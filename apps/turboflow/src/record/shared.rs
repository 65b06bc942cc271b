// SPDX-License-Identifier: Apache-2.0
//! Options given once for all outputs, by flags or by keys outside `[[output]]`. Each output gets
//! those that apply to it.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use turboflow_formats::wire::Protocol;
use turboflow_formats::{Format, NamePattern};
use turboflow_kafka::{KafkaTarget, MessageFormat};
use turboflow_run::OutputConfig;
use turboflow_transport::{Carrier, Content, Target};

use super::outputs::{is_stdout, name_of};
use super::sends;
use crate::keys::{Key, OUTPUT};

/// All options of outputs. They are refused if they apply to no output.
fn options() -> impl Iterator<Item = Key> {
    Key::of(OUTPUT).filter(|key| *key != Key::To)
}

/// The kind of an output, as far as its address and the given format reveal it.
enum Kind {
    Topic {
        by_tls: bool,
        is_json: bool,
    },
    /// Both are `None` if the address is invalid.
    Collector {
        carrier: Option<Carrier>,
        protocol: Option<Protocol>,
    },
    /// Microflow records of a probe. The carrier is `None` for a file.
    Microflows {
        carrier: Option<Carrier>,
    },
    File {
        format: Option<Format>,
        has_time: bool,
    },
}

impl Kind {
    fn of(to: &Path, format: Option<Format>, is_live: bool) -> Self {
        match to.to_str() {
            // An invalid address is reported where the output is created.
            Some(text) if KafkaTarget::is_meant(text) => match text.parse::<KafkaTarget>() {
                Ok(target) => Self::Topic {
                    by_tls: target.is_tls,
                    is_json: target.format == MessageFormat::Json,
                },
                Err(_) => Self::Topic {
                    by_tls: true,
                    is_json: true,
                },
            },
            Some(text) if Target::is_meant(text) => match text.parse::<Target>() {
                Ok(target) => match target.content {
                    Content::Microflows => Self::Microflows {
                        carrier: Some(target.carrier),
                    },
                    Content::Flows(protocol) => Self::Collector {
                        carrier: Some(target.carrier),
                        protocol: Some(protocol),
                    },
                },
                Err(_) => Self::Collector {
                    carrier: None,
                    protocol: None,
                },
            },
            _ if sends::is_file(to) => Self::Microflows { carrier: None },
            _ => Self::File {
                format: Format::from_path(to).ok().or(format),
                has_time: is_live && to.to_str().is_some() && NamePattern::is_meant(to),
            },
        }
    }
}

/// Whether an option applies to an output with this address and the given format.
pub(crate) fn applies_to(key: Key, to: &Path, given: Option<Format>, is_live: bool) -> bool {
    match (key, Kind::of(to, given, is_live)) {
        (Key::To, _) => true,
        (key, Kind::Microflows { carrier }) => match key {
            Key::Rate => carrier.is_some(),
            Key::Mtu => carrier == Some(Carrier::Udp),
            Key::TlsCa | Key::TlsCert | Key::TlsKeyFile => carrier == Some(Carrier::Tls),
            _ => false,
        },
        (Key::Anonymize, _) => true,
        (Key::Identity, Kind::Topic { .. }) => true,
        (Key::TextTime | Key::Names, Kind::Topic { is_json, .. }) => is_json,
        (Key::TlsCa | Key::TlsCert | Key::TlsKeyFile, Kind::Topic { by_tls, .. }) => by_tls,
        (_, Kind::Topic { .. }) => false,
        (Key::Format, Kind::Collector { .. }) => false,
        (Key::Format, Kind::File { .. }) => {
            is_stdout(to) || Format::from_path(to).map_or(true, |its| Some(its) == given)
        }
        (
            Key::Rotate | Key::RotateSize | Key::RotateBy | Key::Keep | Key::KeepSize,
            Kind::File { has_time, .. },
        ) => has_time,
        (
            Key::Rotate | Key::RotateSize | Key::RotateBy | Key::Keep | Key::KeepSize,
            Kind::Collector { .. },
        ) => false,
        (Key::TextTime | Key::Names, kind) => match kind {
            Kind::Collector { .. } | Kind::Microflows { .. } | Kind::Topic { .. } => false,
            // Standard output is text unless another format is asked for.
            Kind::File { format, .. } => format.is_none_or(|format| format.is_text()),
        },
        (Key::ParquetTypes, Kind::Collector { .. }) => false,
        (Key::ParquetTypes, Kind::File { format, .. }) => {
            format.is_none_or(|format| format == Format::Parquet)
        }
        (Key::Identity, Kind::Collector { .. }) => false,
        (Key::Identity, Kind::File { format, .. }) => format != Some(Format::Ipfix),
        (Key::Rate, kind) => matches!(kind, Kind::Collector { .. }),
        // Files have no templates to repeat, and NetFlow v5 has none at all.
        (Key::TemplateInterval, Kind::File { .. }) => false,
        (Key::TemplateInterval | Key::ExportOptions, Kind::Collector { protocol, .. }) => {
            protocol != Some(Protocol::Netflow5)
        }
        // NetFlow has no elements of enterprises, and times in milliseconds.
        (Key::EnterpriseNumber | Key::TimeUnit, Kind::Collector { protocol, .. }) => {
            protocol.is_none_or(|protocol| protocol == Protocol::Ipfix)
        }
        (Key::TlsCa | Key::TlsCert | Key::TlsKeyFile, kind) => {
            matches!(
                kind,
                Kind::Collector {
                    carrier: Some(Carrier::Tls) | None,
                    ..
                }
            )
        }
        (Key::Mtu, kind) => {
            matches!(
                kind,
                Kind::Collector {
                    carrier: Some(Carrier::Udp) | None,
                    ..
                }
            )
        }
        (_, Kind::File { format, .. }) => format.is_none_or(|format| format == Format::Ipfix),
        (_, Kind::Collector { .. }) => true,
    }
}

/// Resets an option to its default.
fn reset(output: &mut OutputConfig, key: Key) {
    let default = OutputConfig::default();
    match key {
        Key::Format => output.format = default.format,
        Key::TextTime => output.text_time = default.text_time,
        Key::Names => output.names = default.names,
        Key::ParquetTypes => output.parquet_types = default.parquet_types,
        Key::Rotate => output.rotate = default.rotate,
        Key::RotateSize => output.rotate_size = default.rotate_size,
        Key::RotateBy => output.rotate_by = default.rotate_by,
        Key::Keep => output.keep = default.keep,
        Key::KeepSize => output.keep_size = default.keep_size,
        Key::Anonymize => output.anonymize = default.anonymize,
        Key::Identity => output.identity = default.identity,
        Key::Rate => output.rate = default.rate,
        Key::Mtu => output.mtu = default.mtu,
        Key::TemplateInterval => output.template_interval = default.template_interval,
        Key::ExportOptions => output.options = default.options,
        Key::TimeUnit => output.time_unit = default.time_unit,
        Key::ObservationDomain => output.observation_domain = default.observation_domain,
        Key::EnterpriseNumber => output.enterprise_number = default.enterprise_number,
        Key::TlsCa => output.tls_ca = default.tls_ca,
        Key::TlsCert => output.tls_cert = default.tls_cert,
        Key::TlsKeyFile => output.tls_key = default.tls_key,
        _ => {}
    }
}

/// Options of an output that are set but do not apply to it.
fn inapplicable(output: &OutputConfig, is_live: bool) -> impl Iterator<Item = Key> {
    Key::of(OUTPUT).filter(move |key| {
        let mut without = output.clone();
        reset(&mut without, *key);
        without != *output && !applies_to(*key, &output.to, output.format, is_live)
    })
}

/// The output with only the options that apply to it.
pub(super) fn own(mut output: OutputConfig, is_live: bool) -> OutputConfig {
    for key in inapplicable(&output.clone(), is_live) {
        reset(&mut output, key);
    }
    output
}

/// Refuses an option of an output that does not apply to it.
pub(super) fn check(output: &OutputConfig, is_live: bool) -> anyhow::Result<()> {
    let first = inapplicable(output, is_live).next();
    first.map_or(Ok(()), |key| {
        Err(not_applicable(key, output.format, Some(&output.to)))
    })
}

/// Creates the configurations of outputs that share one set of options. Each gets those that apply
/// to it.
pub(super) fn spread(
    shared: &OutputConfig,
    write: &[PathBuf],
    is_live: bool,
) -> anyhow::Result<Vec<OutputConfig>> {
    let outputs = write.iter().map(|to| OutputConfig {
        to: to.clone(),
        ..shared.clone()
    });
    for key in options() {
        let mut without = shared.clone();
        reset(&mut without, key);
        if without != *shared {
            check_use(key, shared.format, write, is_live)?;
        }
    }
    Ok(outputs.map(|output| own(output, is_live)).collect())
}

/// Refuses an option for all outputs that applies to none.
pub(crate) fn check_use(
    key: Key,
    format: Option<Format>,
    write: &[PathBuf],
    is_live: bool,
) -> anyhow::Result<()> {
    let is_used = |to: &PathBuf| applies_to(key, to, format, is_live);
    if !write.iter().any(is_used) {
        return Err(not_applicable(
            key,
            format,
            write.first().map(PathBuf::as_path),
        ));
    }
    Ok(())
}

/// The error for an option that applies to no output, and how to fix it.
fn not_applicable(key: Key, format: Option<Format>, to: Option<&Path>) -> anyhow::Error {
    match (key, to, format) {
        (Key::Format, None, _) => {
            anyhow!("{key} is of no use without -w: add `-w -` for standard output")
        }
        (Key::Format, Some(to), Some(format)) => anyhow!(
            "{} is of no use with {}, whose extension selects the format: leave it out, or \
             write to another name or to `-`",
            key.with(&format.to_string()),
            name_of(to)
        ),
        (Key::Rotate | Key::RotateSize | Key::RotateBy | Key::Keep | Key::KeepSize, ..) => anyhow!(
            "{key} needs an output whose name has a time, because every file needs its own name: {}",
            Key::To.with("flows-%Y%m%dT%H%M%S.parquet")
        ),
        (Key::TlsCa | Key::TlsCert | Key::TlsKeyFile, ..) => {
            let example = Key::To.with("ipfix+tls://HOST:PORT");
            anyhow!("{key} is for collectors over TLS: {example}")
        }
        (Key::Mtu, ..) => {
            let example = Key::To.with("ipfix+udp://HOST:PORT");
            anyhow!("{key} is for collectors over UDP: {example}")
        }
        (Key::Identity, Some(_), _) => anyhow!(
            "{key} is for CSV, JSON lines, Parquet and Arrow ({}); IPFIX and NetFlow have \
             observation domains and sequence numbers instead",
            Key::To.with("flows.parquet")
        ),
        (
            Key::Rate
            | Key::TemplateInterval
            | Key::ExportOptions
            | Key::TimeUnit
            | Key::ObservationDomain
            | Key::EnterpriseNumber,
            to,
            _,
        ) => anyhow!(
            "{key} is of no use {}: it is for {}, such as {}",
            to.map_or_else(
                || "without -w".to_owned(),
                |to| format!("with {}", name_of(to))
            ),
            match key {
                Key::EnterpriseNumber | Key::TimeUnit => "IPFIX",
                Key::ExportOptions => "IPFIX and NetFlow v9",
                Key::TemplateInterval => "collectors of IPFIX and NetFlow v9",
                Key::ObservationDomain => "collectors and IPFIX files",
                _ => "collectors",
            },
            Key::To.with("ipfix+udp://HOST:PORT")
        ),
        (Key::ParquetTypes, ..) => {
            anyhow!("{key} is for Parquet: {}", Key::To.with("flows.parquet"))
        }
        (Key::TextTime | Key::Names, ..) => anyhow!(
            "{key} is for CSV and JSON lines: {}",
            Key::To.with("flows.csv")
        ),
        (_, to, _) => anyhow!(
            "{key} is of no use with {}: leave it out",
            to.map_or_else(|| "no output".to_owned(), name_of)
        ),
    }
}
