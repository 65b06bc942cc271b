// SPDX-License-Identifier: Apache-2.0
//! Which records are sent, and how.

use std::io;

use turboflow_formats::{Identity, TextOptions};
use turboflow_record::Column;
use turboflow_transport::SendOptions;

/// The records of an output.
#[derive(Clone, Copy, Debug)]
pub struct Records<'a> {
    /// Columns of the records, without the identity columns.
    pub schema: &'a [Column],
    /// How many of the first columns belong to the flow key.
    pub key_columns: usize,
    /// Whether a record covers both directions of a flow.
    pub is_biflow: bool,
    /// Exporter and run of the records.
    pub identity: &'a Identity,
    /// Key-value pairs for the metadata of Arrow schemas.
    pub metadata: &'a [(String, String)],
    /// How JSON writes times and names.
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
    /// The password for the login, if the target has a login.
    pub password: Option<String>,
    /// Called once when ticks can no longer be sent, with the place that they were sent to.
    pub observe_ticks: fn(&str, &io::Error),
}

/// Certificates as PEM texts, because the files are read before the program drops its privileges.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct TlsTexts {
    /// Certificates of trusted authorities. `None`: those that the system trusts.
    pub authorities: Option<String>,
    /// The client certificate and its private key.
    pub client: Option<(String, String)>,
}

impl std::fmt::Debug for TlsTexts {
    /// Leaves out the private key, which must not appear in a log.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("TlsTexts")
    }
}
