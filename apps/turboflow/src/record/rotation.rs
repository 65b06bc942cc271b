// SPDX-License-Identifier: Apache-2.0
//! Outputs that are files following one another: `-w flows-%Y%m%dT%H%M%S.parquet --rotate 5m`.

use std::path::{Path, PathBuf};

use anyhow::bail;
use turboflow_formats::{
    ExportError, FlowWriter, Format, NamePattern, RotateEvent, RotateOptions, WriteOptions, rotate,
};
use turboflow_record::Schema;

use super::RecordArgs;
use super::collectors::{target_of, wall_ms};
use crate::log::say;
use crate::signals;
use crate::units::counted;

/// The pattern that an output is named by. Files read from are metered in one go: their outputs
/// keep a `%` as it is.
pub(super) fn pattern_of(args: &RecordArgs, path: &Path) -> anyhow::Result<Option<NamePattern>> {
    match path.to_str() {
        Some(text) if !args.interface.is_empty() && NamePattern::is_meant(path) => {
            Ok(Some(text.parse()?))
        }
        _ => Ok(None),
    }
}

/// Whether SIGHUP asks for new files. It ends other runs, since it comes when a terminal closes.
pub(super) fn turns_files(args: &RecordArgs) -> bool {
    let is_pattern = |path: &PathBuf| matches!(pattern_of(args, path), Ok(Some(_)));
    args.write.iter().any(is_pattern)
}

/// Whether there is anything that `--rotate` could concern.
pub(super) fn check(args: &RecordArgs) -> anyhow::Result<()> {
    let option = match (args.rotate, args.rotate_size) {
        (None, None) => return Ok(()),
        (Some(_), _) => "--rotate",
        (None, Some(_)) => "--rotate-size",
    };
    for path in &args.write {
        if target_of(path)?.is_none() && pattern_of(args, path)?.is_some() {
            return Ok(());
        }
    }
    bail!(
        "{option} needs an output whose name has a time, for every file needs a name of its own: \
         -w flows-%Y%m%dT%H%M%S.parquet"
    )
}

pub(super) fn output(
    args: &RecordArgs,
    pattern: NamePattern,
    format: Format,
    schema: &Schema,
    write: &WriteOptions,
) -> Result<Box<dyn FlowWriter>, ExportError> {
    let options = RotateOptions {
        every_ms: args
            .rotate
            .map(|every| u64::try_from(every.as_millis()).unwrap_or(u64::MAX)),
        size_bytes: args.rotate_size,
        wall_ms,
        turns_asked: signals::turns_asked,
        observe: match args.quiet {
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
    say_failure(event);
}

fn say_failure(event: &RotateEvent<'_>) {
    if let RotateEvent::Failed(error) = event {
        say!(Error OutputFailed; "{error}; a new file is tried within a minute");
    }
}
