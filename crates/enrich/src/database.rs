// SPDX-License-Identifier: Apache-2.0
//! Databases in MaxMind's format (MMDB).

use std::net::IpAddr;

use maxminddb::{MaxMindDbError, Reader};
use serde::Deserialize;

use crate::EnrichError;

/// Autonomous systems by address.
pub(crate) struct AsDatabase(Reader<Vec<u8>>);

/// Countries by address.
pub(crate) struct CountryDatabase(Reader<Vec<u8>>);

/// As in GeoLite2 ASN; other databases have the same keys.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
pub(crate) struct System {
    #[serde(rename = "autonomous_system_number")]
    pub(crate) number: Option<u32>,
    #[serde(rename = "autonomous_system_organization")]
    pub(crate) name: Option<String>,
}

/// As in GeoLite2 Country and City.
#[derive(Default, Deserialize)]
struct Located {
    country: Option<Country>,
}

#[derive(Default, Deserialize)]
struct Country {
    iso_code: Option<String>,
}

fn read(bytes: Vec<u8>, kind: &str) -> Result<Reader<Vec<u8>>, EnrichError> {
    let reader = Reader::from_source(bytes).map_err(|error| {
        let reason = format!("it is not a database in MaxMind's format (.mmdb): {error}");
        EnrichError::Database(reason)
    })?;
    // The name of a database's type says what it contains: GeoLite2-Country, DBIP-Country-Lite, ...
    let name = &reader.metadata().database_type;
    let is_city = kind == "Country" && name.contains("City");
    match name.contains(kind) || is_city {
        true => Ok(reader),
        false => Err(EnrichError::Database(format!(
            "it is a database of the type {name:?}, not one whose type has {kind:?}"
        ))),
    }
}

/// The entry of an address. A broken entry counts as absent.
fn lookup<'a, T: Deserialize<'a>>(reader: &'a Reader<Vec<u8>>, address: IpAddr) -> Option<T> {
    let found = reader.lookup(address);
    let decoded: Result<Option<T>, MaxMindDbError> = found.and_then(|found| found.decode());
    decoded.ok().flatten()
}

impl AsDatabase {
    pub(crate) fn read(bytes: Vec<u8>) -> Result<Self, EnrichError> {
        read(bytes, "ASN").map(Self)
    }

    pub(crate) fn find(&self, address: IpAddr) -> System {
        lookup(&self.0, address).unwrap_or_default()
    }
}

impl CountryDatabase {
    pub(crate) fn read(bytes: Vec<u8>) -> Result<Self, EnrichError> {
        read(bytes, "Country").map(Self)
    }

    /// The ISO 3166-1 code of the country.
    pub(crate) fn find(&self, address: IpAddr) -> Option<String> {
        lookup::<Located>(&self.0, address)?.country?.iso_code
    }
}
