// SPDX-License-Identifier: Apache-2.0
//! Creates keys from packets, and decides which end of a biflow is the canonical source.
//!
//! The plain 5-tuple is its own key. Any other key is wide: its fields have fixed positions in 16
//! words. No field crosses a word boundary, so that each takes one shift and one OR.
//!
//! ```text
//! word 0   1 (1 byte) | family (1) | outer family (1) | presence of inputs (3) | small fields
//! words..  addresses, 2 words each; then the other fields, widest first
//! ```

use super::WORDS_WIDE;
use turboflow_record::{Family, FiveTuple, Input, InputValues, KeyField, Packet, WORDS_V6};

/// Distinguishes a wide key without fields from an empty slot.
pub(super) const MARKER: u64 = 1;
/// Position of the address family in the header.
pub(super) const FAMILY_SHIFT: u8 = 8;
/// Position of the outer addresses' family in the header.
pub(super) const OUTER_FAMILY_SHIFT: u8 = 16;
/// Positions of the bits that tell which inputs the packets carry.
const PRESENCE_SHIFT: u8 = 24;
const PRESENCE_END: u8 = 48;

/// How keys are created from packets.
#[derive(Clone, Debug)]
pub(super) enum KeyPlan {
    FiveTuple,
    Wide(Box<WideKey>),
}

/// The position of one field in a wide key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeySlot {
    /// The field.
    pub field: KeyField,
    /// Index of the word. An address takes the next word as well.
    pub word: u8,
    /// Position of its lowest bit in the word.
    pub shift: u8,
    /// Width in bits: 128 for an address.
    pub bits: u8,
    /// The bit of the first word that is set if the packets carry the field; `None` if all packets
    /// carry it.
    pub presence: Option<u8>,
}

/// The layout of a wide key, and the steps that fill it for each direction.
#[derive(Clone, Debug)]
pub(super) struct WideKey {
    pub(super) key_slots: Vec<KeySlot>,
    header: u64,
    outer: bool,
    pairs: Pairs,
    steps: [Steps; 2],
}

/// Which pairs of ends the key has.
#[derive(Clone, Copy, Debug, Default)]
struct Pairs {
    addresses: bool,
    ports: bool,
    macs: bool,
    outer_addresses: bool,
}

#[derive(Clone, Debug, Default)]
struct Steps {
    /// Index of the word, and which of the four addresses it holds.
    addresses: Box<[(u8, u8)]>,
    numbers: Box<[Number]>,
    inputs: Box<[InputStep]>,
}

/// A field that every packet has, from a slot of [`number_slots`].
#[derive(Clone, Copy, Debug)]
struct Number {
    word: u8,
    shift: u8,
    slot: u8,
}

#[derive(Clone, Copy, Debug)]
struct InputStep {
    word: u8,
    shift: u8,
    bits: u8,
    input: u8,
    /// The bit of the first word that is set if the packets carry the input; 0 if all packets carry
    /// it.
    presence: u64,
}

#[inline(always)]
fn number_slots(packet: &Packet) -> [u64; 8] {
    let transport = packet.tuple.transport();
    let [source, destination] = ports(transport);
    let protocol = transport >> 32 & 0xff;
    [
        source,
        destination,
        protocol,
        u64::from(packet.tos),
        u64::from(packet.ttl),
        0,
        0,
        0,
    ]
}

/// Both ports from the last word of a 5-tuple, as numbers.
#[inline(always)]
fn ports(transport: u64) -> [u64; 2] {
    [transport, transport >> 16].map(|wire| u64::from((wire as u16).swap_bytes()))
}

/// Whether the packet runs against the canonical direction. In that direction the source is the
/// smaller endpoint: address before port, compared as the words of [`FiveTuple`].
#[inline(always)]
fn is_reversed(tuple: &FiveTuple) -> bool {
    let w = tuple.raw_words();
    let (source_port, destination_port) = {
        let transport = tuple.transport();
        (transport & 0xffff, transport >> 16 & 0xffff)
    };
    match tuple.family() {
        Family::V4 => {
            let source = (w[0] & 0xffff_ffff) << 16 | source_port;
            let destination = w[0] >> 32 << 16 | destination_port;
            source > destination
        }
        Family::V6 => (w[0], w[1], source_port) > (w[2], w[3], destination_port),
    }
}

impl KeyPlan {
    /// `None` if the fields do not fit into a key.
    pub(super) fn new(fields: &[KeyField]) -> Option<Self> {
        let plain = fields
            .iter()
            .all(|field| KeyField::FIVE_TUPLE.contains(field));
        if plain && fields.len() == KeyField::FIVE_TUPLE.len() {
            return Some(Self::FiveTuple);
        }
        Some(Self::Wide(Box::new(WideKey::new(fields)?)))
    }

    /// The 5-tuple of a key; `None` if the key lacks a part of it.
    pub(super) fn five_tuple<const K: usize>(&self, key: &[u64; K]) -> Option<FiveTuple> {
        let mut words = [0; WORDS_V6];
        match self {
            Self::FiveTuple => {
                for (to, from) in words.iter_mut().zip(key) {
                    *to = *from;
                }
            }
            Self::Wide(wide) => {
                let slot = |field| wide.key_slots.iter().find(|slot| slot.field == field);
                let word = |at: u8| key.get(usize::from(at)).copied().unwrap_or(0);
                let address =
                    |field| slot(field).map(|slot| [word(slot.word), word(slot.word + 1)]);
                let number = |field| {
                    slot(field)
                        .map(|slot| word(slot.word) >> slot.shift & (u64::MAX >> (64 - slot.bits)))
                };
                let wire = |field| number(field).map(|port| u64::from((port as u16).swap_bytes()));
                let source = address(KeyField::SourceAddress)?;
                let destination = address(KeyField::DestinationAddress)?;
                let ports = wire(KeyField::SourcePort)? | wire(KeyField::DestinationPort)? << 16;
                let family = word(0) >> FAMILY_SHIFT & 0xff;
                let transport = ports | number(KeyField::Protocol)? << 32 | family << 40;
                words = match family {
                    4 => [source[0] | destination[0] << 32, transport, 0, 0, 0],
                    _ => [
                        source[0],
                        source[1],
                        destination[0],
                        destination[1],
                        transport,
                    ],
                };
            }
        }
        FiveTuple::of_words(words)
    }

    /// Whether the key has this field in addition to the 5-tuple.
    pub(super) fn has_beside(&self, field: KeyField) -> bool {
        match self {
            Self::FiveTuple => false,
            Self::Wide(wide) => wide.key_slots.iter().any(|slot| slot.field == field),
        }
    }

    /// The VLAN of a key; 0 if there is none.
    pub(super) fn vlan<const K: usize>(&self, key: &[u64; K]) -> u16 {
        let Self::Wide(wide) = self else {
            return 0;
        };
        let field = KeyField::Input(Input::Vlan);
        let slot = wide.key_slots.iter().find(|slot| slot.field == field);
        slot.map_or(0, |slot| {
            let word = key.get(usize::from(slot.word)).copied().unwrap_or(0);
            (word >> slot.shift & (u64::MAX >> (64 - slot.bits))) as u16 & 0xfff
        })
    }

    /// The key of a packet, and whether the packet runs against the canonical direction.
    #[inline(always)]
    pub(super) fn key<const K: usize>(
        &self,
        packet: &Packet,
        inputs: &InputValues,
        biflow: bool,
    ) -> ([u64; K], bool) {
        // The constant comes first, so that code for narrow keys uses only registers.
        if let (true, Self::Wide(wide)) = (K == WORDS_WIDE, self) {
            return wide.key(packet, inputs, biflow);
        }
        five_tuple(&packet.tuple, biflow)
    }
}

/// The first `K` words of a 5-tuple as a key, and whether the packet runs against its direction.
#[inline(always)]
pub(super) fn five_tuple<const K: usize>(tuple: &FiveTuple, biflow: bool) -> ([u64; K], bool) {
    let reversed = biflow && is_reversed(tuple);
    let tuple = if reversed { tuple.reversed() } else { *tuple };
    let mut key = [0; K];
    for (to, from) in key.iter_mut().zip(tuple.raw_words()) {
        *to = *from;
    }
    (key, reversed)
}

impl WideKey {
    fn new(fields: &[KeyField]) -> Option<Self> {
        let key_slots = place(fields)?;
        let has = |field| fields.contains(&field);
        let addresses = has(KeyField::SourceAddress) || has(KeyField::DestinationAddress);
        let outer = has(KeyField::OuterSourceAddress) || has(KeyField::OuterDestinationAddress);
        let pairs = Pairs {
            addresses,
            ports: has(KeyField::SourcePort),
            macs: has(KeyField::Input(Input::SourceMac)),
            outer_addresses: outer,
        };
        let steps = [false, true].map(|reversed| Steps::new(&key_slots, reversed));
        Some(Self {
            key_slots,
            header: MARKER,
            outer,
            pairs,
            steps,
        })
    }

    #[inline]
    fn key<const K: usize>(
        &self,
        packet: &Packet,
        inputs: &InputValues,
        biflow: bool,
    ) -> ([u64; K], bool) {
        let addresses = address_slots(packet, inputs);
        let reversed = biflow && self.runs_against(packet, inputs, &addresses);
        let steps = &self.steps[usize::from(reversed)];
        let mut key = [0; WORDS_WIDE];
        let family = u64::from(self.pairs.addresses) * packet.tuple.family() as u64;
        let outer = if self.outer {
            outer_family(&addresses)
        } else {
            0
        };
        key[0] = self.header | family << FAMILY_SHIFT | outer << OUTER_FAMILY_SHIFT;
        for (word, slot) in &steps.addresses {
            let [low, high] = addresses[(*slot & 3) as usize];
            key[(*word & 15) as usize] = low;
            key[((*word + 1) & 15) as usize] = high;
        }
        let numbers = number_slots(packet);
        for step in &steps.numbers {
            let number = numbers[(step.slot & 7) as usize];
            key[(step.word & 15) as usize] |= number << (step.shift & 63);
        }
        for step in &steps.inputs {
            let (value, present) = inputs.masked(step.input);
            let mask = present & u64::MAX >> ((64 - step.bits) & 63);
            key[(step.word & 15) as usize] |= (value & mask) << (step.shift & 63);
            key[0] |= present & step.presence;
        }
        let mut words = [0; K];
        for (to, from) in words.iter_mut().zip(key) {
            *to = from;
        }
        (words, reversed)
    }

    /// The canonical source is the smaller end. If two ends are equal, the next pair of ends
    /// decides.
    fn runs_against(
        &self,
        packet: &Packet,
        inputs: &InputValues,
        addresses: &[[u64; 2]; 4],
    ) -> bool {
        let [source_port, destination_port] = ports(packet.tuple.transport());
        let macs = [Input::SourceMac, Input::DestinationMac].map(|input| inputs.get(input));
        let pairs = self.pairs;
        let order = [
            (pairs.addresses, addresses[0].cmp(&addresses[1])),
            (pairs.ports, source_port.cmp(&destination_port)),
            (pairs.macs, macs[0].cmp(&macs[1])),
            (pairs.outer_addresses, addresses[2].cmp(&addresses[3])),
        ];
        let decided = order
            .into_iter()
            .find(|(in_key, order)| *in_key && order.is_ne());
        decided.is_some_and(|(_, order)| order.is_gt())
    }
}

/// Source, destination, outer source, outer destination. IPv4 addresses are in the first 4 bytes.
#[inline(always)]
fn address_slots(packet: &Packet, inputs: &InputValues) -> [[u64; 2]; 4] {
    let w = packet.tuple.raw_words();
    let [source, destination] = match packet.tuple.family() {
        Family::V4 => [[w[0] & 0xffff_ffff, 0], [w[0] >> 32, 0]],
        Family::V6 => [[w[0], w[1]], [w[2], w[3]]],
    };
    let [outer_source, outer_destination] = inputs.outer_addresses.map(|address| {
        let word = u128::from_le_bytes(address);
        [word as u64, (word >> 64) as u64]
    });
    [source, destination, outer_source, outer_destination]
}

/// The family of the outer addresses; 0 without a tunnel. It is IPv4 if everything after the first
/// 32 bits of both addresses is zero, which does not occur between IPv6 hosts.
#[inline(always)]
fn outer_family(addresses: &[[u64; 2]; 4]) -> u64 {
    let [low, high] = [0, 1].map(|half| addresses[2][half] | addresses[3][half]);
    match (low, high) {
        (0, 0) => 0,
        (low, 0) if low >> 32 == 0 => Family::V4 as u64,
        _ => Family::V6 as u64,
    }
}

/// The corresponding field of the other end, if the field belongs to an end.
pub(super) const fn counterpart(field: KeyField) -> Option<KeyField> {
    Some(match field {
        KeyField::SourceAddress => KeyField::DestinationAddress,
        KeyField::DestinationAddress => KeyField::SourceAddress,
        KeyField::SourcePort => KeyField::DestinationPort,
        KeyField::DestinationPort => KeyField::SourcePort,
        KeyField::OuterSourceAddress => KeyField::OuterDestinationAddress,
        KeyField::OuterDestinationAddress => KeyField::OuterSourceAddress,
        KeyField::Input(Input::SourceMac) => KeyField::Input(Input::DestinationMac),
        KeyField::Input(Input::DestinationMac) => KeyField::Input(Input::SourceMac),
        _ => return None,
    })
}

/// Width of the field in a key, in bits.
const fn key_bits(field: KeyField) -> u8 {
    match field {
        KeyField::SourcePort | KeyField::DestinationPort => 16,
        KeyField::Input(input) => input.bits().next_multiple_of(8),
        KeyField::Protocol => 8,
        _ => 128,
    }
}

/// The slot of [`number_slots`] that holds the field, if every packet has the field.
pub(super) const fn number_slot(field: KeyField) -> Option<u8> {
    Some(match field {
        KeyField::SourcePort => 0,
        KeyField::DestinationPort => 1,
        KeyField::Protocol => 2,
        KeyField::Input(Input::Tos) => 3,
        KeyField::Input(Input::Ttl) => 4,
        _ => return None,
    })
}

/// Assigns a position to every field: addresses first, then the others, widest first, wherever they
/// fit. `None` if one does not fit.
fn place(fields: &[KeyField]) -> Option<Vec<KeySlot>> {
    let mut order = fields.to_vec();
    order.sort_by_key(|field| std::cmp::Reverse(key_bits(*field)));
    let mut used = [0u8; WORDS_WIDE];
    used[0] = PRESENCE_END;
    let mut presence = PRESENCE_SHIFT;
    let mut key_slots = Vec::new();
    for field in order {
        let bits = key_bits(field);
        let in_word = bits.min(64);
        let fits = |used: &u8| *used + in_word <= 64;
        // An address takes the next word as well.
        let last = WORDS_WIDE - usize::from(bits > 64);
        let word = used[..last].iter().position(fits)?;
        let shift = used[word];
        used[word] += in_word;
        if bits > 64 {
            used[word + 1] = 64;
        }
        let optional = matches!(field, KeyField::Input(input) if !input.is_always_present());
        let bit = presence;
        presence += u8::from(optional);
        if presence > PRESENCE_END {
            return None;
        }
        let presence = optional.then_some(bit);
        key_slots.push(KeySlot {
            field,
            word: word as u8,
            shift,
            bits,
            presence,
        });
    }
    Some(key_slots)
}

impl Steps {
    fn new(key_slots: &[KeySlot], reversed: bool) -> Self {
        let mut steps = (Vec::new(), Vec::new(), Vec::new());
        for key_slot in key_slots {
            let KeySlot {
                word, shift, bits, ..
            } = *key_slot;
            // Against the canonical direction, the packet's source is the key's destination.
            let source = match counterpart(key_slot.field) {
                Some(other) if reversed => other,
                _ => key_slot.field,
            };
            if let Some(slot) = number_slot(source) {
                steps.1.push(Number { word, shift, slot });
                continue;
            }
            match source {
                KeyField::SourceAddress => steps.0.push((word, 0)),
                KeyField::DestinationAddress => steps.0.push((word, 1)),
                KeyField::OuterSourceAddress => steps.0.push((word, 2)),
                KeyField::OuterDestinationAddress => steps.0.push((word, 3)),
                KeyField::Input(input) => steps.2.push(InputStep {
                    word,
                    shift,
                    bits,
                    input: input as u8,
                    presence: key_slot.presence.map_or(0, |bit| 1 << bit),
                }),
                KeyField::SourcePort | KeyField::DestinationPort | KeyField::Protocol => {
                    unreachable!("addresses and numbers have slots")
                }
            }
        }
        Self {
            addresses: steps.0.into(),
            numbers: steps.1.into(),
            inputs: steps.2.into(),
        }
    }
}
