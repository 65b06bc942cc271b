// SPDX-License-Identifier: Apache-2.0
//! Filter expressions, which select the records of a question.
//!
//! ```text
//! expression = either { ("or" | "||") either }
//! either     = term { ("and" | "&&") term }
//! term       = ("not" | "!") term | "(" expression ")" | test
//! test       = FIELD ("==" | "=" | "!=" | "<" | "<=" | ">" | ">=") VALUE
//!            | FIELD "in" (VALUE | "(" VALUE { "," VALUE } ")")      addresses and networks
//!            | FIELD "has" VALUE                                     flag bits, list elements
//!            | ("host" | "net") ADDRESS | "port" NUMBER              either side
//!            | PROTOCOL                                              tcp, udp, icmp, ...
//! ```
//!
//! The value `none` means an absent value. An absent value passes no other test.

use std::net::IpAddr;

use turboflow_record::{Column, ColumnKind, FlowBatch};

use crate::QueryError;
use crate::compare::{self, Operator, Test};
use crate::field::{self, Field, Show};
use crate::literal;
use crate::names;
use crate::token::{Kind, Token, tokens};

/// A condition on flow records, bound to a schema.
#[derive(Clone, Debug)]
pub struct Filter(Expression);

#[derive(Clone, Debug)]
enum Expression {
    All(Vec<Expression>),
    Any(Vec<Expression>),
    Not(Box<Expression>),
    Test(Field, Test),
}

/// Maximum nesting of parentheses and negations.
const DEPTH_MAX: usize = 64;

impl Filter {
    /// Parses an expression for records of that schema.
    ///
    /// # Errors
    /// [`QueryError::Question`] points at the invalid word and says what would be valid.
    pub fn parse(text: &str, schema: &[Column]) -> Result<Self, QueryError> {
        let mut parser = Parser {
            text,
            tokens: tokens(text),
            next: 0,
            depth: 0,
            schema,
        };
        let expression = parser.expression()?;
        let rest = parser.take();
        match rest.kind {
            Kind::End => Ok(Self(expression)),
            _ => Err(parser.wrong(rest, "expected \"and\", \"or\" or the end here".to_owned())),
        }
    }

    /// Whether a record passes.
    ///
    /// # Panics
    /// When the batch has another schema, or fewer rows.
    #[must_use]
    pub fn passes(&self, batch: &FlowBatch, row: usize) -> bool {
        self.0.holds(batch, row)
    }

    /// The records that pass, with all columns.
    #[must_use]
    pub fn apply(&self, batch: &FlowBatch, schema: &[Column]) -> FlowBatch {
        let mut kept = FlowBatch::new(schema);
        for row in (0..batch.rows()).filter(|&row| self.passes(batch, row)) {
            let values: Vec<_> = (0..schema.len())
                .map(|column| batch.value(row, column))
                .collect();
            kept.push_row(&values);
        }
        kept
    }
}

impl Expression {
    fn holds(&self, batch: &FlowBatch, row: usize) -> bool {
        match self {
            Self::All(parts) => parts.iter().all(|part| part.holds(batch, row)),
            Self::Any(parts) => parts.iter().any(|part| part.holds(batch, row)),
            Self::Not(part) => !part.holds(batch, row),
            Self::Test(field, test) => test.passes(field.value(batch, row)),
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token<'a>>,
    next: usize,
    depth: usize,
    schema: &'a [Column],
}

impl<'a> Parser<'a> {
    fn expression(&mut self) -> Result<Expression, QueryError> {
        let mut parts = vec![self.either()?];
        while self.accept(&["or", "||"]) {
            parts.push(self.either()?);
        }
        Ok(one_or(parts, Expression::Any))
    }

    fn either(&mut self) -> Result<Expression, QueryError> {
        let mut parts = vec![self.term()?];
        while self.accept(&["and", "&&"]) {
            parts.push(self.term()?);
        }
        Ok(one_or(parts, Expression::All))
    }

    fn term(&mut self) -> Result<Expression, QueryError> {
        let first = self.peek();
        if self.depth == DEPTH_MAX {
            let reason = format!("more than {DEPTH_MAX} parentheses or negations in each other");
            return Err(self.wrong(first, reason));
        }
        self.depth += 1;
        let term = if self.accept(&["not", "!"]) {
            Expression::Not(Box::new(self.term()?))
        } else if self.accept(&["("]) {
            let inner = self.expression()?;
            let close = self.take();
            if !is_sign(close, ")") {
                return Err(self.wrong(close, "expected \")\" here".to_owned()));
            }
            inner
        } else {
            self.test()?
        };
        self.depth -= 1;
        Ok(term)
    }

    fn test(&mut self) -> Result<Expression, QueryError> {
        let name = self.take();
        if name.kind == Kind::End {
            return Err(self.wrong(name, "expected a condition such as bytes > 1M".to_owned()));
        }
        if name.kind == Kind::Word && Field::find(name.text, self.schema).is_none() {
            match name.text {
                "host" | "net" => return self.side(name, &["src_addr", "dst_addr"]),
                "port" => return self.side(name, &["src_port", "dst_port"]),
                _ => {}
            }
            if let Some(protocol) = names::protocol_number(name.text) {
                let field = self.field(Token {
                    text: "protocol",
                    ..name
                })?;
                let test = Test::Number(Operator::Equal, protocol);
                return Ok(Expression::Test(field, test));
            }
        }
        let field = self.field(name)?;
        let sign = self.take();
        if is_word(sign, "in") {
            return self.membership(field);
        }
        let value = self.peek();
        if is_word(sign, "has") {
            let text = self.value()?;
            let (kind, show) = (field.kind(self.schema), field.show(self.schema));
            let test =
                compare::has(text, kind, show).map_err(|reason| self.wrong(value, reason))?;
            return Ok(Expression::Test(field, test));
        }
        let operator = Some(sign.text).filter(|_| sign.kind == Kind::Sign);
        let Some(operator) = operator.and_then(Operator::from_sign) else {
            let reason = "expected ==, !=, <, <=, >, >=, in or has here".to_owned();
            return Err(self.wrong(sign, reason));
        };
        let text = self.value()?;
        match (text, operator) {
            ("none", Operator::Equal) => Ok(Expression::Test(field, Test::Absent)),
            ("none", Operator::NotEqual) => Ok(Expression::Not(Box::new(Expression::Test(
                field,
                Test::Absent,
            )))),
            _ => self.comparison(field, operator, value),
        }
    }

    fn comparison(
        &self,
        field: Field,
        operator: Operator,
        value: Token<'a>,
    ) -> Result<Expression, QueryError> {
        let (kind, mut show) = (field.kind(self.schema), field.show(self.schema));
        // The column's name may give the unit.
        if show == Show::Duration && field.is_in_ns(self.schema) && literal::is_unitless(value.text)
        {
            show = Show::Number;
        }
        let test = compare::compare(operator, value.text, kind, show);
        Ok(Expression::Test(
            field,
            test.map_err(|reason| self.wrong(value, reason))?,
        ))
    }

    /// Parses the operand of `in`.
    fn membership(&mut self, field: Field) -> Result<Expression, QueryError> {
        if !self.accept(&["("]) {
            return self.member(field);
        }
        let mut members = vec![self.member(field)?];
        while self.accept(&[","]) {
            members.push(self.member(field)?);
        }
        let close = self.take();
        if !is_sign(close, ")") {
            return Err(self.wrong(close, "expected \",\" or \")\" here".to_owned()));
        }
        Ok(one_or(members, Expression::Any))
    }

    fn member(&mut self, field: Field) -> Result<Expression, QueryError> {
        let value = self.peek();
        let text = self.value()?;
        if field.kind(self.schema) != ColumnKind::Address {
            return self.comparison(field, Operator::Equal, value);
        }
        match literal::net(text) {
            Some(net) => Ok(Expression::Test(field, Test::In(net))),
            None => {
                let reason = format!("{text:?} is not an address or a network such as 10.0.0.0/8");
                Err(self.wrong(value, reason))
            }
        }
    }

    /// Parses `host`, `net` or `port`: either of two fields has the value.
    fn side(&mut self, name: Token<'a>, sides: &[&'a str; 2]) -> Result<Expression, QueryError> {
        // Users of other filters write "host == 10.0.0.1", so an operator is accepted.
        self.accept(&["==", "=", "in"]);
        let value = self.peek();
        let text = self.value()?;
        if name.text == "host" && text.parse::<IpAddr>().is_err() {
            let hint = if text.contains('/') {
                "; for a network write \"net\""
            } else {
                ""
            };
            return Err(self.wrong(value, format!("{text:?} is not an IP address{hint}")));
        }
        let start = self.next - 1;
        let mut parts = Vec::new();
        for side in sides {
            let field = self.field(Token { text: side, ..name })?;
            self.next = start;
            parts.push(self.member(field)?);
        }
        Ok(Expression::Any(parts))
    }

    fn field(&self, name: Token<'_>) -> Result<Field, QueryError> {
        let found = Some(name).filter(|name| matches!(name.kind, Kind::Word | Kind::Quoted));
        let found = found.and_then(|name| Field::find(name.text, self.schema));
        found.ok_or_else(|| self.wrong(name, field::unknown(name.text, &Field::names(self.schema))))
    }

    fn value(&mut self) -> Result<&'a str, QueryError> {
        let value = self.take();
        match value.kind {
            Kind::Word | Kind::Quoted => Ok(value.text),
            _ => Err(self.wrong(value, "expected a value here".to_owned())),
        }
    }

    fn peek(&self) -> Token<'a> {
        self.tokens[self.next]
    }

    fn take(&mut self) -> Token<'a> {
        let token = self.peek();
        // The end token is never consumed.
        self.next = (self.next + 1).min(self.tokens.len() - 1);
        token
    }

    fn accept(&mut self, words: &[&str]) -> bool {
        let token = self.peek();
        let found = words
            .iter()
            .any(|word| is_word(token, word) || is_sign(token, word));
        if found {
            self.next += 1;
        }
        found
    }

    #[cold]
    fn wrong(&self, token: Token<'_>, reason: String) -> QueryError {
        let reason = match token.kind {
            Kind::Strange if token.text.starts_with(['"', '\'']) => {
                "this quote is never closed".to_owned()
            }
            _ => reason,
        };
        QueryError::misread("--where", self.text, token.span, reason)
    }
}

fn is_word(token: Token<'_>, word: &str) -> bool {
    token.kind == Kind::Word && token.text.eq_ignore_ascii_case(word)
}

fn is_sign(token: Token<'_>, sign: &str) -> bool {
    token.kind == Kind::Sign && token.text == sign
}

fn one_or(mut parts: Vec<Expression>, join: fn(Vec<Expression>) -> Expression) -> Expression {
    if parts.len() == 1 {
        parts.remove(0)
    } else {
        join(parts)
    }
}
