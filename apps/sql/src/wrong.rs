// SPDX-License-Identifier: Apache-2.0
//! Describes an error in a query in one line with its position.

use anyhow::anyhow;
use datafusion::common::{Column, DataFusionError, SchemaError};
use turboflow_query::QueryError;

/// How many similar columns are suggested if a column does not exist.
const NEAR_MAX: usize = 3;

/// The message for an error in a query with that text.
pub(crate) fn query(error: &DataFusionError, text: &str) -> anyhow::Error {
    let root = innermost(error);
    match root {
        DataFusionError::External(source) => match source.downcast_ref::<QueryError>() {
            Some(of_file) => anyhow!("{of_file}"),
            None => anyhow!("{source}"),
        },
        DataFusionError::ResourcesExhausted(_) => anyhow!(
            "the query needs more memory than it may use: --memory allows more, --spill FOLDER \
             puts the rest into files, and fewer columns or groups need less"
        ),
        DataFusionError::SchemaError(of_schema, _) => {
            anyhow!("the query{}: {}", place(error, text), in_schema(of_schema))
        }
        DataFusionError::SQL(of_parser, _) => {
            anyhow!("the query{}", parsed(&of_parser.to_string()))
        }
        other => {
            let message = other.strip_backtrace();
            anyhow!("the query{}: {}", place(error, text), plain(&message))
        }
    }
}

/// The innermost error, without its wrappers.
fn innermost(error: &DataFusionError) -> &DataFusionError {
    match error.find_root() {
        DataFusionError::Diagnostic(_, inner) | DataFusionError::Context(_, inner) => {
            innermost(inner)
        }
        DataFusionError::Shared(inner) => innermost(inner),
        DataFusionError::Collection(several) if !several.is_empty() => innermost(&several[0]),
        root => root,
    }
}

/// The position of the error in the query, if it is known: `, line 1, column 8`.
fn place(error: &DataFusionError, text: &str) -> String {
    let span = error.diagnostic().and_then(|diagnostic| diagnostic.span);
    let Some(start) = span.map(|span| span.start) else {
        return String::new();
    };
    match text.lines().count() {
        0 | 1 => format!(", column {}", start.column),
        _ => format!(", line {}, column {}", start.line, start.column),
    }
}

/// Moves the position of `sql parser error: Expected: ..., found: x at Line: 1, Column: 8` to the
/// front.
fn parsed(message: &str) -> String {
    let message = message
        .strip_prefix("sql parser error: ")
        .unwrap_or(message);
    match message.rsplit_once(" at Line: ") {
        Some((what, place)) => {
            let place = place.replace("Column: ", "column ");
            format!(", line {place}: {}", plain(what))
        }
        None => format!(": {}", plain(message)),
    }
}

/// Adapts a message to the style of this project: it begins in lower case, unless with a name in
/// capitals.
fn plain(message: &str) -> String {
    let kinds = [
        "Error during planning: ",
        "Execution error: ",
        "Arrow error: ",
        "Schema error: ",
        "Internal error: ",
        "This feature is not implemented: ",
    ];
    let mut message = message;
    while let Some(rest) = kinds.iter().find_map(|kind| message.strip_prefix(kind)) {
        message = rest;
    }
    let message = message.lines().next().unwrap_or_default();
    if message == "Recursive CTEs are not enabled" {
        return "`with recursive` is not supported: a query reads its files once; write `with`"
            .to_owned();
    }
    if let Some(table) = missing_table(message) {
        return format!("there is no table {table}; --table NAME=FILES adds one");
    }
    // For a function with several signatures, the message explains each mismatch; only the first is
    // kept.
    let message = match message.split_once(", errors: Error during planning: ") {
        Some((_, each)) => each.split(",Error").next().unwrap_or(each),
        None => message,
    };
    let mut letters = message.chars();
    match (letters.next(), letters.next()) {
        (Some(first), Some(second)) if second.is_lowercase() => {
            format!("{}{}", first.to_lowercase(), &message[first.len_utf8()..])
        }
        _ => message.to_owned(),
    }
}

/// The name in `table 'datafusion.public.NAME' not found`.
fn missing_table(message: &str) -> Option<&str> {
    let name = message
        .strip_prefix("table '")?
        .strip_suffix("' not found")?;
    let name = name.strip_prefix("datafusion.").unwrap_or(name);
    Some(name.strip_prefix("public.").unwrap_or(name))
}

fn in_schema(error: &SchemaError) -> String {
    match error {
        SchemaError::FieldNotFound {
            field,
            valid_fields,
        } => {
            let near = near(&field.name, valid_fields);
            let hint = match near.is_empty() {
                true => "`describe flows` lists them".to_owned(),
                false => format!("near: {}", near.join(", ")),
            };
            format!("there is no column {}; {hint}", field.name)
        }
        SchemaError::AmbiguousReference { field } => {
            let name = &field.name;
            format!("several tables have a column {name}: write flows.{name}, or using ({name})")
        }
        other => plain(&other.to_string()),
    }
}

/// The columns with the most similar names.
fn near(name: &str, columns: &[Column]) -> Vec<String> {
    let name = name.to_lowercase();
    let mut ranked: Vec<(usize, &str)> = columns
        .iter()
        .map(|column| (distance(&name, &column.name), column.name.as_str()))
        .filter(|(away, its)| *away <= name.len().max(its.len()) / 2)
        .collect();
    ranked.sort_unstable();
    ranked.dedup();
    ranked
        .into_iter()
        .take(NEAR_MAX)
        .map(|(_, name)| name.to_owned())
        .collect()
}

/// Edit distance: number of letters to insert, remove or change.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut before: Vec<usize> = (0..=right.len()).collect();
    for (row, letter) in left.chars().enumerate() {
        let mut now = vec![row + 1];
        for (column, other) in right.iter().enumerate() {
            let changed = before[column] + usize::from(letter != *other);
            now.push(changed.min(before[column + 1] + 1).min(now[column] + 1));
        }
        before = now;
    }
    before[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_columns_that_are_nearly_named_so_are_told() {
        let columns = ["src_addr", "dst_addr", "bytes", "first_ns"].map(Column::from_name);
        assert_eq!(near("srcaddr", &columns)[0], "src_addr");
        assert_eq!(near("byte", &columns), ["bytes"]);
        assert!(near("zzzzzzzz", &columns).is_empty());
    }

    #[test]
    fn the_place_stands_in_front() {
        let message =
            "sql parser error: Expected: an expression, found: from at Line: 1, Column: 8";
        assert_eq!(
            parsed(message),
            ", line 1, column 8: expected: an expression, found: from"
        );
    }
}
