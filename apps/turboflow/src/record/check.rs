// SPDX-License-Identifier: Apache-2.0
//! Whether a configuration makes sense, without opening what it names.

use std::path::PathBuf;

use turboflow_record::Definition;
use turboflow_run::RunConfig;

use super::collectors::TlsRead;
use super::settings::{self, Settings};
use super::{filter, outputs};
use crate::interfaces;

/// What says which definition is read, and whether it is right.
type DefinitionNames = (Option<PathBuf>, String, bool);

/// What was in the files that are read when a service starts. Once its rights are given up, it may
/// not be able to read them again, nor has it to.
pub(crate) struct FilesRead {
    names: DefinitionNames,
    definition: Definition,
    tls: TlsRead,
}

/// Says what is wrong with a configuration, as far as that can be told without opening anything.
/// Files of the same names as `before` are not read again.
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
    let tls_before = before.map(|read| &read.tls);
    let tls = TlsRead::new(run, tls_before.as_slice())?;
    let settings = Settings::with(run, definition.clone())?;
    outputs::Maker::new(run, &settings, &tls)?.check()?;
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
        tls,
    })
}
