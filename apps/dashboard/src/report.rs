// SPDX-License-Identifier: Apache-2.0
//! The page and its answers in one file, which opens anywhere.

use std::path::PathBuf;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use turboflow_query::flow_files;

use crate::assets::{PLACE, REPORT};
use crate::panel::Asked;
use crate::question::{Panel, Request};
use crate::routes::fields_of;
use crate::store::{Given, Snapshot, check};
use crate::{DashboardError, Limits};

/// The questions of the pages that a report has; the page reads this file, too.
const PANELS: &str = include_str!("../web/src/panels.json");

#[derive(Deserialize)]
struct Named {
    id: String,
    /// Fields without which there is no answer.
    needs: Vec<String>,
    panel: Panel,
}

/// The report over files, as HTML with everything in it. `filter` chooses records.
///
/// # Errors
/// [`DashboardError`]: the files cannot be read, or the filter is invalid.
pub fn report(
    given: &[PathBuf],
    ledgers: &[PathBuf],
    filter: Option<String>,
) -> Result<Vec<u8>, DashboardError> {
    check(given)?;
    // A report is of the files that there are.
    flow_files(given)?;
    let of = Given {
        files: given.to_vec(),
        ledgers: ledgers.to_vec(),
    };
    let snapshot = Arc::new(Snapshot::opened(&of, 1)?);
    let request = Request {
        filter,
        ..Request::default()
    };
    let asked = Asked::new(
        &request,
        Arc::clone(&snapshot),
        given.into(),
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
    let mut answers = Map::new();
    for Named { id, needs, panel } in panels {
        let has = |name: &String| snapshot.has(snapshot.measure(name));
        if needs.iter().all(has) {
            let answer = asked.panel(&panel);
            let answer = answer.map_err(|refusal| refused(&id, &refusal.error()))?;
            answers.insert(id, answer);
        }
    }
    let answers = json!({
        "files": snapshot.to_json(given),
        "fields": fields_of(&snapshot),
        "ledgers": snapshot.ledgers.json,
        "where": request.filter,
        "answers": answers,
    });
    // So that no text of a record ends the element that holds it.
    let answers = answers.to_string().replace('<', "\\u003c");
    Ok(REPORT.replace(PLACE, &answers).into_bytes())
}
