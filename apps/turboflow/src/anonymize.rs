// SPDX-License-Identifier: Apache-2.0
//! Pseudonyms instead of addresses: the key, and the writer that replaces them.

use std::fs;
use std::path::Path;

use anyhow::{Context, anyhow};
use turboflow_formats::{CryptoPan, FlowWriter, anonymize, refused_column};
use turboflow_record::Schema;

use crate::keys::Key;

/// Reads the key from a file.
pub(crate) fn key(path: &Path) -> anyhow::Result<CryptoPan> {
    let place = path.display();
    let content = fs::read(path).with_context(|| format!("cannot read the key {place}"))?;
    CryptoPan::from_file(&content)
        .map_err(|reason| anyhow!("{}: {place}: {reason}", Key::Anonymize))
}

/// Checks that every column can be written with pseudonyms.
pub(crate) fn check(schema: &Schema) -> anyhow::Result<()> {
    refused_column(schema).map_or(Ok(()), |more| Err(no_pseudonym(&more)))
}

/// A writer that passes records on with pseudonyms.
pub(crate) fn writer(
    inner: Box<dyn FlowWriter>,
    schema: &Schema,
    key: CryptoPan,
) -> anyhow::Result<Box<dyn FlowWriter>> {
    anonymize(inner, schema, key).map_err(|more| no_pseudonym(&more))
}

/// The error for a column that cannot be pseudonymised. `more` names the column and what it holds.
pub(crate) fn no_pseudonym(more: &str) -> anyhow::Error {
    anyhow!(
        "{} replaces IP addresses, but {more}, which would stay: leave the column out",
        Key::Anonymize
    )
}
