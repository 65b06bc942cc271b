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

/// The sides that gaps can belong to: forward, reverse, both.
pub(super) const MAX_GAPS: usize = 3;

/// Words merged at once: a cache line.
pub(super) const BLOCK: usize = 8;

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
    /// Number of packets, or of packets that carry the input.
    Count,
    /// Sum of the input.
    Sum,
    /// Counts per bin. There is one word per bin, and one edge fewer than bins.
    Bins(Vec<u64>),
    /// Smallest value.
    Min,
    /// Largest value, stored as the complement of (value + 1), so that a merge keeps the smallest
    /// code.
    Max,
    /// OR of the values.
    BitOr,
    /// First value, plus 1.
    First,
    /// Last value, plus 1.
    Last,
    /// Sum of the input, 128 bits.
    WideSum,
    /// Sum of the input's square, 128 bits.
    WideSquares,
    /// The number of values, and room for this many of the first values.
    List(usize),
}

/// Encodes values so that the largest value has the smallest code. The largest code means absent.
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
    /// The first word of a content. Before [`Words::place`], this registers the content and returns
    /// 0.
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

    /// The start of class [`Class::Wide`]. Aligned, so that no pair of words crosses a cache line.
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

/// The end of each class of words.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ends {
    pub(super) add: u32,
    pub(super) min: u32,
    pub(super) or: u32,
    pub(super) first: u32,
    pub(super) last: u32,
    /// The start of class [`Class::Wide`].
    pub(super) wide_start: u32,
    pub(super) wide: u32,
}

/// A list: the number of its values, and room for `k` values.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListWords {
    pub(super) start: u16,
    pub(super) k: u16,
}

#[inline(always)]
pub(super) fn read_wide(words: &[u64], word: usize) -> u128 {
    u128::from(words[word]) | u128::from(words[word + 1]) << 64
}

/// Saturates. Like addition, this is associative, and it marks sums that exceed 128 bits.
#[inline(always)]
pub(super) fn add_wide(words: &mut [u64], word: usize, value: u128) {
    let sum = read_wide(words, word).saturating_add(value);
    words[word] = sum as u64;
    words[word + 1] = (sum >> 64) as u64;
}

impl ListWords {
    pub(super) fn new(content: &Content) -> Option<Self> {
        match content.what {
            StateContent::List(k) => Some(Self {
                start: content.start as u16,
                k: k as u16,
            }),
            _ => None,
        }
    }

    /// Appends as many values of `later` as there is room for.
    #[inline(always)]
    pub(super) fn append<const N: usize>(self, earlier: &mut [u64; N], later: &[u64; N]) {
        let (start, k) = (self.start as usize, self.k as usize);
        let kept = earlier[start] as usize;
        if kept >= k {
            return;
        }
        let taken = (later[start] as usize).min(k - kept);
        for index in 0..taken {
            earlier[start + 1 + kept + index] = later[start + 1 + index];
        }
        earlier[start] = (kept + taken) as u64;
    }

    /// Appends one value, if there is room.
    #[inline(always)]
    pub(super) fn push(self, words: &mut [u64], value: u64) {
        let start = self.start as usize;
        let kept = words[start] as usize;
        if kept < self.k as usize {
            words[start + 1 + kept] = value;
            words[start] += 1;
        }
    }
}
