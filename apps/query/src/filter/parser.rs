// SPDX-License-Identifier: Apache-2.0
//! The parser of expressions: operators, and tests of fields.

use std::cell::Cell;

use turboflow_record::{Column, ColumnKind, Network};

use super::primitive::Said;
use super::{Expression, Filter, one_or};
use crate::compare::{self, Operator, Test};
use crate::error::{Part, QueryError};
use crate::field::{Field, Show};
use crate::literal;
use crate::record_shape::RecordShape;
use crate::token::{Kind, Token, tokens};

/// Maximum nesting of parentheses and negations.
const DEPTH_MAX: usize = 64;

/// A parser and its position in the text.
pub(super) struct Parser<'a> {
    pub(super) text: &'a str,
    pub(super) tokens: Vec<Token<'a>>,
    next: usize,
    depth: usize,
    pub(super) records: RecordShape<'a>,
    pub(super) schema: &'a [Column],
    now_ns: Option<u64>,
    counts_from_now: Cell<bool>,
    /// The last test in capture-filter words, which a lone value repeats.
    pub(super) said: Option<Said>,
    /// The words and the operator before the value of the last test.
    pub(super) last: Option<(String, &'a str)>,
    pub(super) notes: Vec<String>,
    /// Number of tests in capture-filter words so far, within the current parentheses.
    primitives: usize,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str, records: RecordShape<'a>, now_ns: Option<u64>) -> Self {
        Self {
            text,
            tokens: tokens(text),
            next: 0,
            depth: 0,
            records,
            schema: records.schema,
            now_ns,
            counts_from_now: Cell::new(false),
            said: None,
            last: None,
            notes: Vec::new(),
            primitives: 0,
        }
    }

    /// Parses the whole text.
    pub(super) fn whole(mut self) -> Result<Filter, QueryError> {
        let expression = self.expression()?;
        let rest = self.take();
        if rest.kind != Kind::End {
            return Err(self.unexpected(rest, "expected \"and\", \"or\" or the end here"));
        }
        let is_protocol_41 = |token: &Token<'_>| is_word(*token, "ipv6");
        if self.tokens.iter().any(is_protocol_41) && Field::exact("ipv6", self.schema).is_none() {
            self.notes.push(
                "ipv6 is the protocol 41 (IPv6 in IPv4); ip6 is traffic over IPv6".to_owned(),
            );
        }
        Ok(Filter {
            expression,
            notes: self.notes,
            counts_from_now: self.counts_from_now.get(),
        })
    }

    fn expression(&mut self) -> Result<Expression, QueryError> {
        let before = self.primitives;
        let (first, _) = self.either()?;
        let mut parts = vec![first];
        let mut mixed = None;
        while self.accept(&["or", "||"]) {
            let (part, and) = self.either()?;
            parts.push(part);
            mixed = mixed.or(and);
        }
        // Capture filters evaluate from left to right; everywhere else `and` binds tighter.
        match mixed.filter(|_| self.primitives > before) {
            Some(and) => Err(self.wrong(
                and,
                "capture filters read \"or\" and \"and\" from left to right, other languages \
                 \"and\" first: write (A or B) and C, or A or (B and C)"
                    .to_owned(),
            )),
            None => Ok(one_or(parts, Expression::Any)),
        }
    }

    /// Parses tests joined by `and`. Also returns the first `and`, if there is one.
    fn either(&mut self) -> Result<(Expression, Option<Token<'a>>), QueryError> {
        let mut parts = vec![self.term()?];
        let mut first = None;
        loop {
            let and = self.peek();
            if !self.accept(&["and", "&&"]) {
                return Ok((one_or(parts, Expression::All), first));
            }
            first = first.or(Some(and));
            parts.push(self.term()?);
        }
    }

    fn term(&mut self) -> Result<Expression, QueryError> {
        let first = self.peek();
        if self.depth == DEPTH_MAX {
            let reason = format!("parentheses or negations are nested more than {DEPTH_MAX} deep");
            return Err(self.wrong(first, reason));
        }
        self.depth += 1;
        let term = if self.accept(&["not", "!"]) {
            Expression::Not(Box::new(self.term()?))
        } else if self.accept(&["("]) {
            let before = self.primitives;
            let inner = self.expression()?;
            self.primitives = before;
            let close = self.take();
            if !is_sign(close, ")") {
                return Err(self.unexpected(close, "expected \")\" here"));
            }
            inner
        } else {
            self.test()?
        };
        self.depth -= 1;
        Ok(term)
    }

    fn test(&mut self) -> Result<Expression, QueryError> {
        let name = self.peek();
        if name.kind == Kind::End {
            return Err(self.wrong(name, "expected a condition such as bytes > 1M".to_owned()));
        }
        if name.kind == Kind::Word
            && Field::exact(name.text, self.schema).is_none()
            && let Some(test) = self.primitive()?
        {
            self.primitives += 1;
            return Ok(test);
        }
        let field = self.divided_field()?;
        self.said = None;
        let words = &self.text[name.span.0..self.before().span.1];
        let sign = self.take();
        self.last = Some((words.to_owned(), sign.text));
        if is_word(sign, "in") {
            return self.membership(field);
        }
        let value = self.peek();
        if is_word(sign, "has") {
            let text = self.value()?;
            let (kind, show) = (field.kind(self.schema), field.show(self.records));
            let test =
                compare::has(text, kind, show).map_err(|reason| self.wrong(value, reason))?;
            return Ok(Expression::Test(field, test));
        }
        let operator = Some(sign.text).filter(|_| sign.kind == Kind::Sign);
        let Some(operator) = operator.and_then(Operator::from_sign) else {
            let reason = "expected ==, !=, <, <=, >, >=, in or has here".to_owned();
            return Err(self.wrong(sign, reason));
        };
        match (self.value()?, operator) {
            ("none", Operator::Equal) => Ok(Expression::Test(field, Test::Absent)),
            ("none", Operator::NotEqual) => Ok(Expression::Not(Box::new(Expression::Test(
                field,
                Test::Absent,
            )))),
            _ => self.comparison(field, operator, value),
        }
    }

    /// Parses a field, or one field divided by another: `bytes`, `bytes/packets`, `bytes /
    /// packets`.
    fn divided_field(&mut self) -> Result<Field, QueryError> {
        let name = self.take();
        let mut text = name.text.to_owned();
        let mut span = name.span;
        while name.kind == Kind::Word
            && self.peek().kind == Kind::Word
            && (text.ends_with('/') || self.peek().text.starts_with('/'))
        {
            let more = self.take();
            text += more.text;
            span.1 = more.span.1;
        }
        self.field(Token {
            text: &text,
            span,
            ..name
        })
    }

    pub(super) fn comparison(
        &self,
        field: Field,
        operator: Operator,
        value: Token<'_>,
    ) -> Result<Expression, QueryError> {
        let (kind, mut show) = (field.kind(self.schema), field.show(self.records));
        // The column's name may give the unit.
        if show == Show::Duration && field.is_in_ns(self.schema) && literal::is_unitless(value.text)
        {
            show = Show::Number;
        }
        let test = match self.time_from_now(value, show)? {
            Some(time_ns) => Ok(Test::Number(operator, time_ns)),
            None => compare::compare(operator, value.text, kind, show),
        };
        Ok(Expression::Test(
            field,
            test.map_err(|reason| self.wrong(value, reason))?,
        ))
    }

    /// The absolute time for `-1h` and `now`.
    fn time_from_now(&self, value: Token<'_>, show: Show) -> Result<Option<u64>, QueryError> {
        let before_ns = literal::before_now_ns(value.text).filter(|_| show == Show::Time);
        let Some(before_ns) = before_ns else {
            return Ok(None);
        };
        match self.now_ns {
            Some(now_ns) => {
                self.counts_from_now.set(true);
                Ok(Some(now_ns.saturating_sub(before_ns)))
            }
            None => Err(self.wrong(
                value,
                "now is not defined here: write 2024-03-01T12:30:00Z".to_owned(),
            )),
        }
    }

    /// Parses the operand of `in`.
    pub(super) fn membership(&mut self, field: Field) -> Result<Expression, QueryError> {
        if !self.accept(&["("]) {
            return self.member(field);
        }
        let mut members = vec![self.member(field)?];
        while self.accept(&[",", "or"]) {
            members.push(self.member(field)?);
        }
        let close = self.take();
        if !is_sign(close, ")") {
            return Err(self.wrong(close, "expected \",\" or \")\" here".to_owned()));
        }
        Ok(one_or(members, Expression::Any))
    }

    /// Parses a value, a network or a range.
    pub(super) fn member(&mut self, field: Field) -> Result<Expression, QueryError> {
        let value = self.peek();
        let text = self.value()?;
        if let Some((least, most)) = self.range(field, value)? {
            let least = self.comparison(field, Operator::GreaterOrEqual, least)?;
            let most = self.comparison(field, Operator::LessOrEqual, most)?;
            return Ok(Expression::All(vec![least, most]));
        }
        if field.kind(self.schema) != ColumnKind::Address {
            return self.comparison(field, Operator::Equal, value);
        }
        match Network::parse(text) {
            Some(net) => Ok(Expression::Test(field, Test::In(net))),
            None => {
                let reason = format!("{text:?} is not an address or a network such as 10.0.0.0/8");
                Err(self.wrong(value, reason))
            }
        }
    }

    /// The two ends of `A-B`, `A..B`, `A - B` or `A .. B`, whose first word has been taken.
    fn range(
        &mut self,
        field: Field,
        first: Token<'a>,
    ) -> Result<Option<(Token<'a>, Token<'a>)>, QueryError> {
        let apart = self.peek();
        if first.kind == Kind::Word && apart.kind == Kind::Word && is_dash(apart.text) {
            self.take();
            let last = self.peek();
            self.value()?;
            return self.in_order(field, first, last).map(Some);
        }
        // Dates and names contain hyphens themselves.
        let whole = compare::is_value(
            first.text,
            field.kind(self.schema),
            field.show(self.records),
        );
        let cut = match first.text.split_once("..") {
            _ if first.kind != Kind::Word || whole => None,
            Some(parts) => Some((parts, 2)),
            None if field.show(self.records) == Show::Time => None,
            None => first.text.split_once('-').map(|parts| (parts, 1)),
        };
        let Some(((least, most), gap)) = cut.filter(|((a, b), _)| !a.is_empty() && !b.is_empty())
        else {
            return Ok(None);
        };
        let (start, end) = first.span;
        let left = Token {
            text: least,
            span: (start, start + least.len()),
            ..first
        };
        let right = Token {
            text: most,
            span: (start + least.len() + gap, end),
            ..first
        };
        self.in_order(field, left, right).map(Some)
    }

    /// Refuses a range whose end is before its start.
    fn in_order(
        &self,
        field: Field,
        least: Token<'a>,
        most: Token<'a>,
    ) -> Result<(Token<'a>, Token<'a>), QueryError> {
        let tests = [least, most].map(|end| self.comparison(field, Operator::Equal, end));
        let [first, last] = tests;
        let is_backward = match (first?, last?) {
            (Expression::Test(_, first), Expression::Test(_, last)) => last.is_before(&first),
            _ => false,
        };
        if is_backward {
            let span = (least.span.0, most.span.1);
            let range = Token { span, ..least };
            return Err(self.wrong(range, "the range ends before it begins".to_owned()));
        }
        Ok((least, most))
    }

    pub(super) fn field(&self, name: Token<'_>) -> Result<Field, QueryError> {
        let found = Some(name).filter(|name| matches!(name.kind, Kind::Word | Kind::Quoted));
        let found = found.and_then(|name| Field::find(name.text, self.schema));
        found.ok_or_else(|| self.wrong(name, self.no_field(name)))
    }

    pub(super) fn value(&mut self) -> Result<&'a str, QueryError> {
        let value = self.take();
        match value.kind {
            Kind::Word | Kind::Quoted => Ok(value.text),
            Kind::Strange if value.text == "[" => Err(self.in_brackets(value)),
            _ => Err(self.wrong(value, "expected a value here".to_owned())),
        }
    }

    pub(super) fn peek(&self) -> Token<'a> {
        self.tokens[self.next]
    }

    /// The token after the next one.
    pub(super) fn peek_second(&self) -> Token<'a> {
        self.tokens[(self.next + 1).min(self.tokens.len() - 1)]
    }

    pub(super) fn take(&mut self) -> Token<'a> {
        let token = self.peek();
        // The end token is never consumed.
        self.next = (self.next + 1).min(self.tokens.len() - 1);
        token
    }

    /// The token before the next one.
    pub(super) fn before(&self) -> Token<'a> {
        self.tokens[self.next.saturating_sub(1)]
    }

    pub(super) fn place(&self) -> usize {
        self.next
    }

    pub(super) fn go_back(&mut self, place: usize) {
        self.next = place;
    }

    pub(super) fn accept(&mut self, words: &[&str]) -> bool {
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
    pub(super) fn wrong(&self, token: Token<'_>, reason: String) -> QueryError {
        let reason = match (token.kind, token.text.chars().next()) {
            (Kind::Strange, Some('"' | '\'')) => "this quote is never closed".to_owned(),
            (Kind::Strange, Some('[')) => {
                "flow records do not hold the bytes of packets: write tcp_flags has S".to_owned()
            }
            _ => reason,
        };
        self.misread(token, reason)
    }

    /// Like [`Parser::wrong`], for any kind of token.
    #[cold]
    pub(super) fn misread(&self, token: Token<'_>, reason: String) -> QueryError {
        QueryError::misread(Part::Filter, self.text, token.span, reason)
    }
}

fn is_dash(text: &str) -> bool {
    matches!(text, "-" | "..")
}

pub(super) fn is_word(token: Token<'_>, word: &str) -> bool {
    token.kind == Kind::Word && token.text.eq_ignore_ascii_case(word)
}

pub(super) fn is_sign(token: Token<'_>, sign: &str) -> bool {
    token.kind == Kind::Sign && token.text == sign
}
