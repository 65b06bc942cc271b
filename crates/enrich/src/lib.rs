// SPDX-License-Identifier: Apache-2.0
//! What files of the user say of addresses and ports: names of hosts and services, autonomous
//! systems, countries, and sites with their owners.
//!
//! [`Enrichment`] holds what was read. [`Enricher`] binds it to the columns of records and makes
//! further columns, a batch at a time; of each distinct address it asks once. No I/O: files are
//! texts and bytes here.

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

/// What is known of addresses and ports.
#[derive(Default)]
pub struct Enrichment {
    hosts: Option<HashMap<IpAddr, String>>,
    services: Option<HashMap<(u8, u16), String>>,
    networks: Option<Networks>,
    systems: Option<AsDatabase>,
    countries: Option<CountryDatabase>,
}

impl Enrichment {
    /// Takes names of hosts from a text in the form of `/etc/hosts`: an address, its name, and
    /// further names that are passed over. The first name of an address counts.
    ///
    /// # Errors
    /// [`EnrichError::Line`].
    pub fn add_hosts(&mut self, text: &str) -> Result<(), EnrichError> {
        texts::hosts(text, self.hosts.get_or_insert_default())
    }

    /// Takes names of services from a text in the form of `/etc/services`: `https 443/tcp`. The
    /// first name of a port counts.
    ///
    /// # Errors
    /// [`EnrichError::Line`].
    pub fn add_services(&mut self, text: &str) -> Result<(), EnrichError> {
        texts::services(text, self.services.get_or_insert_default())
    }

    /// Takes sites and owners of networks from CSV with the columns `network`, `site` and `owner`.
    /// Of several networks that hold an address, the longest prefix counts.
    ///
    /// # Errors
    /// [`EnrichError::Line`].
    pub fn add_networks(&mut self, text: &str) -> Result<(), EnrichError> {
        texts::networks(text, self.networks.get_or_insert_default())
    }

    /// Takes autonomous systems from a database in MaxMind's format, such as GeoLite2 ASN.
    ///
    /// # Errors
    /// [`EnrichError::Database`].
    pub fn add_systems(&mut self, bytes: Vec<u8>) -> Result<(), EnrichError> {
        self.systems = Some(AsDatabase::read(bytes)?);
        Ok(())
    }

    /// Takes countries from a database in MaxMind's format, such as GeoLite2 Country or City.
    ///
    /// # Errors
    /// [`EnrichError::Database`].
    pub fn add_countries(&mut self, bytes: Vec<u8>) -> Result<(), EnrichError> {
        self.countries = Some(CountryDatabase::read(bytes)?);
        Ok(())
    }

    /// Whether nothing was taken.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.hosts.is_none()
            && self.services.is_none()
            && self.networks.is_none()
            && self.systems.is_none()
            && self.countries.is_none()
    }
}
