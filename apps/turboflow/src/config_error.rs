// SPDX-License-Identifier: Apache-2.0
//! Errors of a configuration, in terms of the flags or keys that the user wrote.

use anyhow::anyhow;
use turboflow_run::{ConfigError, Field, Separation};

use crate::keys::Key;

/// Converts an error of the library.
pub(crate) fn for_user(error: ConfigError) -> anyhow::Error {
    match error {
        ConfigError::OutOfRange {
            field,
            low,
            high,
            value,
        } => {
            let key = Key::from(field);
            let unit = match field {
                Field::ActiveTimeout | Field::IdleTimeout | Field::Linger => " (ns)",
                _ => "",
            };
            anyhow!("{key}{unit} must be from {low} to {high}, not {value}")
        }
        ConfigError::Readers {
            readers,
            separation,
        } => {
            let readers = Key::Readers.with(&readers.to_string());
            let what = match separation {
                Separation::Tunnels => format!(
                    "{}: a flow may come through tunnels of several address pairs",
                    Key::Decapsulate
                ),
                Separation::Reports => {
                    format!("{}: several nodes report about a flow", Key::IntReportPort)
                }
                Separation::Key => separation.to_string(),
            };
            anyhow!("{readers} does not go with {what}; leave one of them out")
        }
        error => error.into(),
    }
}
