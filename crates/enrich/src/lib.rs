// SPDX-License-Identifier: Apache-2.0
//! What the user's files say about addresses and ports: names of hosts and services, autonomous
//! systems, countries, and sites with their owners.
//!
//! [`Enrichment`] holds the content of the files. [`Enricher`] binds it to the columns of records
//! and makes additional columns, a batch at a time; it looks up each distinct address once. This
//! crate does no I/O: files are passed in as texts and bytes.

mod database;
mod enricher;
mod error;
mod networks;
mod texts;

use std::collections::HashMap;
use std::net::IpAddr;

use database::{AsDatabase, CountryDatabase};
pub use enricher::Enricher;
pub use error::EnrichError;
use networks::Networks;

/// What is known about addresses and ports.
#[derive(Default)]
pub struct Enrichment {
    hosts: Option<HashMap<IpAddr, String>>,
    services: Option<HashMap<(u8, u16), String>>,
    networks: Option<Networks>,
    systems: Option<AsDatabase>,
    countries: Option<CountryDatabase>,
}

impl Enrichment {
    /// Adds names of hosts from a text in the form of `/etc/hosts`: an address, its name, and
    /// further names, which are ignored. The first name of an address counts.
    ///
    /// # Errors
    /// [`EnrichError::Line`] if a line is invalid.
    pub fn add_hosts(&mut self, text: &str) -> Result<(), EnrichError> {
        texts::hosts(text, self.hosts.get_or_insert_default())
    }

    /// Adds names of services from a text in the form of `/etc/services`: `https 443/tcp`. The
    /// first name of a port counts.
    ///
    /// # Errors
    /// [`EnrichError::Line`] if a line is invalid.
    pub fn add_services(&mut self, text: &str) -> Result<(), EnrichError> {
        texts::services(text, self.services.get_or_insert_default())
    }

    /// Adds sites and owners of networks from CSV with the columns `network`, `site` and `owner`.
    /// If several networks contain an address, the longest prefix counts.
    ///
    /// # Errors
    /// [`EnrichError::Line`] if a line is invalid.
    pub fn add_networks(&mut self, text: &str) -> Result<(), EnrichError> {
        texts::networks(text, self.networks.get_or_insert_default())
    }

    /// Adds autonomous systems from a database in MaxMind's format, such as GeoLite2 ASN.
    ///
    /// # Errors
    /// [`EnrichError::Database`] if it is not such a database.
    pub fn add_systems(&mut self, bytes: Vec<u8>) -> Result<(), EnrichError> {
        self.systems = Some(AsDatabase::read(bytes)?);
        Ok(())
    }

    /// Adds countries from a database in MaxMind's format, such as GeoLite2 Country or City.
    ///
    /// # Errors
    /// [`EnrichError::Database`] if it is not such a database.
    pub fn add_countries(&mut self, bytes: Vec<u8>) -> Result<(), EnrichError> {
        self.countries = Some(CountryDatabase::read(bytes)?);
        Ok(())
    }

    /// Whether nothing has been added.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.hosts.is_none()
            && self.services.is_none()
            && self.networks.is_none()
            && self.systems.is_none()
            && self.countries.is_none()
    }
}
