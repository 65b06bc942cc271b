// SPDX-License-Identifier: Apache-2.0
//! The identity of this run's records: the columns `exporter`, `run` and `sequence`.

use std::sync::OnceLock;

use anyhow::{anyhow, bail};
use turboflow_formats::Identity;
use turboflow_record::{Column, Schema};
use turboflow_run::{OutputConfig, RunConfig};

use super::kafka;
use super::settings::random_number;
use crate::keys::Key;

/// The identity of this process's records. The run's number stays when outputs change.
pub(super) fn of_run(run: &RunConfig) -> anyhow::Result<Identity> {
    static RUN: OnceLock<u64> = OnceLock::new();
    named(run, *RUN.get_or_init(random_number))
}

/// The identity for another run within this process.
pub(super) fn of_another_run(run: &RunConfig) -> anyhow::Result<Identity> {
    named(run, random_number())
}

fn named(run: &RunConfig, number: u64) -> anyhow::Result<Identity> {
    let host = || rustix::system::uname().nodename().to_string_lossy().into();
    let exporter = run.service.exporter.clone().unwrap_or_else(host);
    Identity::new(&exporter, number).map_err(|reason| anyhow!("{}: {reason}", Key::Exporter))
}

/// The identity of the records of an output, if it has columns for it.
pub(super) fn of(run: &RunConfig, output: &OutputConfig) -> anyhow::Result<Option<Identity>> {
    has_columns(output).then(|| of_run(run)).transpose()
}

fn has_columns(output: &OutputConfig) -> bool {
    // Lake tables need identities to remove duplicates: their pipelines deliver at least once.
    output.identity || output.parquet_types.is_lake()
}

/// Refuses a name for this vantage point that no output has a column for.
pub(super) fn check_use(run: &RunConfig) -> anyhow::Result<()> {
    let shows = |output: &OutputConfig| {
        let is_topic = kafka::target_of(&output.to).is_ok_and(|target| target.is_some());
        is_topic || has_columns(output)
    };
    if run.service.exporter.is_some() && !run.outputs.iter().any(shows) {
        bail!(
            "no output has the column `exporter`: leave {} out, or add {} to an output in CSV, \
             JSON lines, Parquet or Arrow",
            Key::Exporter,
            Key::Identity
        );
    }
    Ok(())
}

/// The columns of an output, with those of the identity if there is one.
pub(super) fn schema(schema: &[Column], identity: Option<&Identity>) -> anyhow::Result<Schema> {
    match identity {
        None => Ok(schema.to_vec()),
        Some(_) => Identity::schema(schema).map_err(|taken| {
            anyhow!(
                "the definition has a column `{taken}`, but the identity of a record has a column \
                 of this name too: rename the feature, or leave {} and {} out",
                Key::Identity,
                Key::ParquetTypes
            )
        }),
    }
}
