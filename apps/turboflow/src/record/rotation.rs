// SPDX-License-Identifier: Apache-2.0
//! Outputs that are sequences of files: `-w flows-%Y%m%dT%H%M%S.parquet --rotate 5m`.

use std::path::Path;
use std::time::Duration;

use anyhow::bail;
use turboflow_formats::{
    ExportError, FlowWriter, Format, NamePattern, Retention, RotateBy, RotateEvent, RotateOptions,
    WriteOptions, rotate,
};
use turboflow_record::Schema;
use turboflow_run::{OutputConfig, Rotation, RunConfig, Size, Time};

use super::collectors::wall_ms;
use crate::keys::Key;
use crate::log::say;
use crate::signals;
use crate::units::counted;

/// The time pattern in the name of an output. Runs over captures do not rotate files: `%` in their
/// names is kept as it is.
pub(super) fn pattern_of(run: &RunConfig, path: &Path) -> anyhow::Result<Option<NamePattern>> {
    match path.to_str() {
        Some(text) if run.goes_on() && NamePattern::is_meant(path) => Ok(Some(text.parse()?)),
        _ => Ok(None),
    }
}

/// Maximum number of periods that a record may reach back if files are named by the time of their
/// records. This many files are open; with more, each batch would complete some and start others.
const MOST_PERIODS: u32 = 3;

/// Refuses to name files by the time of records if these may span too many periods.
pub(super) fn check_periods(run: &RunConfig, output: &OutputConfig) -> anyhow::Result<()> {
    let Some(Rotation(every)) = output.rotate else {
        return Ok(());
    };
    let active = run.timeouts.active.0.map(Duration::from_nanos);
    let window = run.timeouts.align.map(|window| window.0);
    let longest = active.into_iter().chain(window).min();
    if output.rotate_by == RotateBy::Record
        && longest.is_none_or(|longest| longest > every * MOST_PERIODS)
    {
        bail!(
            "{} puts a record into the file of the time when its flow began, but flows may last \
             longer than {MOST_PERIODS} times {}, so that each interval would have many files: \
             lower {}, or raise {}",
            Key::RotateBy.with("record"),
            Key::Rotate,
            Key::ActiveTimeout,
            Key::Rotate
        );
    }
    Ok(())
}

/// Whether SIGHUP starts new files. Otherwise it ends the run, because closing a terminal sends
/// SIGHUP.
pub(super) fn turns_files(run: &RunConfig) -> bool {
    let is_pattern = |output: &OutputConfig| matches!(pattern_of(run, &output.to), Ok(Some(_)));
    run.outputs.iter().any(is_pattern)
}

pub(super) fn output(
    run: &RunConfig,
    output: &OutputConfig,
    pattern: NamePattern,
    format: Format,
    schema: &Schema,
    write: &WriteOptions,
) -> Result<Box<dyn FlowWriter>, ExportError> {
    let options = RotateOptions {
        every_ms: output
            .rotate
            .map(|Rotation(every)| u64::try_from(every.as_millis()).unwrap_or(u64::MAX)),
        size_bytes: output.rotate_size.map(|Size(bytes)| bytes),
        by: output.rotate_by,
        keep: Retention {
            age_seconds: output.keep.map(|Time(age)| age.as_secs()),
            total_bytes: output.keep_size.map(|Size(bytes)| bytes),
        },
        wall_ms,
        turns_asked: signals::turns_asked,
        observe: match run.service.quiet {
            true => say_failure,
            false => say_all,
        },
    };
    rotate(pattern, format, schema, write, options)
}

fn say_all(event: &RotateEvent<'_>) {
    if let RotateEvent::Completed(path, summary) = event {
        let records = counted(summary.records, "flow record");
        let file = path.display().to_string();
        say!(Info FileCompleted, file = file.as_str(), records = summary.records,
            bytes = summary.bytes; "{file} is complete: {records}");
    }
    if let RotateEvent::Removed(path, bytes) = event {
        let file = path.display().to_string();
        say!(Info FileRemoved, file = file.as_str(), bytes = *bytes;
            "{file} was removed: it was over the limit on age or total size");
    }
    say_failure(event);
}

fn say_failure(event: &RotateEvent<'_>) {
    match event {
        RotateEvent::Failed(error) => {
            say!(Error OutputFailed; "{error}; a new file will be tried within a minute");
        }
        RotateEvent::NotRemoved(path, error) => {
            let file = path.display().to_string();
            say!(Warning FileNotRemoved, file = file.as_str();
                "{file} is over the limit on age or total size, but cannot be removed: {error}");
        }
        RotateEvent::Completed(..) | RotateEvent::Removed(..) => {}
    }
}
