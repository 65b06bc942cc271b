// SPDX-License-Identifier: Apache-2.0
//! Log lines on standard error, one per event: text for people, or JSON for programs. Never one per
//! packet.

use std::borrow::Cow;
use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::builder::styling::AnsiColor;
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
    AnswerNote "answer_note"
    BridgeFails "bridge_fails"
    #[cfg(feature = "kernel")]
    Bridging "bridging"
    CaptureDamaged "capture_damaged"
    CaptureFailed "capture_failed"
    CapturePassedOver "capture_passed_over"
    ClockSetBack "clock_set_back"
    CollectorDown "collector_down"
    CollectorUp "collector_up"
    ColumnsLeftOut "columns_left_out"
    ConfigurationChecked "configuration_checked"
    CouldNotRun "could_not_run"
    #[cfg(feature = "kernel")]
    DryRun "dry_run"
    EngineDisplaced "engine_displaced"
    EngineFailed "engine_failed"
    EngineShort "engine_short"
    ExporterRefused "exporter_refused"
    FileCompleted "file_completed"
    FileNotRead "file_not_read"
    FileNotRemoved "file_not_removed"
    FileRemoved "file_removed"
    Finished "finished"
    Finishing "finishing"
    FlowsLeftEarly "flows_left_early"
    Generated "generated"
    Incomplete "incomplete"
    InspectionsDropped "inspections_dropped"
    InspectorRestarted "inspector_restarted"
    InterfaceDown "interface_down"
    InterfaceGone "interface_gone"
    InterfaceUp "interface_up"
    KeyRenamed "key_renamed"
    LedgerFailed "ledger_failed"
    LedgerImbalance "ledger_imbalance"
    LeftOver "left_over"
    Listening "listening"
    LogNotRead "log_not_read"
    MemoryLimited "memory_limited"
    MemoryRefused "memory_refused"
    #[cfg(feature = "kernel")]
    FramesComeBack "frames_come_back"
    #[cfg(feature = "kernel")]
    FramesLost "frames_lost"
    NeedsRestart "needs_restart"
    NoReader "no_reader"
    NotServing "not_serving"
    OutOfRange "out_of_range"
    OutputFailed "output_failed"
    OutputOverrun "output_overrun"
    PacketsDropped "packets_dropped"
    PacketsMerged "packets_merged"
    PacketsNotInspected "packets_not_inspected"
    ProbeUnheard "probe_unheard"
    RateMissed "rate_missed"
    RecordsCut "records_cut"
    RecordsMissing "records_missing"
    ReloadRefused "reload_refused"
    Reloaded "reloaded"
    RulesDoubtful "rules_doubtful"
    #[cfg(feature = "kernel")]
    RulesInForce "rules_in_force"
    #[cfg(feature = "kernel")]
    RulesRefused "rules_refused"
    SentAsLists "sent_as_lists"
    Serving "serving"
    ServingEveryone "serving_everyone"
    Sorted "sorted"
    Started "started"
    Stopped "stopped"
    TagsFiltered "tags_filtered"
    #[cfg(feature = "kernel")]
    TagsUnseen "tags_unseen"
    TicksLost "ticks_lost"
    TimesClamped "times_clamped"
    UnknownLinkType "unknown_link_type"
    #[cfg(feature = "kernel")]
    VethPorts "veth_ports"
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

/// Whether lines of text begin with the time.
static HAS_TIMES: AtomicBool = AtomicBool::new(false);

/// From now on, lines of text begin with the time: a run on interfaces may last for months. (In the
/// journal and in JSON they have it anyway.)
pub(crate) fn tell_times() {
    HAS_TIMES.store(true, Ordering::Relaxed);
}

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
    let message = &*without_os_numbers(message);
    let message = &*escaped(message);
    let line = match style {
        Style::Json => json(wall_ns(), level, event, fields, message),
        Style::Journal => format!("<{}>{}\n", level as u8, message.replace('\n', "; ")),
        Style::Text if HAS_TIMES.load(Ordering::Relaxed) => {
            let time = time_of_line(wall_ns());
            format!("{time} {}", text(level, message, is_coloured()))
        }
        Style::Text => text(level, message, is_coloured()),
    };
    // A single write, so that lines of several threads do not mix.
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// The time at the start of a text line, always with milliseconds, so that lines are aligned.
fn time_of_line(wall_ns: u64) -> String {
    let second = time_text(wall_ns / 1_000_000_000 * 1_000_000_000);
    let ms = wall_ns / 1_000_000 % 1_000;
    format!("{}.{ms:03}Z", second.trim_end_matches('Z'))
}

/// The message without the error numbers that the standard library adds to system errors.
fn without_os_numbers(message: &str) -> Cow<'_, str> {
    const BEGIN: &str = " (os error ";
    let Some(start) = message.find(BEGIN) else {
        return Cow::Borrowed(message);
    };
    let (before, rest) = message.split_at(start);
    let number = rest[BEGIN.len()..].split_once(')');
    match number.filter(|(number, _)| number.bytes().all(|byte| byte.is_ascii_digit())) {
        Some((_, after)) => Cow::Owned(format!("{before}{}", without_os_numbers(after))),
        None => Cow::Borrowed(message),
    }
}

/// Escapes control characters, which a file name or capture may contain and a terminal would obey.
/// Lines after the first are indented, so that none looks like a line of the log.
pub(crate) fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for (index, line) in text.split('\n').enumerate() {
        if index > 0 {
            escaped += if line.starts_with(' ') { "\n" } else { "\n  " };
        }
        escape(line, &mut escaped);
    }
    Cow::Owned(escaped)
}

/// Escapes control characters except newlines, for tables: every line keeps its position.
pub(crate) fn escaped_lines(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for (index, line) in text.split('\n').enumerate() {
        if index > 0 {
            escaped.push('\n');
        }
        escape(line, &mut escaped);
    }
    escaped
}

fn escape(line: &str, escaped: &mut String) {
    for character in line.chars() {
        match character.is_control() {
            true => escaped.extend(character.escape_default()),
            false => escaped.push(character),
        }
    }
}

/// Whether standard error is a terminal that shows colours (no-color.org).
fn is_coloured() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_some_and(|terminal| terminal == "dumb");
    std::io::stderr().is_terminal() && !is_dumb && !is_set("NO_COLOR")
}

fn text(level: Level, message: &str, is_coloured: bool) -> String {
    let colour = match level {
        Level::Error => AnsiColor::Red.on_default(),
        Level::Info => return format!("turboflow: {message}\n"),
        Level::Warning => AnsiColor::Yellow.on_default(),
    };
    let word = match level {
        Level::Warning => "turboflow: warning:",
        _ => "turboflow:",
    };
    match is_coloured {
        true => format!("{colour}{word}{colour:#} {message}\n"),
        false => format!("{word} {message}\n"),
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
        let plain = |level, message| text(level, message, false);
        assert_eq!(
            plain(Level::Warning, "it rains"),
            "turboflow: warning: it rains\n"
        );
        assert_eq!(plain(Level::Error, "it burns"), "turboflow: it burns\n");
        assert_eq!(plain(Level::Info, "it shines"), "turboflow: it shines\n");
        let coloured = text(Level::Error, "it burns", true);
        assert_eq!(coloured, "\u{1b}[31mturboflow:\u{1b}[0m it burns\n");
        assert_eq!(
            text(Level::Info, "it shines", true),
            "turboflow: it shines\n"
        );
    }

    #[test]
    fn names_give_a_terminal_no_orders() {
        assert_eq!(escaped("plain: ä"), "plain: ä");
        assert_eq!(
            escaped("a\u{1b}[2Jb\r\u{9b}1mc\nturboflow: forged\n  meant"),
            "a\\u{1b}[2Jb\\r\\u{9b}1mc\n  turboflow: forged\n  meant"
        );
    }

    #[test]
    fn lines_of_tables_stay_where_they_are() {
        let table = "name  n\n────  ─\n a    1\n\n";
        assert_eq!(escaped_lines(table), table);
        assert_eq!(escaped_lines("a\u{1b}[2J\r\nb"), "a\\u{1b}[2J\\r\nb");
    }

    #[test]
    fn times_of_lines_always_have_milliseconds() {
        for (wall_ns, time) in [
            (1_700_000_000_000_000_000, "2023-11-14T22:13:20.000Z"),
            (1_700_000_000_000_999_999, "2023-11-14T22:13:20.000Z"),
            (1_700_000_000_050_000_001, "2023-11-14T22:13:20.050Z"),
            (1_700_000_000_999_999_999, "2023-11-14T22:13:20.999Z"),
        ] {
            assert_eq!(time_of_line(wall_ns), time);
        }
    }

    #[test]
    fn numbers_of_the_system_are_left_out() {
        for (message, shown) in [
            ("a: no such file (os error 2)", "a: no such file"),
            ("a (os error 2): b (os error 13)!", "a: b!"),
            ("a (os error x), b", "a (os error x), b"),
            ("nothing", "nothing"),
        ] {
            assert_eq!(without_os_numbers(message), shown);
        }
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
