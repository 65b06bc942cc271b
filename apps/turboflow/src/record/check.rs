// SPDX-License-Identifier: Apache-2.0
//! Checks a configuration without opening the interfaces and outputs that it names.

use std::path::PathBuf;

use turboflow_record::Definition;
use turboflow_run::RunConfig;

use super::output_keys::OutputKeys;
use super::settings::{self, Settings};
use super::{filter, identity, outputs};
use crate::interfaces;

/// Everything that reading and checking the definition depends on: file, engine, biflow.
type DefinitionNames = (Option<PathBuf>, String, bool);

/// Contents of the files read when a service starts. Once it has dropped root, it may be unable to
/// read them again.
pub(crate) struct FilesRead {
    names: DefinitionNames,
    definition: Definition,
    keys: OutputKeys,
}

/// Checks a configuration as far as possible without opening anything. Reuses the files in `before`
/// instead of reading them again.
pub(crate) fn check(run: &RunConfig, before: Option<&FilesRead>) -> anyhow::Result<FilesRead> {
    let flow = &run.flow;
    let names = (
        flow.definition.clone(),
        run.engine.name.clone(),
        flow.biflow,
    );
    let definition = match before.filter(|read| read.names == names) {
        Some(read) => read.definition.clone(),
        None => settings::definition(run)?,
    };
    let keys_before = before.map(|read| &read.keys);
    let keys = OutputKeys::new(run, keys_before.as_slice())?;
    let settings = Settings::with(run, definition.clone())?;
    outputs::check(run, &settings)?;
    identity::check_use(run)?;
    filter::check(run)?;
    interfaces::check_names(run)?;
    match &settings.engine.remote {
        Some(remote) => remote.check(run, &settings.config, &settings.layout)?,
        None => interfaces::check_rings(run)?,
    }
    #[cfg(target_os = "linux")]
    run.service
        .user
        .as_deref()
        .map_or(Ok(()), crate::privileges::check)?;
    Ok(FilesRead {
        names,
        definition,
        keys,
    })
}
