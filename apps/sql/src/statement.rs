// SPDX-License-Identifier: Apache-2.0
//! Which statements are queries. Everything else is refused before it is planned.

use anyhow::{Context, bail};
use datafusion::logical_expr::sqlparser::ast::Statement as Sql;
use datafusion::logical_expr::sqlparser::dialect::GenericDialect;
use datafusion::sql::parser::{DFParserBuilder, Statement};

use crate::wrong;

/// How long a query may be: its plan has a place for each of its words.
const QUERY_BYTES_MAX: usize = 1 << 20;

/// How deep parentheses may lie in each other.
const DEPTH_MAX: usize = 50;

const ONE_QUERY: &str = "ask one query at a time: select ..., with ..., or describe TABLE";

/// The one query of that text.
pub(crate) fn parse(text: &str) -> anyhow::Result<Statement> {
    if text.len() > QUERY_BYTES_MAX {
        bail!(
            "the query has {} bytes: {QUERY_BYTES_MAX} are the most",
            text.len()
        );
    }
    let parser = DFParserBuilder::new(text)
        .with_dialect(&GenericDialect {})
        .with_recursion_limit(DEPTH_MAX)
        .build();
    let statements = parser.and_then(|mut parser| parser.parse_statements());
    let mut statements = statements.map_err(|error| wrong::query(&error, text))?;
    let statement = statements.pop_front().context(ONE_QUERY)?;
    if !statements.is_empty() {
        bail!(
            "the query is {} statements; {ONE_QUERY}",
            statements.len() + 1
        );
    }
    if !is_query(&statement) {
        let words = statement.to_string();
        let first: Vec<&str> = words.split_whitespace().take(2).collect();
        bail!(
            "{} is no query: `turboflow sql` reads records and changes nothing; {ONE_QUERY}",
            first.join(" ")
        );
    }
    Ok(statement)
}

fn is_query(statement: &Statement) -> bool {
    match statement {
        Statement::Statement(sql) => matches!(**sql, Sql::Query(_) | Sql::ExplainTable { .. }),
        Statement::Explain(explained) => is_query(&explained.statement),
        _ => false,
    }
}
