// SPDX-License-Identifier: Apache-2.0
//! Turns the op of each feature into the words of its state, and into how its column is computed
//! from them.

use super::words::{Side, StateContent, Words};
use turboflow_record::{ColumnKind, Feature, Input, Op};

/// A number that every record has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Number {
    Base(BaseField),
    /// A word of the state. The first index applies if the source of the key initiated the flow,
    /// the second if its destination did.
    Word([u16; 2]),
}

/// A field of [`Base`](crate::Base) that serves a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BaseField {
    Bytes,
    EndReason,
    FirstNs,
    LastNs,
    MaxLength,
    MaxTtl,
    MinLength,
    MinTtl,
    Packets,
    TcpFlags,
    Tos,
}

/// A sum, which may have 128 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sum {
    Number(Number),
    Wide([u16; 2]),
}

/// Smallest and largest timestamp of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Span {
    Base,
    /// A word of class min, and one that holds a complement.
    Words {
        first: [u16; 2],
        last: [u16; 2],
    },
}

/// Sum and number of values. The number is `count - less`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moments {
    pub(super) sum: Sum,
    pub(super) count: Number,
    /// 1 for gaps, because there is one gap fewer than packets; else 0.
    pub(super) less: u64,
}

/// How a column is computed. Words are pairs as in [`Number::Word`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Number(Number),
    /// The number minus 1; 0 stays 0.
    OneLess(Number),
    Min([u16; 2]),
    Max([u16; 2]),
    /// The first or last value, which is stored plus 1.
    Stored([u16; 2]),
    Nth {
        start: [u16; 2],
        k: u16,
    },
    List {
        start: [u16; 2],
        k: u16,
    },
    Bins {
        start: [u16; 2],
        bins: u16,
    },
    Mean(Moments),
    Variance {
        moments: Moments,
        squares: [u16; 2],
    },
    Duration(Span),
    Rate {
        amount: Number,
        span: Span,
    },
    /// A text for the value of an input. The value is stored as in [`Form::Stored`].
    Text {
        word: [u16; 2],
        of: Input,
    },
    /// The Community ID of the key. The words hold type and code of the first ICMP message.
    CommunityId {
        icmp: [[u16; 2]; 2],
    },
}

/// Creates the form of one column. `sides` are the packets that the column covers: the first
/// applies if the source of the key initiated the flow, the second if its destination did.
pub(super) struct FormMaker<'a> {
    pub(super) words: &'a mut Words,
    pub(super) sides: [Side; 2],
}

impl FormMaker<'_> {
    pub(super) fn form(&mut self, feature: &Feature) -> Form {
        match feature.of {
            Some(of) if of.column_kind() == ColumnKind::Text => self.text(&feature.op, of),
            _ => self.form_of_packets(feature),
        }
    }

    /// A text column: a result of inspection, or a decision of a bridge.
    fn text(&mut self, op: &Op, of: Input) -> Form {
        let what = match op {
            Op::First => StateContent::First,
            _ => StateContent::Last,
        };
        let word = self.word(Some(of), &what);
        Form::Text { word, of }
    }

    /// The words that hold type and code of the flow's first ICMP message.
    fn community_id(&mut self) -> Form {
        let inputs = [Input::IcmpType, Input::IcmpCode];
        let icmp = inputs.map(|input| self.word(Some(input), &StateContent::First));
        Form::CommunityId { icmp }
    }

    fn form_of_packets(&mut self, feature: &Feature) -> Form {
        let (op, of) = match feature.op.over_gaps() {
            Some(op) => (op, Some(Input::Gap)),
            None => (feature.op.clone(), feature.of),
        };
        if of == Some(Input::Gap) {
            self.word(Some(Input::Timestamp), &StateContent::First);
            self.word(Some(Input::Timestamp), &StateContent::Last);
        }
        match op {
            Op::Count if of == Some(Input::Gap) => Form::OneLess(self.count(None)),
            Op::Count => Form::Number(self.count(of)),
            Op::Sum => Form::Number(self.sum(of)),
            Op::Min => match self.base_min(of) {
                Some(field) => Form::Number(Number::Base(field)),
                None => Form::Min(self.word(of, &StateContent::Min)),
            },
            Op::Max => match self.base_max(of) {
                Some(field) => Form::Number(Number::Base(field)),
                None => Form::Max(self.word(of, &StateContent::Max)),
            },
            Op::First if self.is_base(of, Input::Tos) => Form::Number(Number::Base(BaseField::Tos)),
            Op::First => Form::Stored(self.word(of, &StateContent::First)),
            Op::Last => Form::Stored(self.word(of, &StateContent::Last)),
            Op::BitOr if self.is_base(of, Input::TcpFlags) => {
                Form::Number(Number::Base(BaseField::TcpFlags))
            }
            Op::BitOr => Form::Number(Number::Word(self.word(of, &StateContent::BitOr))),
            Op::Nth { k } => Form::Nth {
                start: self.word(of, &StateContent::List(k)),
                k: k as u16,
            },
            Op::List { k } => Form::List {
                start: self.word(of, &StateContent::List(k)),
                k: k as u16,
            },
            Op::Histogram { edges } => {
                let bins = edges.len() as u16 + 1;
                Form::Bins {
                    start: self.word(of, &StateContent::Bins(edges)),
                    bins,
                }
            }
            Op::Mean => Form::Mean(self.moments(of)),
            Op::Variance => {
                let squares = self.word(of, &StateContent::WideSquares);
                Form::Variance {
                    moments: self.moments(of),
                    squares,
                }
            }
            Op::CommunityId => self.community_id(),
            Op::Duration => Form::Duration(self.span()),
            Op::Rate => {
                let amount = if of.is_some() {
                    self.sum(of)
                } else {
                    self.count(None)
                };
                Form::Rate {
                    amount,
                    span: self.span(),
                }
            }
            Op::GapMin | Op::GapMax | Op::GapMean | Op::GapVariance => {
                unreachable!("gap ops are ops over gaps")
            }
        }
    }

    fn word(&mut self, of: Option<Input>, what: &StateContent) -> [u16; 2] {
        self.sides.map(|side| self.words.at(side, of, what))
    }

    /// Whether the column covers all packets and its input is `input`.
    fn is_base(&self, of: Option<Input>, input: Input) -> bool {
        self.sides[0] == Side::Both && of == Some(input)
    }

    fn base_min(&self, of: Option<Input>) -> Option<BaseField> {
        match of {
            _ if self.sides[0] != Side::Both => None,
            Some(Input::IpLength) => Some(BaseField::MinLength),
            Some(Input::Timestamp) => Some(BaseField::FirstNs),
            Some(Input::Ttl) => Some(BaseField::MinTtl),
            _ => None,
        }
    }

    fn base_max(&self, of: Option<Input>) -> Option<BaseField> {
        match of {
            _ if self.sides[0] != Side::Both => None,
            Some(Input::IpLength) => Some(BaseField::MaxLength),
            Some(Input::Timestamp) => Some(BaseField::LastNs),
            Some(Input::Ttl) => Some(BaseField::MaxTtl),
            _ => None,
        }
    }

    pub(super) fn count(&mut self, of: Option<Input>) -> Number {
        let of = of.filter(|input| !input.is_always_present());
        if of.is_none() && self.sides[0] == Side::Both {
            return Number::Base(BaseField::Packets);
        }
        Number::Word(self.word(of, &StateContent::Count))
    }

    fn sum(&mut self, of: Option<Input>) -> Number {
        if self.is_base(of, Input::IpLength) {
            return Number::Base(BaseField::Bytes);
        }
        Number::Word(self.word(of, &StateContent::Sum))
    }

    fn moments(&mut self, of: Option<Input>) -> Moments {
        let sum = match of {
            Some(input) if input.bits() == 64 => Sum::Wide(self.word(of, &StateContent::WideSum)),
            _ => Sum::Number(self.sum(of)),
        };
        match of {
            Some(Input::Gap) => Moments {
                sum,
                count: self.count(None),
                less: 1,
            },
            _ => Moments {
                sum,
                count: self.count(of),
                less: 0,
            },
        }
    }

    fn span(&mut self) -> Span {
        if self.sides[0] == Side::Both {
            return Span::Base;
        }
        let first = self.word(Some(Input::Timestamp), &StateContent::Min);
        let last = self.word(Some(Input::Timestamp), &StateContent::Max);
        Span::Words { first, last }
    }
}

/// The type of a feature's column.
pub(super) fn column_kind(feature: &Feature) -> ColumnKind {
    match feature.op {
        Op::Min | Op::Max | Op::First | Op::Last | Op::Nth { .. } | Op::BitOr => feature
            .of
            .map_or(ColumnKind::Unsigned { bits: 64 }, Input::column_kind),
        Op::Mean | Op::Variance | Op::GapMean | Op::GapVariance | Op::Rate => ColumnKind::Float,
        Op::Histogram { .. } | Op::List { .. } => ColumnKind::List,
        Op::Count | Op::Sum | Op::GapMin | Op::GapMax | Op::Duration => {
            ColumnKind::Unsigned { bits: 64 }
        }
        Op::CommunityId => ColumnKind::Text,
    }
}

/// Whether a record may lack the feature. The initiator of a biflow always has packets.
pub(super) fn is_nullable(feature: &Feature, is_reverse: bool) -> bool {
    match feature.op {
        Op::Count | Op::Sum | Op::BitOr | Op::Histogram { .. } | Op::List { .. } => false,
        Op::Duration => is_reverse,
        Op::Nth { k } if k > 1 => true,
        Op::Rate | Op::GapMin | Op::GapMax | Op::GapMean | Op::GapVariance => true,
        _ => is_reverse || !feature.of.is_some_and(Input::is_always_present),
    }
}
