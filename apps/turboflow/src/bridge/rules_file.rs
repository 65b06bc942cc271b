// SPDX-License-Identifier: Apache-2.0
//! The file of rules, with the names of the inspection.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, anyhow};
use turboflow_bridge::Rules;
use turboflow_record::ApplicationNames;

use crate::applications;

/// A file of rules, and the names that its rules may have.
#[derive(Clone, Debug)]
pub(crate) struct RulesFile {
    path: PathBuf,
    /// Without them, rules ask for headers and server names alone.
    names: Option<Arc<ApplicationNames>>,
}

impl RulesFile {
    /// The file of that name. Starts the inspector for its names, which takes some 0.1 s.
    pub(super) fn with_inspector(path: &Path) -> anyhow::Result<Self> {
        let names = match cfg!(feature = "dpi") {
            true => Some(applications::names().context("cannot look up names of applications")?),
            false => None,
        };
        Ok(Self::new(path, names))
    }

    /// The file of that name, for rules with these names.
    pub(crate) fn new(path: &Path, names: Option<Arc<ApplicationNames>>) -> Self {
        let path = path.to_owned();
        Self { path, names }
    }

    /// Its name.
    pub(crate) fn name(&self) -> std::path::Display<'_> {
        self.path.display()
    }

    /// Reads it. `before` are the rules that these replace.
    pub(crate) fn read(&self, before: Option<&Rules>) -> anyhow::Result<Rules> {
        let name = self.name();
        let text = std::fs::read_to_string(&self.path);
        let text = text.with_context(|| format!("cannot read the rules {name}"))?;
        Rules::parse(&text, self.names.as_deref(), before)
            .map_err(|error| anyhow!("{name}, {error}"))
    }
}
