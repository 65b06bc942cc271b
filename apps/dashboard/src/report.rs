// SPDX-License-Identifier: Apache-2.0
//! Writes the page and its answers into one file, which works offline.

use std::path::PathBuf;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use turboflow_query::{EnrichmentFiles, flow_files};

use crate::assets::{PLACE, REPORT};
use crate::panel::Asked;
use crate::question::{Panel, Request};
use crate::routes::fields_of;
use crate::store::{Given, Snapshot, check};
use crate::{DashboardError, Limits};

/// The questions of the report's pages. The page reads this file, too.
const PANELS: &str = include_str!("../web/src/panels.json");

#[derive(Deserialize)]
struct Named {
    id: String,
    /// Fields without which there is no answer.
    needs: Vec<String>,
    panel: Panel,
}

/// What a report is about.
#[derive(Clone, Debug, Default)]
pub struct Reported {
    /// Files of flow records, folders of them, or patterns.
    pub given: Vec<PathBuf>,
    /// Ledger files, in addition to those beside the records.
    pub ledgers: Vec<PathBuf>,
    /// Files that add information about addresses and ports.
    pub enrichment: EnrichmentFiles,
}

/// Makes a report as self-contained HTML. `filter` selects records.
///
/// # Errors
/// [`DashboardError`] if the files cannot be read or the filter is invalid.
pub fn report(of: Reported, filter: Option<String>) -> Result<Vec<u8>, DashboardError> {
    check(&of.given)?;
    // For a report, unlike the server, a folder without files is an error.
    flow_files(&of.given)?;
    let given = Given {
        known: of.enrichment.read()?,
        files: of.given,
        ledgers: of.ledgers,
        enrichment: of.enrichment,
    };
    let given = Arc::new(given);
    let snapshot = Arc::new(Snapshot::opened(&given, 1)?);
    let request = Request {
        filter,
        ..Request::default()
    };
    let asked = Asked::new(
        &request,
        Arc::clone(&snapshot),
        Arc::clone(&given),
        Limits::default(),
        None,
    );
    let refused = |id: &str, error: &Value| {
        let reason = error["reason"].as_str().unwrap_or_default();
        DashboardError::Report(format!("{id}: {reason}"))
    };
    let asked = asked.map_err(|refusal| refused("the filter", &refusal.error()))?;
    let panels: Vec<Named> =
        serde_json::from_str(PANELS).expect("the panels are part of the program");
    let has = |name: &String| snapshot.has(snapshot.measure(name));
    let asked_for = panels.into_iter().filter(|its| its.needs.iter().all(has));
    let (ids, panels): (Vec<String>, Vec<Panel>) =
        asked_for.map(|Named { id, panel, .. }| (id, panel)).unzip();
    let mut answers: Vec<Result<(String, Value), DashboardError>> = Vec::new();
    asked.panels(&panels, true, |place, answer| {
        let id = &ids[place];
        let answer = answer.map(|answer| (id.clone(), answer));
        answers.push(answer.map_err(|refusal| refused(id, &refusal.error())));
    });
    let answers: Map<String, Value> = answers.into_iter().collect::<Result<_, _>>()?;
    let answers = json!({
        "files": snapshot.to_json(&given.files),
        "fields": fields_of(&snapshot),
        "ledgers": snapshot.ledgers.json,
        "where": request.filter,
        "answers": answers,
    });
    // No text of a record can then end the element that holds the answers.
    let answers = answers.to_string().replace('<', "\\u003c");
    Ok(REPORT.replace(PLACE, &answers).into_bytes())
}
