// SPDX-License-Identifier: Apache-2.0
//! Log lines on standard error, one per event: text for people, or JSON for programs. Never one per
//! packet.

use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value};
use turboflow_query::time_text;
use turboflow_run::LogFormat;

use crate::keys::spelled;

/// Severity, with the numbers of syslog (RFC 5424, section 6.2.1), which the journal understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    Error = 3,
    Info = 6,
    Warning = 4,
}

impl Level {
    const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Info => "info",
            Self::Warning => "warning",
        }
    }
}

macro_rules! events {
    ($($(#[$attribute:meta])* $variant:ident $name:literal)*) => {
        /// An event. Programs may rely on its name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Event { $($(#[$attribute])* $variant),* }

        impl Event {
            #[cfg(test)]
            const ALL: &[Self] = &[$($(#[$attribute])* Self::$variant),*];

            const fn name(self) -> &'static str {
                match self { $($(#[$attribute])* Self::$variant => $name),* }
            }
        }
    };
}

events! {
    Aborted "aborted"
    CaptureDamaged "capture_damaged"
    CaptureFailed "capture_failed"
    CollectorDown "collector_down"
    CollectorUp "collector_up"
    ColumnsLeftOut "columns_left_out"
    ConfigurationChecked "configuration_checked"
    CouldNotRun "could_not_run"
    EngineDisplaced "engine_displaced"
    FileCompleted "file_completed"
    Finished "finished"
    Finishing "finishing"
    FlowsLeftEarly "flows_left_early"
    Generated "generated"
    InterfaceDown "interface_down"
    InterfaceGone "interface_gone"
    InterfaceUp "interface_up"
    KeyRenamed "key_renamed"
    LedgerFailed "ledger_failed"
    LedgerImbalance "ledger_imbalance"
    Listening "listening"
    NeedsRestart "needs_restart"
    OutputFailed "output_failed"
    OutputOverrun "output_overrun"
    PacketsDropped "packets_dropped"
    PacketsMerged "packets_merged"
    RateMissed "rate_missed"
    ReloadRefused "reload_refused"
    Reloaded "reloaded"
    Serving "serving"
    Started "started"
    Stopped "stopped"
    #[cfg(feature = "kernel")]
    TagsUnseen "tags_unseen"
    UnknownLinkType "unknown_link_type"
}

/// Format of the lines of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    /// For systemd's journal, which adds the name of the process and reads the level as a prefix
    /// (`man sd-daemon`).
    Journal,
    Json,
    Text,
}

static STYLE: OnceLock<Style> = OnceLock::new();

/// Sets the format of lines. Only the first call counts.
pub(crate) fn set_format(format: LogFormat) {
    let _ = STYLE.set(match format {
        LogFormat::Auto => default_style(),
        LogFormat::Json => Style::Json,
        LogFormat::Text => Style::Text,
    });
}

/// Whether a person may be watching, so that a progress bar is useful.
pub(crate) fn is_watched() -> bool {
    *STYLE.get_or_init(default_style) == Style::Text && std::io::stderr().is_terminal()
}

fn default_style() -> Style {
    // The journal identifies its stream in this variable. A child whose standard error is
    // redirected inherits it too, so this compares the stream.
    let journal = std::env::var("JOURNAL_STREAM").ok();
    let ours = rustix::fs::fstat(std::io::stderr().as_fd())
        .map(|stat| format!("{}:{}", stat.st_dev, stat.st_ino));
    match (journal, ours) {
        (Some(journal), Ok(ours)) if journal == ours => Style::Journal,
        _ => Style::Text,
    }
}

/// Writes one line. Called through `say!`. Errors are ignored, because there is no other place to
/// report them.
pub(crate) fn write(level: Level, event: Event, fields: &[(&str, Value)], message: &str) {
    let style = *STYLE.get_or_init(default_style);
    let message = &*spelled(message);
    let line = match style {
        Style::Json => json(wall_ns(), level, event, fields, message),
        Style::Journal => format!("<{}>{}\n", level as u8, message.replace('\n', "; ")),
        Style::Text => text(level, message),
    };
    // A single write, so that lines of several threads do not mix.
    let _ = std::io::stderr().write_all(line.as_bytes());
}

fn text(level: Level, message: &str) -> String {
    match level {
        Level::Warning => format!("turboflow: warning: {message}\n"),
        Level::Error | Level::Info => format!("turboflow: {message}\n"),
    }
}

fn json(
    wall_ns: u64,
    level: Level,
    event: Event,
    fields: &[(&str, Value)],
    message: &str,
) -> String {
    let mut object = Map::new();
    let head = [
        ("time", time_text(wall_ns)),
        ("level", level.name().to_owned()),
        ("event", event.name().to_owned()),
        ("message", message.to_owned()),
    ];
    object.extend(head.map(|(name, value)| (name.to_owned(), Value::from(value))));
    let named = |(name, value): &(&str, Value)| ((*name).to_owned(), value.clone());
    object.extend(fields.iter().map(named));
    format!("{}\n", Value::Object(object))
}

#[allow(clippy::disallowed_methods, reason = "a log says when")]
fn wall_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(0))
}

/// Logs an event: `say!(Warning InterfaceDown, interface = name; "{name} is down")`, with level,
/// event, fields, and a message for people.
macro_rules! say {
    ($level:ident $event:ident $(, $field:ident = $value:expr)* ; $($words:tt)*) => {
        $crate::log::write(
            $crate::log::Level::$level,
            $crate::log::Event::$event,
            &[$((stringify!($field), serde_json::Value::from($value))),*],
            &format!($($words)*),
        )
    };
}
pub(crate) use say;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_json_object_per_line() {
        let fields = [
            ("interface", Value::from("vb")),
            ("packets", Value::from(7)),
        ];
        let line = json(
            1_700_000_000_250_000_000,
            Level::Warning,
            Event::PacketsDropped,
            &fields,
            "two\nlines",
        );
        assert_eq!(line.matches('\n').count(), 1);
        let object: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(object["time"], "2023-11-14T22:13:20.250Z");
        assert_eq!(object["level"], "warning");
        assert_eq!(object["event"], "packets_dropped");
        assert_eq!(object["message"], "two\nlines");
        assert_eq!(object["packets"], 7);
    }

    #[test]
    fn text_lines_have_program_and_severity() {
        assert_eq!(
            text(Level::Warning, "it rains"),
            "turboflow: warning: it rains\n"
        );
        assert_eq!(text(Level::Error, "it burns"), "turboflow: it burns\n");
    }

    #[test]
    fn the_manual_lists_every_event() {
        let manual = include_str!("../../../docs/operating.md");
        for event in Event::ALL {
            let row = format!("| `{}` |", event.name());
            assert!(manual.contains(&row), "docs/operating.md lacks {row}");
        }
    }
}
