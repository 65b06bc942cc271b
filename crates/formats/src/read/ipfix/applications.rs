// SPDX-License-Identifier: Apache-2.0
//! Names of applications, which a file contains once each (RFC 6759, section 4.2).

use std::borrow::Cow;
use std::collections::HashMap;

use super::messages::Value;

/// applicationId and applicationName.
pub(super) const ID: u16 = 95;
pub(super) const NAME: u16 = 96;

/// Limit on the number of applications that a file names, and on the total bytes of their names.
const NAMED_MAX: usize = 1 << 18;
const BYTES_MAX: usize = 16 << 20;

/// The classification engine whose application numbers are assigned by an enterprise (RFC 6759,
/// section 4.1).
const ENGINE_WITH_ENTERPRISE: u8 = 20;

/// The applications that a file names.
#[derive(Default)]
pub(super) struct Applications {
    names: HashMap<Vec<u8>, String>,
    bytes: usize,
}

impl Applications {
    /// Learns the name of an application from an options record.
    ///
    /// # Errors
    /// If there are more than an exporter can know.
    pub(super) fn learn(&mut self, values: &[Value<'_>]) -> Result<(), String> {
        let octets = |id: u16| {
            let found = values.iter().find(|value| value.element == (None, id));
            found.map(|value| value.octets)
        };
        let (Some(id), Some(name)) = (octets(ID), octets(NAME)) else {
            return Ok(());
        };
        let name = String::from_utf8_lossy(name)
            .trim_end_matches('\0')
            .to_owned();
        self.bytes += id.len() + name.len();
        self.names.insert(id.to_vec(), name);
        match self.names.len() <= NAMED_MAX && self.bytes <= BYTES_MAX {
            true => Ok(()),
            false => Err(format!(
                "more than {NAMED_MAX} applications, or too long names: no flow records"
            )),
        }
    }

    /// The name of an application; if it has none, its engine and selector: `3:80`.
    pub(super) fn name(&self, id: &[u8]) -> Cow<'_, str> {
        if let Some(name) = self.names.get(id) {
            return Cow::Borrowed(name);
        }
        let number = |octets: &[u8]| {
            let number = |sum: u64, octet: &u8| sum << 8 | u64::from(*octet);
            octets.iter().fold(0, number).to_string()
        };
        Cow::Owned(match id {
            [ENGINE_WITH_ENTERPRISE, a, b, c, d, selector @ ..] => {
                let enterprise = u32::from_be_bytes([*a, *b, *c, *d]);
                format!("{ENGINE_WITH_ENTERPRISE}:{enterprise}:{}", number(selector))
            }
            [engine, selector @ ..] => format!("{engine}:{}", number(selector)),
            [] => String::new(),
        })
    }
}
