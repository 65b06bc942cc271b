// SPDX-License-Identifier: Apache-2.0
//! Capture-filter syntax: `tcp dst port 443`, `src host 10.0.0.1`, `net 10.0.0.0/8`.
//!
//! Users who know packet filters can filter records in the same way. In a biflow, `src` is the
//! initiator.

use std::net::IpAddr;

use turboflow_record::Network;

use super::parser::{Parser, is_word};
use super::{Expression, one_or};
use crate::QueryError;
use crate::compare::{Operator, Test};
use crate::field::Field;
use crate::names;
use crate::token::{Kind, Token};

/// The part of a capture-filter test before its value.
#[derive(Clone, Debug)]
pub(super) struct Said {
    /// The protocol test in front: `tcp`, `ip` and so on.
    class: Option<Expression>,
    side: Side,
    what: What,
    /// The words before the value and the operator.
    words: String,
    /// Whether an operator stands before the value. `==` and `in` do not count: they change
    /// nothing.
    has_operator: bool,
}

/// The protocols that have ports: TCP, UDP, DCCP, SCTP, UDP-Lite.
const WITH_PORTS: [u64; 5] = [6, 17, 33, 132, 136];

/// The side of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Source,
    Destination,
    Either,
    Both,
}

/// The kind of value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Host,
    Net,
    Port,
}

impl What {
    fn of(word: Token<'_>) -> Option<Self> {
        let named = [
            ("host", Self::Host),
            ("net", Self::Net),
            ("port", Self::Port),
            ("portrange", Self::Port),
        ];
        let found = named.into_iter().find(|(name, _)| is_word(word, name));
        found.map(|(_, what)| what)
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Net => "net",
            Self::Port => "port",
        }
    }
}

/// Capture-filter words for properties that records do not have, and what to write instead.
const NOT_HERE: [(&str, &str); 9] = [
    ("arp", "flow records are of IP packets"),
    ("broadcast", "write dst host 255.255.255.255"),
    (
        "ether",
        "a record has MAC addresses only if its definition has a column of them",
    ),
    ("gateway", "flow records do not hold it"),
    ("greater", "write bytes >= N, or bytes_per_packet >= N"),
    ("inbound", "flow records do not hold it"),
    ("less", "write bytes <= N, or bytes_per_packet <= N"),
    ("multicast", "write dst net 224.0.0.0/4 or dst net ff00::/8"),
    ("outbound", "flow records do not hold it"),
];

impl Parser<'_> {
    /// Parses a test in capture-filter words; `None` if the next word is not one of them.
    pub(super) fn primitive(&mut self) -> Result<Option<Expression>, QueryError> {
        let first = self.peek();
        if let Some((word, instead)) = NOT_HERE.iter().find(|(word, _)| is_word(first, word)) {
            return Err(self.wrong(
                first,
                format!("records cannot be asked for {word}: {instead}"),
            ));
        }
        if self.accept(&["proto"]) {
            return self.protocols().map(Some);
        }
        let class = self.class()?;
        if class.is_some() && self.accept(&["proto"]) {
            let protocols = self.protocols()?;
            return Ok(Some(and(class, protocols)));
        }
        let side = self.side();
        let what = What::of(self.peek());
        if what.is_some() {
            self.take();
        }
        let words = self.text[first.span.0..self.before().span.1.max(first.span.0)].to_owned();
        let has_operator =
            self.peek().kind == Kind::Sign && !["(", "=", "=="].contains(&self.peek().text);
        let said = match (class, side, what) {
            (Some(class), None, None) => {
                (self.said, self.last) = (None, None);
                return Ok(Some(class));
            }
            (None, None, None) => return self.repeated(),
            (class, side, Some(what)) => Said {
                class,
                side: side.unwrap_or(Side::Either),
                what,
                words,
                has_operator,
            },
            // `src 10.0.0.1` is `src host 10.0.0.1`.
            (class, Some(side), None) => Said {
                class,
                side,
                what: self.kind_of_address()?,
                words,
                has_operator,
            },
        };
        self.last = Some((said.words.clone(), "=="));
        self.said = Some(said.clone());
        self.operand(first, said).map(Some)
    }

    /// Parses `tcp`, `udp`, `ip`, `ip6`, ...
    fn class(&mut self) -> Result<Option<Expression>, QueryError> {
        let word = self.peek();
        let everything = [("ip", "0.0.0.0/0"), ("ip6", "::/0")];
        let family = everything.into_iter().find(|(name, _)| is_word(word, name));
        let (field, test) = if let Some((_, net)) = family {
            let net = Network::parse(net).expect("it is a network");
            ("src_addr", Test::In(net))
        } else if let Some(number) = names::protocol_number(word.text) {
            ("protocol", Test::Number(Operator::Equal, number))
        } else {
            return Ok(None);
        };
        let field = self.field(Token {
            text: field,
            ..word
        })?;
        self.take();
        Ok(Some(Expression::Test(field, test)))
    }

    /// Parses `src`, `dst`, `src or dst`, `src and dst`.
    fn side(&mut self) -> Option<Side> {
        let of = |word| match word {
            _ if is_word(word, "src") => Some(Side::Source),
            _ if is_word(word, "dst") => Some(Side::Destination),
            _ => None,
        };
        let first = of(self.peek())?;
        self.take();
        let (joint, second) = (self.peek(), of(self.peek_second()));
        let joined = match second.filter(|second| *second != first) {
            Some(_) if is_word(joint, "or") => Side::Either,
            Some(_) if is_word(joint, "and") => Side::Both,
            _ => return Some(first),
        };
        self.take();
        self.take();
        Some(joined)
    }

    /// Whether a value after a bare `src` or `dst` is an address or a network.
    fn kind_of_address(&self) -> Result<What, QueryError> {
        let value = self.peek();
        match Network::parse(value.text) {
            Some(_) if value.text.contains('/') => Ok(What::Net),
            Some(_) => Ok(What::Host),
            None => Err(self.wrong(
                value,
                "expected host, net, port or an address here: src host 10.0.0.1".to_owned(),
            )),
        }
    }

    /// Parses a lone value, which the words before the last value also apply to: `port 80 or 443`.
    fn repeated(&mut self) -> Result<Option<Expression>, QueryError> {
        let value = self.peek();
        let Some(said) = self.said.clone() else {
            return Ok(None);
        };
        let is_value = match said.what {
            What::Host | What::Net => Network::parse(value.text).is_some(),
            What::Port => {
                let is_number = value.text.starts_with(|c: char| c.is_ascii_digit());
                is_number || names::service_port(value.text).is_some()
            }
        };
        if !is_value {
            return Ok(None);
        }
        if said.has_operator {
            let what = said.what.word();
            return Err(self.wrong(
                value,
                format!(
                    "a value alone does not repeat the operator: write {what} != (A, B), or \
                     {what} < A or {what} > B"
                ),
            ));
        }
        self.note_repeated(&said.words);
        self.operand(value, said).map(Some)
    }

    /// Parses the value of `said`, and makes a test for each of its sides.
    fn operand(&mut self, first: Token<'_>, said: Said) -> Result<Expression, QueryError> {
        let Said {
            class, side, what, ..
        } = said;
        let fields = match what {
            What::Host | What::Net => ["src_addr", "dst_addr"],
            What::Port => ["src_port", "dst_port"],
        };
        let sides = match side {
            Side::Source => &fields[..1],
            Side::Destination => &fields[1..],
            Side::Either | Side::Both => &fields[..],
        };
        let start = self.place();
        let mut parts = Vec::new();
        let mut is_not = false;
        for name in sides {
            self.go_back(start);
            let field = self.field(Token {
                text: name,
                ..first
            })?;
            let (part, negated) = self.one_side(field, what)?;
            parts.push(part);
            is_not = negated;
        }
        let join = match side {
            Side::Both => Expression::All,
            _ => Expression::Any,
        };
        let mut joined = one_or(parts, join);
        // As in capture filters: in a protocol without ports, these fields hold something else.
        let is_protocol = matches!(&class, Some(Expression::Test(_, Test::Number(..))));
        if what == What::Port && !is_protocol {
            joined = self.with_ports(joined);
        }
        let test = match is_not {
            true => Expression::Not(Box::new(joined)),
            false => joined,
        };
        Ok(and(class, test))
    }

    /// Restricts a test of ports to the protocols that have ports. Records without a protocol
    /// column keep the test unchanged.
    fn with_ports(&self, test: Expression) -> Expression {
        let Some(protocol) = Field::find("protocol", self.schema) else {
            return test;
        };
        let is = |number| Expression::Test(protocol, Test::Number(Operator::Equal, number));
        let any = Expression::Any(WITH_PORTS.map(is).to_vec());
        Expression::All(vec![any, test])
    }

    /// Parses the optional operator and the value. Also returns whether the test is to be negated.
    fn one_side(&mut self, field: Field, what: What) -> Result<(Expression, bool), QueryError> {
        let sign = self.peek();
        let operator = Some(sign).filter(|sign| sign.kind == Kind::Sign);
        let operator = operator.and_then(|sign| Operator::from_sign(sign.text));
        let is_not = operator == Some(Operator::NotEqual);
        match operator {
            None => _ = self.accept(&["in"]),
            Some(Operator::Equal | Operator::NotEqual) => _ = self.take(),
            Some(operator) => {
                self.take();
                let value = self.peek();
                self.value()?;
                return Ok((self.comparison(field, operator, value)?, false));
            }
        }
        let value = self.peek();
        if what == What::Host
            && value.kind == Kind::Word
            && value.text.contains('/')
            && Network::parse(value.text).is_some()
        {
            let reason = format!(
                "{:?} is not an IP address; for a network write \"net\"",
                value.text
            );
            return Err(self.wrong(value, reason));
        }
        if what == What::Host && value.kind == Kind::Word && is_name(value.text) {
            let reason = format!("{:?} is not an IP address", value.text);
            return Err(self.wrong(value, reason));
        }
        let members = self.membership(field)?;
        let mask = self.peek();
        if is_word(mask, "mask") {
            let reason = "write the length of the prefix: net 10.0.0.0/8".to_owned();
            return Err(self.wrong(mask, reason));
        }
        Ok((members, is_not))
    }

    /// Parses the operand of `proto`.
    fn protocols(&mut self) -> Result<Expression, QueryError> {
        let field = self.field(Token {
            kind: Kind::Word,
            text: "protocol",
            ..self.peek()
        })?;
        (self.said, self.last) = (None, Some(("proto".to_owned(), "==")));
        let is_not = self.accept(&["!="]);
        if !is_not {
            self.accept(&["==", "=", "in"]);
        }
        let members = self.membership(field)?;
        Ok(match is_not {
            true => Expression::Not(Box::new(members)),
            false => members,
        })
    }
}

/// Whether the text can only be the name of a host.
fn is_name(text: &str) -> bool {
    let ends = text.split_once("..").or_else(|| text.split_once('-'));
    let first = ends.map_or(text, |(first, _)| first);
    first.parse::<IpAddr>().is_err()
}

fn and(class: Option<Expression>, test: Expression) -> Expression {
    match class {
        Some(class) => Expression::All(vec![class, test]),
        None => test,
    }
}
