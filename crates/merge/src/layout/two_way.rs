// SPDX-License-Identifier: Apache-2.0
//! The two-way form of biflows, for definitions whose features are fields of [`Base`].
//!
//! In the plain form, each such field is a state word for each direction, which makes 24 words for
//! the default definition. The two-way form has 8. They are neither read nor written before both
//! directions have been seen. Until then, a biflow costs the flow cache as much as a flow of one
//! direction. The columns are the same.
//!
//! ```text
//! base    packets, bytes, first, last, marks: of both directions
//!         lengths, TTL, flags, TOS: of its own direction, which is that of its first packet
//! state   if base.has_other is 1:
//!         | base of the other direction, 6 words | own first | own last |
//! ```

use super::form::BaseField;
use super::words::{Content, Side, StateContent, Words, encode_max};
use crate::{Base, Marks, MicroflowRecord};
use turboflow_record::Input;

/// State words of records in the two-way form.
pub const TWO_WAY_WORDS: usize = 8;

/// The reason why a record has room for [`TWO_WAY_WORDS`].
const ITS_SIZE: &str = "records of the two-way form have its words";

/// The words of a [`Base`].
const BASE_WORDS: usize = 6;

impl Base {
    /// Whether both records hold packets of only one direction, and of the same one.
    #[inline(always)]
    pub(crate) const fn is_of_one_direction_with(&self, later: &Self) -> bool {
        let turned = (self.marks.0 ^ later.marks.0) & Marks::STARTS_REVERSED;
        turned | self.has_other | later.has_other == 0
    }

    /// A side without packets: neutral in a merge.
    fn without_packets() -> Self {
        Self {
            first_ns: u64::MAX,
            ..Self::default()
        }
    }

    /// Merges the packets of one direction.
    #[inline(always)]
    fn merge_side(&mut self, later: &Self) {
        if self.packets == 0 {
            self.tos = later.tos;
        }
        self.merge(later);
    }
}

/// The packets of a record by direction: its own direction, then the other.
#[inline(always)]
fn split(base: &Base, state: &[u64; TWO_WAY_WORDS]) -> [Base; 2] {
    if base.has_other == 0 {
        return [*base, Base::without_packets()];
    }
    let [other @ .., first_ns, last_ns] = *state;
    let other = Base::from_words(other);
    let own = Base {
        packets: base.packets.wrapping_sub(other.packets),
        bytes: base.bytes.wrapping_sub(other.bytes),
        first_ns,
        last_ns,
        ..*base
    };
    [own, other]
}

/// Merges a record in the two-way form, whose packets arrived later, into a record whose parts may
/// be stored apart.
#[inline]
pub(crate) fn merge<const K: usize, const N: usize>(
    flow: &mut Base,
    state: &mut [u64; N],
    later: &MicroflowRecord<K, N>,
) {
    let (state, later_state) = (state.first_chunk_mut(), later.state.first_chunk());
    let (state, later_state) = (state.expect(ITS_SIZE), later_state.expect(ITS_SIZE));
    let later = &later.base;
    let ([mut own, mut other], mut from) = (split(flow, state), split(later, later_state));
    if (flow.marks.0 ^ later.marks.0) & Marks::STARTS_REVERSED != 0 {
        from.swap(0, 1);
    }
    own.merge_side(&from[0]);
    other.merge_side(&from[1]);
    *flow = Base {
        packets: flow.packets.wrapping_add(later.packets),
        bytes: flow.bytes.wrapping_add(later.bytes),
        first_ns: flow.first_ns.min(later.first_ns),
        last_ns: flow.last_ns.max(later.last_ns),
        marks: Marks(flow.marks.0 | later.marks.0 & !Marks::OF_FIRST_PACKET),
        end_reason: flow.end_reason,
        has_other: u8::from(other.packets > 0),
        ..own
    };
    if other.packets > 0 {
        (other.marks, other.end_reason, other.has_other) = (Marks(0), 0, 0);
        let (to, times) = state.split_at_mut(BASE_WORDS);
        to.copy_from_slice(&other.words());
        times.copy_from_slice(&[own.first_ns, own.last_ns]);
    }
}

/// The packets in the direction of the key, and against it.
pub(super) fn by_direction<const K: usize, const N: usize>(
    record: &MicroflowRecord<K, N>,
) -> [Base; 2] {
    let state = record.state.first_chunk().expect(ITS_SIZE);
    let mut sides = split(&record.base, state);
    if record.base.marks.any(Marks::STARTS_REVERSED) {
        sides.swap(0, 1);
    }
    sides
}

/// The base of both directions together, as the plain form has it.
#[inline(always)]
pub(super) fn joined(base: &Base, sides: &[Base; 2]) -> Base {
    let mut both = *base;
    sides.iter().for_each(|side| both.merge(side));
    Base {
        packets: base.packets,
        bytes: base.bytes,
        ..both
    }
}

/// What the state words of the plain form hold, in the order of those words. `None` if the two-way
/// form lacks any of it.
pub(super) fn words_of_sides(words: &Words) -> Option<Vec<SideWord>> {
    words.contents().iter().map(SideWord::of).collect()
}

/// A state word of the plain form: a field of one direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct SideWord {
    /// Whether the word belongs to the responder if the source of the key is the initiator.
    pub(super) is_reverse: bool,
    field: BaseField,
}

impl SideWord {
    fn of(content: &Content) -> Option<Self> {
        use StateContent as Of;
        let field = match (content.of, &content.what) {
            (None, Of::Count) => BaseField::Packets,
            (Some(Input::IpLength), Of::Sum) => BaseField::Bytes,
            (Some(Input::IpLength), Of::Min) => BaseField::MinLength,
            (Some(Input::IpLength), Of::Max) => BaseField::MaxLength,
            (Some(Input::Timestamp), Of::Min) => BaseField::FirstNs,
            (Some(Input::Timestamp), Of::Max) => BaseField::LastNs,
            (Some(Input::Ttl), Of::Min) => BaseField::MinTtl,
            (Some(Input::Ttl), Of::Max) => BaseField::MaxTtl,
            (Some(Input::TcpFlags), Of::BitOr) => BaseField::TcpFlags,
            (Some(Input::Tos), Of::First) => BaseField::Tos,
            _ => return None,
        };
        let is_reverse = match content.side {
            Side::Both => return None,
            Side::Forward => false,
            Side::Reverse => true,
        };
        Some(Self { is_reverse, field })
    }

    /// Appends the word, as the plain form stores it, for one side of each record.
    pub(super) fn append<'a>(self, sides: impl Iterator<Item = &'a Base>, out: &mut Vec<u64>) {
        // Chosen once for all records.
        macro_rules! each {
            ($side:ident, $absent:expr, $present:expr) => {
                out.extend(sides.map(|$side| {
                    if $side.packets == 0 {
                        $absent
                    } else {
                        $present
                    }
                }))
            };
        }
        match self.field {
            BaseField::Packets => each!(side, 0, side.packets),
            BaseField::Bytes => each!(side, 0, side.bytes),
            BaseField::MinLength => each!(side, u64::MAX, side.min_length_bytes.get().into()),
            BaseField::MaxLength => each!(side, u64::MAX, encode_max(side.max_length_bytes.into())),
            BaseField::FirstNs => each!(side, u64::MAX, side.first_ns),
            BaseField::LastNs => each!(side, u64::MAX, encode_max(side.last_ns)),
            BaseField::MinTtl => each!(side, u64::MAX, side.min_ttl.get().into()),
            BaseField::MaxTtl => each!(side, u64::MAX, encode_max(side.max_ttl.into())),
            BaseField::TcpFlags => each!(side, 0, side.tcp_flags.into()),
            BaseField::Tos => each!(side, 0, u64::from(side.tos) + 1),
            BaseField::EndReason => unreachable!("no state word holds it"),
        }
    }
}
