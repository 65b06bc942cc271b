// SPDX-License-Identifier: Apache-2.0
//! What files say of addresses and ports, as further columns of records.

use turboflow_query::{EnrichmentFiles, Input};

use crate::log::say;

/// Gives an input the columns of these files.
pub(crate) fn enrich(files: &EnrichmentFiles, input: &mut Input) -> anyhow::Result<()> {
    if let Some(enrichment) = files.read()? {
        say_taken(&input.enrich(enrichment));
    }
    Ok(())
}

/// Says which columns the records have themselves.
pub(crate) fn say_taken(taken: &[String]) {
    if !taken.is_empty() {
        say!(Info AnswerNote; "the records have {} themselves: that is shown, not what files say",
            taken.join(", "));
    }
}
