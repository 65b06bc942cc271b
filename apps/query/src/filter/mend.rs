// SPDX-License-Identifier: Apache-2.0
//! Suggests corrections for invalid expressions.

use turboflow_record::Network;

use super::parser::{Parser, is_sign, is_word};
use crate::QueryError;
use crate::field::{self, Field};
use crate::token::{Kind, Token};
use crate::{compare, literal, names};

/// Words that users write where a field is expected.
const WORDS: [&str; 4] = ["host", "ip", "net", "port"];

impl Parser<'_> {
    /// The error for a token after a complete test.
    #[cold]
    pub(super) fn unexpected(&self, token: Token<'_>, expected: &str) -> QueryError {
        let reason = match &self.last {
            Some((words, _)) if is_sign(token, ",") => {
                let values = self.values_around(token).join(", ");
                format!("several values need parentheses: write {words} in ({values})")
            }
            Some((words, "=" | "==" | "in")) if is_value(token) => {
                let before = self.before_token(token).map_or("A", |before| before.text);
                let value = token.text;
                format!("{expected}; for several values write {words} in ({before}, {value})")
            }
            _ => match self.joined_unit(token) {
                Some(joined) => {
                    format!("units follow their number without a space: write {joined}")
                }
                None => expected.to_owned(),
            },
        };
        self.wrong(token, reason)
    }

    /// The number before this word with the word as its unit, if the field of the last test can be
    /// compared with it: `1kB` for `bytes > 1 kB`, and `1k` for `packets > 1 kB`.
    fn joined_unit(&self, unit: Token<'_>) -> Option<String> {
        let number = self.before_token(unit)?.text;
        let (words, _) = self.last.as_ref()?;
        let show = Field::find(words, self.schema)?.show(self.records);
        let is_word = unit.kind == Kind::Word && unit.text.starts_with(char::is_alphabetic);
        if !is_word || !literal::is_unitless(number) {
            return None;
        }
        let texts =
            [unit.text, unit.text.trim_end_matches('B')].map(|unit| format!("{number}{unit}"));
        let is_read = |text: &String| compare::number(text, show).is_ok();
        texts.into_iter().find(is_read)
    }

    /// The values of a comma-separated list, starting with the one before this comma.
    fn values_around(&self, comma: Token<'_>) -> Vec<&str> {
        let at = self
            .tokens
            .iter()
            .position(|token| token.span == comma.span);
        let at = at.unwrap_or_default();
        let mut values = vec![self.tokens[at.saturating_sub(1)].text];
        for pair in self.tokens[at..].chunks(2) {
            match pair {
                [comma, value] if is_sign(*comma, ",") && value.kind == Kind::Word => {
                    values.push(value.text);
                }
                _ => break,
            }
        }
        values
    }

    /// The error for a list in brackets.
    #[cold]
    pub(super) fn in_brackets(&self, bracket: Token<'_>) -> QueryError {
        let rest = &self.text[bracket.span.1..];
        let inner = rest.split(']').next().unwrap_or(rest);
        let values: Vec<&str> = inner.split(',').map(str::trim).collect();
        let reason = format!("a list needs parentheses: write ({})", values.join(", "));
        self.misread(bracket, reason)
    }

    /// Explains why a word is not a field, and what to write.
    #[cold]
    pub(super) fn no_field(&self, name: Token<'_>) -> String {
        let text = name.text;
        let is_value = name.kind == Kind::Word;
        let joint = self.joint_before(name);
        if is_value && literal::number(text).is_some() {
            // After a capture-filter test, other hints apply.
            let is_of_address = self.said.is_some();
            return match (&self.last, joint) {
                (Some((words, sign)), Some(joint)) if !is_of_address => {
                    let again = format!("write {joint} {words} {sign} {text}");
                    let again = match *sign {
                        "=" | "==" if joint == "or" => {
                            format!("{again}, or {words} in (A, {text})")
                        }
                        _ => again,
                    };
                    format!("a value alone does not repeat the field: {again}")
                }
                _ => format!("{text} is not a condition: for a port write port {text}"),
            };
        }
        let meant = match Network::parse(text).filter(|_| is_value) {
            Some(_) if text.contains('/') => Some("net"),
            Some(_) => Some("host"),
            None => {
                let is_service = is_value && names::service_port(text).is_some();
                is_service.then_some("port")
            }
        };
        match meant {
            Some(word) => format!("{text} is not a condition: did you mean {word} {text}?"),
            None => field::unknown(text, &Field::names(self.schema), &WORDS),
        }
    }

    /// The `and` or `or` before a token.
    fn joint_before(&self, token: Token<'_>) -> Option<&'static str> {
        joint(self.before_token(token)?)
    }

    fn before_token(&self, token: Token<'_>) -> Option<Token<'_>> {
        let at = self.tokens.iter().position(|its| its.span == token.span)?;
        self.tokens.get(at.checked_sub(1)?).copied()
    }

    /// Adds a note about what a lone value after `and` means, because it is easily taken for a
    /// list.
    pub(super) fn note_repeated(&mut self, words: &str) {
        if joint(self.before()) == Some("and") && self.notes.is_empty() {
            let text = self.peek().text;
            self.notes.push(format!(
                "\"and {text}\" means \"and {words} {text}\", as in capture filters; for records \
                 with either value write \"or {text}\""
            ));
        }
    }
}

fn is_value(token: Token<'_>) -> bool {
    let is_one = literal::number(token.text).is_some() || Network::parse(token.text).is_some();
    token.kind == Kind::Word && is_one
}

/// `and` or `or`, if the token is one of the two.
fn joint(token: Token<'_>) -> Option<&'static str> {
    let is = |word, sign| is_word(token, word) || is_sign(token, sign);
    match () {
        () if is("and", "&&") => Some("and"),
        () if is("or", "||") => Some("or"),
        () => None,
    }
}
