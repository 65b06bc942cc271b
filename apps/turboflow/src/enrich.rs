// SPDX-License-Identifier: Apache-2.0
//! The files that say more of addresses and ports than records do.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, anyhow};
use clap::Args;
use turboflow_query::{EnrichError, Enrichment, Input};

use crate::log::say;

/// Files of names, networks and databases.
#[derive(Debug, Args)]
#[command(next_help_heading = "More columns")]
pub(crate) struct EnrichArgs {
    /// Names of hosts, as in /etc/hosts: src_name and dst_name. Repeat for more
    #[arg(long, value_name = "FILE")]
    hosts: Vec<PathBuf>,

    /// Names of services, as in /etc/services: src_service and dst_service
    #[arg(long, value_name = "FILE")]
    services: Vec<PathBuf>,

    /// Sites and owners, as CSV of network,site,owner: src_site, src_owner and those of dst
    #[arg(long, value_name = "FILE")]
    networks: Vec<PathBuf>,

    /// Autonomous systems, a database in MaxMind's format: src_as, src_as_name and those of dst
    #[arg(long, value_name = "FILE.mmdb")]
    asn: Option<PathBuf>,

    /// Countries, a database in MaxMind's format: src_country and dst_country
    #[arg(long, value_name = "FILE.mmdb")]
    country: Option<PathBuf>,
}

impl EnrichArgs {
    /// Whether a file was given.
    pub(crate) fn is_given(&self) -> bool {
        let texts = [&self.hosts, &self.services, &self.networks];
        texts.iter().any(|files| !files.is_empty()) || self.asn.is_some() || self.country.is_some()
    }

    /// Gives an input the columns of these files.
    pub(crate) fn enrich(&self, input: &mut Input) -> anyhow::Result<()> {
        if let Some(enrichment) = self.read()? {
            say_taken(&input.enrich(enrichment));
        }
        Ok(())
    }

    /// What these files say, if there is one.
    pub(crate) fn read(&self) -> anyhow::Result<Option<Arc<Enrichment>>> {
        if !self.is_given() {
            return Ok(None);
        }
        let mut enrichment = Enrichment::default();
        let into = &mut enrichment;
        for path in &self.hosts {
            of(path, into.add_hosts(&text(path)?))?;
        }
        for path in &self.services {
            of(path, into.add_services(&text(path)?))?;
        }
        for path in &self.networks {
            of(path, into.add_networks(&text(path)?))?;
        }
        if let Some(path) = &self.asn {
            of(path, into.add_systems(bytes(path)?))?;
        }
        if let Some(path) = &self.country {
            of(path, into.add_countries(bytes(path)?))?;
        }
        Ok(Some(Arc::new(enrichment)))
    }
}

/// Says which columns the records have themselves.
pub(crate) fn say_taken(taken: &[String]) {
    if !taken.is_empty() {
        say!(Info AnswerNote; "the records have {} themselves: that is shown, not what files say",
            taken.join(", "));
    }
}

fn text(path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

fn bytes(path: &Path) -> anyhow::Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Names the file of an error.
fn of(path: &Path, outcome: Result<(), EnrichError>) -> anyhow::Result<()> {
    outcome.map_err(|error| match error {
        EnrichError::Line { line, reason } => anyhow!("{}, line {line}: {reason}", path.display()),
        EnrichError::Database(reason) => anyhow!("{}: {reason}", path.display()),
    })
}
