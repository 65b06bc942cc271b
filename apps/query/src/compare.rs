// SPDX-License-Identifier: Apache-2.0
//! Compares a value of an expression with a value of a record.

use std::cmp::Ordering;
use std::net::IpAddr;

use turboflow_record::{ColumnKind, Network, Value};

use crate::field::Show;
use crate::literal;
use crate::names;
use crate::numbers::Numbers;

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Operator {
    pub(crate) fn from_sign(sign: &str) -> Option<Self> {
        Some(match sign {
            "=" | "==" => Self::Equal,
            "!=" => Self::NotEqual,
            "<" => Self::Less,
            "<=" => Self::LessOrEqual,
            ">" => Self::Greater,
            ">=" => Self::GreaterOrEqual,
            _ => return None,
        })
    }

    fn holds(self, ordering: Ordering) -> bool {
        match self {
            Self::Equal => ordering.is_eq(),
            Self::NotEqual => ordering.is_ne(),
            Self::Less => ordering.is_lt(),
            Self::LessOrEqual => ordering.is_le(),
            Self::Greater => ordering.is_gt(),
            Self::GreaterOrEqual => ordering.is_ge(),
        }
    }
}

/// A condition on one value. An absent value passes only [`Test::Absent`].
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Test {
    Number(Operator, u64),
    Float(Operator, f64),
    Address(Operator, IpAddr),
    In(Network),
    /// All of these bits are set.
    Bits(u64),
    /// The list contains this number.
    Contains(u64),
    /// The text equals this one, or differs from it.
    Text(Operator, Box<str>),
    /// The text contains this one, ignoring case.
    Holds(Box<str>),
    Absent,
}

impl Test {
    pub(crate) fn passes(&self, value: Value<'_>) -> bool {
        match (self, value) {
            (Self::Number(operator, right), Value::Unsigned(left)) => {
                operator.holds(left.cmp(right))
            }
            (Self::Float(operator, right), Value::Float(left)) => left
                .partial_cmp(right)
                .is_some_and(|ordering| operator.holds(ordering)),
            (Self::Address(operator, right), Value::Address(left)) => {
                operator.holds(left.cmp(right))
            }
            (Self::In(net), Value::Address(address)) => net.contains(address),
            (Self::Bits(bits), Value::Unsigned(value)) => value & bits == *bits,
            (Self::Contains(number), Value::List(list)) => list.contains(number),
            (Self::Text(operator, right), Value::Text(left)) => operator.holds(left.cmp(right)),
            (Self::Holds(part), Value::Text(text)) => text.to_lowercase().contains(&**part),
            (Self::Absent, Value::Absent) => true,
            _ => false,
        }
    }
}

impl Test {
    /// Marks the numbers of a field that pass. Returns false if this test is not about numbers.
    pub(crate) fn mark<'a>(
        &self,
        numbers: impl FnOnce() -> Numbers<'a>,
        mask: &mut [bool],
    ) -> bool {
        let mark = |mask: &mut [bool], passes: &dyn Fn(&[u64], &mut [bool])| {
            let numbers = numbers();
            passes(numbers.values(), mask);
            for (holds, valid) in mask.iter_mut().zip(numbers.valid()) {
                *holds &= valid;
            }
        };
        match *self {
            Self::Number(operator, right) => mark(mask, &|values, mask| match operator {
                Operator::Equal => each(values, mask, |left| left == right),
                Operator::NotEqual => each(values, mask, |left| left != right),
                Operator::Less => each(values, mask, |left| left < right),
                Operator::LessOrEqual => each(values, mask, |left| left <= right),
                Operator::Greater => each(values, mask, |left| left > right),
                Operator::GreaterOrEqual => each(values, mask, |left| left >= right),
            }),
            Self::Bits(bits) => mark(mask, &|values, mask| {
                each(values, mask, |value| value & bits == bits);
            }),
            _ => return false,
        }
        true
    }

    /// Whether this test's value is less than that of another test of the same field.
    pub(crate) fn is_before(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Number(_, left), Self::Number(_, right)) => left < right,
            (Self::Float(_, left), Self::Float(_, right)) => left < right,
            (Self::Address(_, left), Self::Address(_, right)) => left < right,
            _ => false,
        }
    }
}

/// One loop for each operator, so that the compiler can vectorise it.
#[inline]
fn each(values: &[u64], mask: &mut [bool], passes: impl Fn(u64) -> bool) {
    for (holds, value) in mask.iter_mut().zip(values) {
        *holds = passes(*value);
    }
}

/// Whether the text is a single value of such a field, not a range.
pub(crate) fn is_value(text: &str, kind: ColumnKind, show: Show) -> bool {
    literal::before_now_ns(text).is_some() && show == Show::Time
        || compare(Operator::Equal, text, kind, show).is_ok()
}

/// Parses a number as written for a field with this representation.
pub(crate) fn number(text: &str, show: Show) -> Result<u64, String> {
    let (value, what) = match show {
        Show::Time => (
            literal::time_ns(text),
            "a time such as 2024-03-01T12:30:00Z or nanoseconds since 1970",
        ),
        Show::Duration if literal::is_unitless(text) => {
            return Err(format!(
                "the unit of {text:?} is missing: write {text}s, or {text}ns for nanoseconds"
            ));
        }
        Show::Duration => (
            literal::duration_ns(text),
            "a duration such as 250ms, 5s or 2h",
        ),
        Show::Protocol => (
            literal::number(text).or_else(|| names::protocol_number(text)),
            "a protocol such as tcp, udp, icmp or a number",
        ),
        Show::Flags => (
            literal::number(text).or_else(|| names::flags_number(text)),
            "TCP flags such as SA (letters of FSRPAUEC) or a number",
        ),
        Show::EndReason => (
            literal::number(text).or_else(|| names::end_reason_number(text)),
            "an end reason: idle_timeout, active_timeout, end_of_flow, forced_end, \
             lack_of_resources or a number",
        ),
        Show::Bytes => (
            literal::number(text).or_else(|| literal::number(text.strip_suffix('B')?)),
            "a number of bytes such as 1500, 1.5k, 10MB or 4KiB",
        ),
        Show::Port => (
            literal::number(text).or_else(|| names::service_port(text)),
            "a port such as 443, or a service such as https",
        ),
        Show::Mac => (mac(text), "a MAC address such as 02:42:ac:11:00:02"),
        _ => (literal::number(text), "a number such as 443, 1.5k or 10M"),
    };
    let is_fraction = || {
        let without_unit = text.strip_suffix('B').filter(|_| show == Show::Bytes);
        literal::real(without_unit.unwrap_or(text)).is_some_and(|real| real.fract() != 0.0)
    };
    value.ok_or_else(|| match show {
        Show::Number | Show::Port | Show::Count | Show::Bytes if is_fraction() => {
            format!("{text:?} is not a whole number, but all values that it is compared with are")
        }
        _ => format!("{text:?} is not {what}"),
    })
}

/// The test for `field OPERATOR text`.
pub(crate) fn compare(
    operator: Operator,
    text: &str,
    kind: ColumnKind,
    show: Show,
) -> Result<Test, String> {
    match kind {
        ColumnKind::Address if text.contains('/') => {
            Err(format!("{text:?} is a network: write \"in {text}\""))
        }
        ColumnKind::Address => match text.parse() {
            Ok(address) => Ok(Test::Address(operator, address)),
            Err(_) => Err(format!("{text:?} is not an IP address")),
        },
        ColumnKind::Float if show == Show::Duration => {
            Ok(Test::Float(operator, number(text, show)? as f64))
        }
        ColumnKind::Float => match text.parse::<f64>().ok().or_else(|| literal::real(text)) {
            Some(number) => Ok(Test::Float(operator, number)),
            None => Err(format!("{text:?} is not a number")),
        },
        ColumnKind::List => Err("a list cannot be compared: write \"has NUMBER\"".to_owned()),
        ColumnKind::Text => match operator {
            Operator::Equal | Operator::NotEqual => Ok(Test::Text(operator, text.into())),
            _ => Err("texts are neither less nor more: write ==, !=, in or has".to_owned()),
        },
        ColumnKind::Unsigned { bits } => {
            let number = number(text, show)?;
            let most = u64::MAX >> 64u32.saturating_sub(bits.into());
            if operator == Operator::Equal && number > most {
                return Err(format!(
                    "{text:?} is more than {most}, the largest possible value"
                ));
            }
            Ok(Test::Number(operator, number))
        }
        _ => Ok(Test::Number(operator, number(text, show)?)),
    }
}

/// The test for `field has text`.
pub(crate) fn has(text: &str, kind: ColumnKind, show: Show) -> Result<Test, String> {
    match kind {
        ColumnKind::List => Ok(Test::Contains(number(text, Show::Number)?)),
        ColumnKind::Unsigned { .. } => Ok(Test::Bits(number(text, show)?)),
        ColumnKind::Text => Ok(Test::Holds(text.to_lowercase().into())),
        _ => Err("only flags, numbers, lists and texts can be asked for what they have".to_owned()),
    }
}

fn mac(text: &str) -> Option<u64> {
    let parts: Vec<&str> = text.split(':').collect();
    let byte = |part: &&str| {
        let hex = part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
        hex.then(|| u64::from_str_radix(part, 16).ok())?
    };
    let bytes: Option<Vec<u64>> = parts.iter().map(byte).collect();
    bytes
        .filter(|bytes| bytes.len() == 6)
        .map(|b| b.iter().fold(0, |mac, byte| mac << 8 | byte))
}
