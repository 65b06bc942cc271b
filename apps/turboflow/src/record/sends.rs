// SPDX-License-Identifier: Apache-2.0
//! Determines which runs send their microflow records instead of merging them.

use std::path::Path;
use std::sync::Arc;

use anyhow::bail;
use turboflow_engine::wire::SenderCounters;
use turboflow_formats::NamePattern;
use turboflow_kafka::KafkaTarget;
use turboflow_merge::Layout;
use turboflow_record::InputSet;
use turboflow_run::{BridgeConfig, RunConfig};
use turboflow_transport::{Content, Target};

use crate::keys::Key;

/// The extension of a file of microflow records.
const EXTENSION: &str = "records";
/// Whether an output is a file of microflow records.
pub(super) fn is_file(to: &Path) -> bool {
    to.extension().is_some_and(|its| its == EXTENSION)
}

/// Whether an output takes microflow records.
pub(super) fn is_meant(to: &Path) -> anyhow::Result<bool> {
    match to.to_str() {
        Some(text) if KafkaTarget::is_meant(text) => Ok(false),
        Some(text) if Target::is_meant(text) => {
            Ok(text.parse::<Target>()?.content == Content::Microflows)
        }
        _ => Ok(is_file(to)),
    }
}

/// The counters of a run that sends its microflow records; `None` for other runs.
///
/// # Errors
/// The address of an output is invalid, or the run has outputs or options that microflow records
/// exclude.
pub(super) fn counters_of(
    run: &RunConfig,
    layout: &Layout,
) -> anyhow::Result<Option<Arc<SenderCounters>>> {
    let mut theirs = None;
    let mut others = None;
    for output in &run.outputs {
        match is_meant(&output.to)? {
            true => theirs = theirs.or(Some(&output.to)),
            false => others = others.or(Some(&output.to)),
        }
    }
    let Some(theirs) = theirs else {
        return Ok(None);
    };
    let name = theirs.display();
    if run.goes_on() && is_file(theirs) && NamePattern::is_meant(theirs) {
        bail!("{name}: microflow records are written to one file: leave the time out of its name");
    }
    if let Some(other) = others {
        bail!(
            "{name} takes microflow records, which are merged there, but {} takes flow records, \
             which are merged here: a run writes only one kind",
            other.display()
        );
    }
    if run.flow.biflow {
        bail!(
            "{name} takes microflow records, which have one direction: leave {} out",
            Key::Biflow
        );
    }
    if layout.needs().intersects(InputSet::INSPECTED) || run.bridge != BridgeConfig::default() {
        bail!(
            "{name} takes microflow records, which do not carry the names that {} finds: leave it \
             out",
            Key::Dpi
        );
    }
    Ok(Some(Arc::default()))
}
