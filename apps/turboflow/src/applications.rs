// SPDX-License-Identifier: Apache-2.0
//! `--dpi`: applications of flows, found in the payload of their first packets.

use std::sync::Arc;

use anyhow::{Context, bail};
use turboflow_inspect::{InspectConfig, InspectError, Inspection};
use turboflow_record::{
    ApplicationNames, Definition, Feature, Input, InputSet, InspectedTexts, KeyField, Op, Texts,
};
use turboflow_run::{InspectionConfig, MeterConfig, PipelineConfig, RunConfig};

use crate::keys::Key;

/// Columns to add if the definition has no column of applications.
const COLUMNS: [(&str, Input); 4] = [
    ("application", Input::Application),
    ("application_category", Input::ApplicationCategory),
    ("application_confidence", Input::ApplicationConfidence),
    ("server_name", Input::ServerName),
];

/// Bytes of text that a run remembers: enough for the server names and fingerprints of some hundred
/// thousand flows.
const TEXT_BYTES: usize = 64 << 20;

/// Whether a definition has columns of applications.
pub(crate) fn has_columns(definition: &Definition) -> bool {
    let mut inputs = definition.inputs().iter();
    inputs.any(|input| InputSet::INSPECTED.contains(input))
}

/// The definition, with columns of applications added if it has none.
pub(crate) fn with_columns(mut definition: Definition) -> anyhow::Result<Definition> {
    if !has_columns(&definition) {
        let mut needed = KeyField::FIVE_TUPLE.into_iter();
        if let Some(lacks) = needed.find(|field| !definition.key.contains(field)) {
            bail!(
                "applications are found by the 5-tuple, but `{}` is not in the key of the \
                 definition; add it, or leave out {}",
                lacks.name(),
                Key::Dpi
            );
        }
        let columns = COLUMNS.map(|(name, of)| Feature {
            per_biflow: true,
            ..Feature::new(name, Op::Last, Some(of))
        });
        definition.features.extend(columns);
    }
    Ok(definition)
}

/// The names of applications, categories and risks that inspection reports.
pub(crate) fn names() -> Result<Arc<ApplicationNames>, InspectError> {
    names_within(InspectConfig {
        max_flows: 1,
        ..InspectConfig::default()
    })
}

/// The names that inspection reports. Starts the inspector, which takes about 0.1 s.
fn names_within(limits: InspectConfig) -> Result<Arc<ApplicationNames>, InspectError> {
    Ok(Inspection::start(limits, |_: &[u8]| 0)?.names())
}

/// The inspection of a run, if requested. Starts the inspector once to read the names behind its
/// numbers.
pub(crate) fn inspection(
    run: &RunConfig,
    config: &PipelineConfig,
) -> anyhow::Result<Option<InspectionConfig>> {
    if !run.meter.dpi {
        if run.meter.dpi_flows != MeterConfig::default().dpi_flows {
            bail!(
                "{} is for {}: add it, or leave both out",
                Key::DpiFlows,
                Key::Dpi
            );
        }
        return Ok(None);
    }
    let flows = run.meter.dpi_flows.0;
    let limits = InspectConfig {
        max_flows: usize::try_from(flows).unwrap_or(usize::MAX),
        is_lossless: !run.is_live(),
        idle_ns: config.timeouts.idle_ns.unwrap_or(u64::MAX),
        seed: config.seed,
        ..InspectConfig::default()
    };
    let texts = Arc::new(Texts::new(TEXT_BYTES));
    let names = names_within(limits.clone()).context("cannot inspect payload")?;
    Ok(Some(InspectionConfig {
        limits,
        names: Arc::new(InspectedTexts::new(Arc::clone(&texts), names)),
        texts,
        elsewhere: Arc::default(),
    }))
}

/// The texts of a run with a bridge: those of its inspection, if there is one, and a table for the
/// names of rules, which is still empty.
pub(crate) fn texts_with_rules(inspection: Option<&InspectionConfig>) -> Arc<InspectedTexts> {
    let (texts, names) = match inspection {
        Some(its) => (Arc::clone(&its.texts), Arc::clone(its.names.names())),
        None => (Arc::new(Texts::new(0)), Arc::default()),
    };
    Arc::new(InspectedTexts::new(texts, names))
}
