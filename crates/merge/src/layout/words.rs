// SPDX-License-Identifier: Apache-2.0
//! Assigns the words of a record's state.
//!
//! Words are sorted by class, so that a merge is one tight loop per class. Features that need the
//! same content share its words.
//!
//! ```text
//! | add | min (max as its complement) | or | first | last | add, 2 words each, aligned to 2 | lists |
//! ```

use turboflow_record::Input;

/// The packets that a content covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// All packets of the record.
    Both,
    /// In a biflow: packets in the direction of the canonical key.
    Forward,
    /// In a biflow: packets against it.
    Reverse,
}

/// How words merge, in the order of their positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    /// a + b.
    Add,
    /// min(a, b).
    Min,
    /// a | b.
    Or,
    /// a, unless it is 0.
    First,
    /// b, unless it is 0.
    Last,
    /// a + b over two words, low word first.
    Wide,
    /// The number of values, and the values.
    List,
}

/// The content of one or more state words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StateContent {
    /// Number of packets, or of those that carry the input.
    Count,
    /// Sum of the input.
    Sum,
    /// Counts per bin. There is one word per bin, and one edge fewer.
    Bins(Vec<u64>),
    /// Smallest value.
    Min,
    /// Largest value, stored as the complement of the value plus 1, so that a merge keeps the
    /// smallest.
    Max,
    /// OR of the values.
    BitOr,
    /// First value, plus one.
    First,
    /// Last value, plus one.
    Last,
    /// Sum of the input, 128 bits.
    WideSum,
    /// Sum of the input's square, 128 bits.
    WideSquares,
    /// The number of values, and room for as many of the first values.
    List(usize),
}

/// Encodes values so that the smallest code is that of the largest value. The largest code means
/// absent.
#[inline(always)]
pub(super) const fn encode_max(value: u64) -> u64 {
    (!value).wrapping_sub(1)
}

impl StateContent {
    pub(super) const fn class(&self) -> Class {
        match self {
            Self::Count | Self::Sum | Self::Bins(_) => Class::Add,
            Self::Min | Self::Max => Class::Min,
            Self::BitOr => Class::Or,
            Self::First => Class::First,
            Self::Last => Class::Last,
            Self::WideSum | Self::WideSquares => Class::Wide,
            Self::List(_) => Class::List,
        }
    }

    /// How many words the content takes.
    #[must_use]
    pub fn words(&self) -> usize {
        match self {
            Self::Bins(edges) => edges.len() + 1,
            Self::WideSum | Self::WideSquares => 2,
            Self::List(k) => k + 1,
            _ => 1,
        }
    }
}

/// A content and its first word.
#[derive(Clone, Debug)]
pub(super) struct Content {
    pub(super) side: Side,
    pub(super) of: Option<Input>,
    pub(super) what: StateContent,
    pub(super) start: usize,
}

/// All contents of a record's state.
#[derive(Clone, Debug, Default)]
pub(super) struct Words {
    contents: Vec<Content>,
    placed: bool,
}

impl Words {
    /// The first word of a content. Before [`Words::place`], registers the content and returns 0.
    pub(super) fn at(&mut self, side: Side, of: Option<Input>, what: &StateContent) -> u16 {
        let found = self
            .contents
            .iter_mut()
            .find(|content| content.serves(side, of, what));
        match (found, self.placed) {
            (Some(content), true) => content.start as u16,
            (Some(content), false) => {
                content.grow(what);
                0
            }
            (None, _) => {
                assert!(
                    !self.placed,
                        "every content must be registered before words are placed"
                );
                self.contents.push(Content {
                    side,
                    of,
                    what: what.clone(),
                    start: 0,
                });
                0
            }
        }
    }

    /// Assigns words to every content.
    pub(super) fn place(&mut self) {
        self.contents.sort_by_key(|content| content.what.class());
        let (mut next, wide_start) = (0, self.wide_start());
        for content in &mut self.contents {
            if content.what.class() == Class::Wide {
                next = next.max(wide_start);
            }
            content.start = next;
            next += content.what.words();
        }
        self.placed = true;
    }

    pub(super) fn contents(&self) -> &[Content] {
        &self.contents
    }

    /// The number of words.
    pub(super) fn count(&self) -> usize {
        self.end_of(Class::List)
    }

    /// The end of the words of `class`.
    pub(super) fn end_of(&self, class: Class) -> usize {
        let words = |of: &dyn Fn(Class) -> bool| {
            let contents = self.contents.iter();
            let contents = contents.filter(|content| of(content.what.class()));
            contents.map(|content| content.what.words()).sum::<usize>()
        };
        if class < Class::Wide {
            return words(&|each| each <= class);
        }
        self.wide_start() + words(&|each| (Class::Wide..=class).contains(&each))
    }

    /// The start of class wide. Aligned, so that no pair of words crosses a cache line.
    pub(super) fn wide_start(&self) -> usize {
        let narrow = self.end_of(Class::Last);
        let is_wide = |content: &Content| content.what.class() == Class::Wide;
        if self.contents.iter().any(is_wide) {
            narrow.next_multiple_of(2)
        } else {
            narrow
        }
    }
}

impl Content {
    /// Whether this content can serve the given one. A longer list serves a shorter one.
    fn serves(&self, side: Side, of: Option<Input>, what: &StateContent) -> bool {
        let same = match (&self.what, what) {
            (StateContent::List(_), StateContent::List(_)) => true,
            (mine, wanted) => mine == wanted,
        };
        same && self.side == side && self.of == of
    }

    fn grow(&mut self, what: &StateContent) {
        if let (StateContent::List(mine), StateContent::List(wanted)) = (&mut self.what, what) {
            *mine = (*mine).max(*wanted);
        }
    }
}
