// SPDX-License-Identifier: Apache-2.0
//! Which statements are queries. Everything else is refused before it is planned.

use anyhow::{Context, bail};
use datafusion::logical_expr::sqlparser::ast::Statement as Sql;
use datafusion::logical_expr::sqlparser::dialect::GenericDialect;
use datafusion::logical_expr::sqlparser::keywords::Keyword;
use datafusion::logical_expr::sqlparser::tokenizer::{Token, Tokenizer};
use datafusion::sql::parser::{DFParserBuilder, Statement};

use crate::wrong;

/// How long a query may be: its plan has a place for each of its words.
const QUERY_BYTES_MAX: usize = 1 << 20;

/// How deep parentheses may lie in each other.
const DEPTH_MAX: usize = 50;

/// How many operators a query may have: each is one level more of a tree, and the time of planning
/// grows with the square of its height.
const OPERATORS_MAX: usize = 4_000;

const ONE_QUERY: &str = "ask one query at a time: select ..., with ..., or describe TABLE";

/// The one query of that text.
pub(crate) fn parse(text: &str) -> anyhow::Result<Statement> {
    if text.len() > QUERY_BYTES_MAX {
        bail!(
            "the query has {} bytes: {QUERY_BYTES_MAX} are the most",
            text.len()
        );
    }
    let operators = operators(text);
    if operators > OPERATORS_MAX {
        bail!(
            "the query has {operators} operators (and, or, =, + and others): {OPERATORS_MAX} are \
             the most; write many values as `in (1, 2, ...)`, or join a table of them"
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

/// How many operators a text has, of any kind that may be written again and again without
/// parentheses. None where it has no words: the parser says why.
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
