// SPDX-License-Identifier: Apache-2.0
//! What is sent, and how.

use std::io;

use turboflow_formats::{Identity, TextOptions};
use turboflow_record::Column;
use turboflow_transport::SendOptions;

/// The records of an output.
#[derive(Clone, Copy, Debug)]
pub struct Records<'a> {
    /// Columns of the records, without those of the identity.
    pub schema: &'a [Column],
    /// How many of the first columns are the flow key.
    pub key_columns: usize,
    /// Whether a record has two directions.
    pub is_biflow: bool,
    /// Exporter and run that the records are from.
    pub identity: &'a Identity,
    /// Key-value pairs for the metadata of Arrow schemas.
    pub metadata: &'a [(String, String)],
    /// Times and names in JSON.
    pub text: TextOptions,
}

/// How messages are sent.
#[derive(Clone, Debug)]
pub struct KafkaOptions {
    /// Timeouts, clocks and event listener, as for collectors. `trust_roots` is ignored:
    /// certificates are in `tls`.
    pub send: SendOptions,
    /// Certificates for TLS.
    pub tls: TlsTexts,
    /// The password of the login, if the target has one.
    pub password: Option<String>,
    /// Called once, with the place that ticks go to, when they can no longer be sent.
    pub observe_ticks: fn(&str, &io::Error),
}

/// Certificates in PEM, as texts: they are read before the program drops its rights.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct TlsTexts {
    /// Certificates of trusted authorities. `None`: those that the system trusts.
    pub authorities: Option<String>,
    /// The client certificate and its private key.
    pub client: Option<(String, String)>,
}

impl std::fmt::Debug for TlsTexts {
    /// Omits the key, which must not appear in a log.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("TlsTexts")
    }
}
