// SPDX-License-Identifier: Apache-2.0
//! Checks that a statement is a query. Anything else is refused before planning.

use anyhow::{Context, bail};
use datafusion::logical_expr::sqlparser::ast::Statement as Sql;
use datafusion::logical_expr::sqlparser::dialect::GenericDialect;
use datafusion::logical_expr::sqlparser::keywords::Keyword;
use datafusion::logical_expr::sqlparser::tokenizer::{Token, Tokenizer};
use datafusion::sql::parser::{DFParserBuilder, Statement};

use crate::wrong;

/// Maximum length of a query in bytes: the memory of its plan grows with its words.
const QUERY_BYTES_MAX: usize = 1 << 20;

/// Maximum nesting depth of parentheses.
const DEPTH_MAX: usize = 50;

/// Maximum number of operators in a query. Each adds a level to a tree, and planning time grows
/// with the square of the tree's height.
const OPERATORS_MAX: usize = 4_000;

const ONE_QUERY: &str = "ask one query at a time: select ..., with ..., or describe TABLE";

/// Parses a text that must be a single query.
pub(crate) fn parse(text: &str) -> anyhow::Result<Statement> {
    if text.len() > QUERY_BYTES_MAX {
        bail!(
            "the query has {} bytes, more than {QUERY_BYTES_MAX}",
            text.len()
        );
    }
    let operators = operators(text);
    if operators > OPERATORS_MAX {
        bail!(
            "the query has {operators} operators (and, or, =, + and others), more than \
             {OPERATORS_MAX}; write many values as `in (1, 2, ...)`, or join a table of them"
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
            "{} is not a query: `turboflow sql` reads records and changes nothing; {ONE_QUERY}",
            first.join(" ")
        );
    }
    Ok(statement)
}

/// Number of operators in a text, of all kinds that can be chained without parentheses. Zero if the
/// text cannot be tokenized: then the parser reports the error.
fn operators(text: &str) -> usize {
    let tokens = Tokenizer::new(&GenericDialect {}, text).tokenize();
    let is_operator = |token: &&Token| match token {
        Token::Whitespace(_) => false,
        Token::Word(word) => matches!(
            word.keyword,
            Keyword::AND
                | Keyword::OR
                | Keyword::XOR
                | Keyword::IS
                | Keyword::IN
                | Keyword::LIKE
                | Keyword::ILIKE
                | Keyword::AT
                | Keyword::COLLATE
                | Keyword::JOIN
                | Keyword::UNION
                | Keyword::EXCEPT
                | Keyword::INTERSECT
        ),
        other => other
            .to_string()
            .starts_with(|c: char| "+-*/%|=<>!:^&~#@?[".contains(c)),
    };
    tokens.map_or(0, |tokens| tokens.iter().filter(is_operator).count())
}

fn is_query(statement: &Statement) -> bool {
    match statement {
        Statement::Statement(sql) => matches!(**sql, Sql::Query(_) | Sql::ExplainTable { .. }),
        Statement::Explain(explained) => is_query(&explained.statement),
        _ => false,
    }
}
