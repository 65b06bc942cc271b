// SPDX-License-Identifier: Apache-2.0
//! Expressions of bmv2's JSON, with their fields resolved.

use serde_json::Value;

use crate::program::{Names, items, number, text};

/// The values that an expression uses: unsigned numbers. `p4c` limits every result to the width of
/// its type, so 128 bits without carry are enough for types of 64 bits.
pub(crate) struct Values<'a> {
    /// The values of all fields of fixed width.
    pub(crate) fields: &'a [u128],
    /// Whether each header is valid.
    pub(crate) is_valid: &'a [bool],
    /// The number of headers in each stack.
    pub(crate) stacked: &'a [usize],
    /// The arguments of the action.
    pub(crate) arguments: &'a [u128],
}

#[derive(Clone, Debug)]
pub(crate) enum Expression {
    Constant(u128),
    Field(usize),
    IsValid(usize),
    Argument(usize),
    /// A field of the last header in a stack, with the number of this field in each header.
    OfLast {
        stack: usize,
        fields: Vec<usize>,
    },
    Unary(Unary, Box<Self>),
    Binary(Binary, Box<[Self; 2]>),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Unary {
    Not,
    /// A conversion between numbers and truth values. Both are numbers here.
    Same,
    IsNotZero,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Binary {
    Add,
    And,
    BitAnd,
    BitOr,
    BitXor,
    Equal,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    Multiply,
    NotEqual,
    Or,
    Saturate,
    ShiftLeft,
    ShiftRight,
    Subtract,
}

impl Expression {
    pub(crate) fn read(names: &Names, json: &Value) -> Self {
        let value = &json["value"];
        match text(&json["type"]) {
            "expression" if value.get("op").is_some() => Self::operation(names, value),
            "expression" => Self::read(names, value),
            "hexstr" => Self::Constant(number(value)),
            "bool" => Self::Constant(value.as_bool().expect("a truth value").into()),
            "runtime_data" => {
                Self::Argument(value.as_u64().expect("the number of an argument") as usize)
            }
            "field" if text(&value[1]) == "$valid$" => Self::IsValid(names.header(&value[0])),
            "field" => Self::Field(names.field(text(&value[0]), &value[1])),
            "stack_field" => {
                let (stack, headers) = names.stack(&value[0]);
                let fields = headers.iter().map(|header| names.field(header, &value[1]));
                Self::OfLast {
                    stack,
                    fields: fields.collect(),
                }
            }
            other => panic!("expressions of type `{other}` are not supported"),
        }
    }

    fn operation(names: &Names, json: &Value) -> Self {
        let op = text(&json["op"]);
        let operand = |side| Self::read(names, &json[side]);
        let unary = match op {
            "not" => Some(Unary::Not),
            "b2d" => Some(Unary::Same),
            "d2b" => Some(Unary::IsNotZero),
            _ => None,
        };
        if let Some(unary) = unary {
            return Self::Unary(unary, Box::new(operand("right")));
        }
        let binary = match op {
            "+" => Binary::Add,
            "and" => Binary::And,
            "&" => Binary::BitAnd,
            "|" => Binary::BitOr,
            "^" => Binary::BitXor,
            "==" => Binary::Equal,
            ">" => Binary::Greater,
            ">=" => Binary::GreaterOrEqual,
            "<" => Binary::Less,
            "<=" => Binary::LessOrEqual,
            "*" => Binary::Multiply,
            "!=" => Binary::NotEqual,
            "or" => Binary::Or,
            "usat_cast" => Binary::Saturate,
            "<<" => Binary::ShiftLeft,
            ">>" => Binary::ShiftRight,
            "-" => Binary::Subtract,
            other => panic!("the operation `{other}` is not supported"),
        };
        Self::Binary(binary, Box::new([operand("left"), operand("right")]))
    }

    pub(crate) fn value(&self, values: &Values<'_>) -> u128 {
        match self {
            Self::Constant(value) => *value,
            Self::Field(field) => values.fields[*field],
            Self::IsValid(header) => values.is_valid[*header].into(),
            Self::Argument(at) => values.arguments[*at],
            Self::OfLast { stack, fields } => values.fields[fields[values.stacked[*stack] - 1]],
            Self::Unary(unary, of) => {
                let of = of.value(values);
                match unary {
                    Unary::Not => (of == 0).into(),
                    Unary::Same => of,
                    Unary::IsNotZero => (of != 0).into(),
                }
            }
            Self::Binary(binary, sides) => {
                let [left, right] = &**sides;
                binary.value(left.value(values), || right.value(values))
            }
        }
    }

    pub(crate) fn is_true(&self, values: &Values<'_>) -> bool {
        self.value(values) != 0
    }
}

impl Binary {
    fn value(self, left: u128, right: impl FnOnce() -> u128) -> u128 {
        match self {
            Self::And if left == 0 => return 0,
            Self::Or if left != 0 => return 1,
            _ => {}
        }
        let right = right();
        match self {
            Self::Add => left.wrapping_add(right),
            Self::And | Self::Or => (right != 0).into(),
            Self::BitAnd => left & right,
            Self::BitOr => left | right,
            Self::BitXor => left ^ right,
            Self::Equal => (left == right).into(),
            Self::Greater => (left > right).into(),
            Self::GreaterOrEqual => (left >= right).into(),
            Self::Less => (left < right).into(),
            Self::LessOrEqual => (left <= right).into(),
            Self::Multiply => left.wrapping_mul(right),
            Self::NotEqual => (left != right).into(),
            Self::Saturate => left.min((1 << right) - 1),
            Self::ShiftLeft => left.checked_shl(right as u32).expect("shifts are short"),
            Self::ShiftRight => left.checked_shr(right as u32).expect("shifts are short"),
            Self::Subtract => left.wrapping_sub(right),
        }
    }
}

/// The items of a list of expressions.
pub(crate) fn expressions(names: &Names, json: &Value) -> Vec<Expression> {
    items(json)
        .iter()
        .map(|item| Expression::read(names, item))
        .collect()
}
