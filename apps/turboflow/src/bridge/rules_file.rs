// SPDX-License-Identifier: Apache-2.0
//! The file of rules, with the names of applications that inspection reports.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, anyhow};
use turboflow_bridge::Rules;
use turboflow_record::ApplicationNames;

use crate::applications;

/// A file of rules, and the application names that its rules may use.
#[derive(Clone, Debug)]
pub(crate) struct RulesFile {
    path: PathBuf,
    /// `None`: rules can match only headers and server names.
    names: Option<Arc<ApplicationNames>>,
}

impl RulesFile {
    /// A file of rules that may use all names of the inspector. Starts the inspector to get them,
    /// which takes about 0.1 s.
    pub(super) fn with_inspector(path: &Path) -> anyhow::Result<Self> {
        let names = match cfg!(feature = "dpi") {
            true => Some(applications::names().context("cannot look up names of applications")?),
            false => None,
        };
        Ok(Self::new(path, names))
    }

    /// A file of rules that may use these names.
    pub(crate) fn new(path: &Path, names: Option<Arc<ApplicationNames>>) -> Self {
        let path = path.to_owned();
        Self { path, names }
    }

    /// The path, for messages.
    pub(crate) fn name(&self) -> std::path::Display<'_> {
        self.path.display()
    }

    /// Reads and parses the file. `before`: the rules that the new ones replace.
    pub(crate) fn read(&self, before: Option<&Rules>) -> anyhow::Result<Rules> {
        let name = self.name();
        let text = std::fs::read_to_string(&self.path);
        let text = text.with_context(|| format!("cannot read the rules {name}"))?;
        Rules::parse(&text, self.names.as_deref(), before)
            .map_err(|error| anyhow!("{name}, {error}"))
    }
}
