// SPDX-License-Identifier: Apache-2.0
//! `[[output]]`: a file, standard output or a collector, each with its own options.

use std::path::PathBuf;
use std::time::Duration;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use turboflow_formats::{Format, ParquetTypes, RotateBy, TimeForm};
use turboflow_record::{DOCUMENTATION_ENTERPRISE, TimeUnit};

use super::text::{self, flag};
use super::{CountAboveZero, Interval, Mtu, Rotation, Size, Time, units};

/// One output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct OutputConfig {
    /// The file, `-` for standard output, or the address of a collector.
    pub to: PathBuf,
    /// The format. `None`: from the file name.
    #[serde(with = "text::option", skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// The form of times in CSV and JSON lines.
    #[serde(with = "text")]
    pub text_time: TimeForm,
    /// Whether protocols and end reasons have their names in CSV and JSON lines.
    #[serde(deserialize_with = "flag::deserialize")]
    pub names: bool,
    /// The types of Parquet columns.
    #[serde(with = "text")]
    pub parquet_types: ParquetTypes,
    /// After this time a new file begins. Requires a time pattern in the name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rotate: Option<Rotation>,
    /// After this many bytes a new file begins. Requires a time pattern in the name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rotate_size: Option<Size>,
    /// What names the file of a record.
    #[serde(with = "text")]
    pub rotate_by: RotateBy,
    /// Files that are older than this are removed. Requires a time pattern in the name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep: Option<Time>,
    /// The oldest files are removed beyond this many bytes. Requires a time pattern in the name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_size: Option<Size>,
    /// The file with the key by which addresses are replaced. `None`: they are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anonymize: Option<PathBuf>,
    /// Whether records have columns for exporter, run and sequence. Outputs to Kafka always have.
    #[serde(deserialize_with = "flag::deserialize")]
    pub identity: bool,
    /// Maximum flow records per second to a collector.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<CountAboveZero>,
    /// Maximum size of a message in bytes.
    pub mtu: Mtu,
    /// How often templates and options are repeated over UDP.
    pub template_interval: Interval,
    /// Whether option records are sent: sampling, statistics and descriptions of elements.
    #[serde(deserialize_with = "flag::deserialize")]
    pub options: bool,
    /// Unit of a flow's first and last time in IPFIX.
    #[serde(serialize_with = "write_unit", deserialize_with = "read_unit")]
    pub time_unit: TimeUnit,
    /// Observation domain. `None`: chosen for this run.
    #[serde(with = "text::option", skip_serializing_if = "Option::is_none")]
    pub observation_domain: Option<u32>,
    /// Private enterprise number of elements that IANA does not define.
    #[serde(with = "text")]
    pub enterprise_number: u32,
    /// Certificates of the authorities trusted for a collector. `None`: the system's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_ca: Option<PathBuf>,
    /// The client certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_cert: Option<PathBuf>,
    /// The private key of the client certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_key: Option<PathBuf>,
}

impl Default for OutputConfig {
    fn default() -> Self {
        Self {
            to: PathBuf::new(),
            format: None,
            text_time: TimeForm::default(),
            names: false,
            parquet_types: ParquetTypes::default(),
            rotate: None,
            rotate_size: None,
            rotate_by: RotateBy::default(),
            keep: None,
            keep_size: None,
            anonymize: None,
            identity: false,
            rate: None,
            mtu: Mtu(1_400),
            template_interval: Interval(Duration::from_secs(30)),
            options: true,
            time_unit: TimeUnit::default(),
            observation_domain: None,
            enterprise_number: DOCUMENTATION_ENTERPRISE,
            tls_ca: None,
            tls_cert: None,
            tls_key: None,
        }
    }
}

fn write_unit<S: Serializer>(unit: &TimeUnit, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(units::time_unit_text(*unit))
}

fn read_unit<'de, D: Deserializer<'de>>(deserializer: D) -> Result<TimeUnit, D::Error> {
    let text = String::deserialize(deserializer)?;
    units::time_unit(&text).map_err(D::Error::custom)
}
