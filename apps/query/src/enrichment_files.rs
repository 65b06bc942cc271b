// SPDX-License-Identifier: Apache-2.0
//! The files that add information about addresses and ports to the records.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use turboflow_enrich::{EnrichError, Enrichment};

use crate::QueryError;

/// Files of names, networks and databases.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EnrichmentFiles {
    /// Names of hosts, as in `/etc/hosts`.
    pub hosts: Vec<PathBuf>,
    /// Names of services, as in `/etc/services`.
    pub services: Vec<PathBuf>,
    /// Sites and owners of networks, in CSV.
    pub networks: Vec<PathBuf>,
    /// A database of autonomous systems.
    pub asn: Option<PathBuf>,
    /// A database of countries.
    pub country: Option<PathBuf>,
}

impl EnrichmentFiles {
    /// Whether there is no file.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Reads the files; `None` if there are none.
    ///
    /// # Errors
    /// [`QueryError::Enrichment`] with the file, and the line where there is one.
    pub fn read(&self) -> Result<Option<Arc<Enrichment>>, QueryError> {
        if self.is_empty() {
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

fn text(path: &Path) -> Result<String, QueryError> {
    std::fs::read_to_string(path).map_err(|error| unread(path, &error))
}

fn bytes(path: &Path) -> Result<Vec<u8>, QueryError> {
    std::fs::read(path).map_err(|error| unread(path, &error))
}

fn unread(path: &Path, error: &io::Error) -> QueryError {
    QueryError::Enrichment {
        place: format!("cannot read {}", path.display()),
        reason: error.to_string(),
    }
}

/// Adds the name of the file to an error.
fn of(path: &Path, outcome: Result<(), EnrichError>) -> Result<(), QueryError> {
    outcome.map_err(|error| {
        let file = path.display();
        let (place, reason) = match error {
            EnrichError::Line { line, reason } => (format!("{file}, line {line}"), reason),
            EnrichError::Database(reason) => (file.to_string(), reason),
        };
        QueryError::Enrichment { place, reason }
    })
}
