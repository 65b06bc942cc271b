// SPDX-License-Identifier: Apache-2.0
//! A run as a value: all settings of a user, in the sections of a configuration file.
//!
//! [`RunConfig`] is read from the file by serde, or built from the flags of the program. The rest
//! of the crate does not know which of the two was used. [`PipelineConfig`] is the part for the
//! meter.

mod engine;
mod output;
mod pipeline;
mod sections;
mod text;
pub mod units;

use serde::{Deserialize, Serialize};

pub use engine::EngineConfig;
pub use output::OutputConfig;
pub use pipeline::{ConfigError, Field, PipelineConfig, RunSizes, Separation};
pub use sections::{
    BridgeConfig, FlowConfig, LogFormat, MeterConfig, MetricsAt, ServiceConfig, SourceConfig,
    TimeoutsConfig,
};
pub use text::{
    Count, CountAboveZero, Interval, Linger, Mtu, Rotation, Seed, Size, SnapLength, Time, Timeout,
    Window, list,
};

/// All settings of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct RunConfig {
    /// Where packets come from.
    pub source: SourceConfig,
    /// The bridge, if there is one.
    #[serde(skip_serializing_if = "is_no_bridge")]
    pub bridge: BridgeConfig,
    /// What turns packets into microflow records.
    pub engine: EngineConfig,
    /// What a flow is.
    pub flow: FlowConfig,
    /// When flows end.
    pub timeouts: TimeoutsConfig,
    /// Memory and threads of the meter.
    pub meter: MeterConfig,
    /// Logs, metrics, ledger and rights.
    pub service: ServiceConfig,
    /// Where flow records go. Empty: a summary for people.
    #[serde(rename = "output")]
    pub outputs: Vec<OutputConfig>,
}

impl RunConfig {
    /// Whether packets or records are taken from interfaces as they arrive.
    #[must_use]
    pub fn is_live(&self) -> bool {
        let source = &self.source;
        !source.interfaces.is_empty() || !source.cpu_ports.is_empty() && source.files.is_empty()
    }

    /// Whether the run continues until it is told to end: over interfaces, and if an engine
    /// listens. Outputs of such a run may be sequences of files, and nothing waits for long.
    #[must_use]
    pub fn goes_on(&self) -> bool {
        self.is_live() || self.engine.listens()
    }

    /// The configuration as TOML. Values that are omitted by default are omitted here.
    ///
    /// # Errors
    /// If a path is not Unicode, which TOML requires.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        toml::to_string(self)
    }

    /// Keys whose values differ between two configurations, as `section.key`, in the order of the
    /// file. Outputs are compared as a whole, as `output`.
    #[must_use]
    pub fn keys_that_differ(&self, other: &Self) -> Vec<String> {
        let mut keys = Vec::new();
        let mut compare = |section: &str, differ: bool, ours: toml::Table, theirs: toml::Table| {
            if differ {
                differing(section, &ours, &theirs, &mut keys);
            }
        };
        macro_rules! sections {
            ($($name:ident),*) => {
                $(compare(
                    stringify!($name),
                    self.$name != other.$name,
                    table_of(&self.$name),
                    table_of(&other.$name),
                );)*
            };
        }
        sections!(source, bridge, engine, flow, timeouts, meter, service);
        if self.outputs != other.outputs {
            keys.push("output".to_owned());
        }
        keys
    }
}

fn is_no_bridge(bridge: &BridgeConfig) -> bool {
    *bridge == BridgeConfig::default()
}

/// A section as a table. If a path is not Unicode, the table is empty, and the section is compared
/// as a whole.
fn table_of(section: &impl Serialize) -> toml::Table {
    toml::Table::try_from(section).unwrap_or_default()
}

fn differing(section: &str, ours: &toml::Table, theirs: &toml::Table, keys: &mut Vec<String>) {
    let before = keys.len();
    let names: std::collections::BTreeSet<_> = ours.keys().chain(theirs.keys()).collect();
    for name in names {
        let key = format!("{section}.{name}");
        match (ours.get(name), theirs.get(name)) {
            (Some(ours), Some(theirs)) if ours == theirs => {}
            (Some(toml::Value::Table(ours)), Some(toml::Value::Table(theirs))) => {
                differing(&key, ours, theirs, keys);
            }
            _ => keys.push(key),
        }
    }
    if keys.len() == before {
        keys.push(section.to_owned());
    }
}

#[cfg(test)]
mod tests;
