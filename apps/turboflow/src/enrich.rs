// SPDX-License-Identifier: Apache-2.0
//! Enrichment: further columns of records, from files about addresses and ports.

use turboflow_query::{EnrichmentFiles, Input};

use crate::log::say;

/// Adds the columns from these files to an input.
pub(crate) fn enrich(files: &EnrichmentFiles, input: &mut Input) -> anyhow::Result<()> {
    if let Some(enrichment) = files.read()? {
        say_taken(&input.enrich(enrichment));
    }
    Ok(())
}

/// Logs which enrichment columns the records already have.
pub(crate) fn say_taken(taken: &[String]) {
    if !taken.is_empty() {
        say!(Info AnswerNote; "the records have {} themselves: that is shown, not what files say",
            taken.join(", "));
    }
}
