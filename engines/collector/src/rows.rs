// SPDX-License-Identifier: Apache-2.0
//! Flow records as microflow records of a run's layout.
//!
//! A flow record has packets, bytes, times, flags and, from some exporters, smallest and largest
//! lengths and TTL. Any other value of a definition is one value for the whole record (an
//! interface, a VLAN), or no flow record can supply it: [`refused`] names it.

use std::num::NonZeroU64;

use turboflow_engine::{BatchSums, MicroflowBatch, RecordShape};
use turboflow_merge::{Base, Complement, KeyWidths, Layout, Marks, StateContent, StateStep};
use turboflow_merge::{MicroflowRecord, WORDS_WIDE};
use turboflow_record::{
    FiveTuple, Input, InputSet, InputValues, Packet, TCP_FIN, TCP_RST, TCP_SYN, WORDS_V4,
};

use crate::CollectorConfig;
use crate::counts::Counts;
use crate::decoder::{Directed, TakeFlow};
use crate::order::Order;

/// Inputs that exporters report per record, not per packet.
const OF_RECORDS: [Input; 14] = [
    Input::FlowLabel,
    Input::IcmpType,
    Input::IcmpCode,
    Input::Vlan,
    Input::InnerVlan,
    Input::VlanPriority,
    Input::SourceMac,
    Input::DestinationMac,
    Input::EtherType,
    Input::GreKey,
    Input::IngressInterface,
    Input::EgressInterface,
    Input::Tos,
    Input::SamplingInterval,
];

/// A record with more packets is refused: they would be 400 Gb/s of the smallest packets for three
/// days.
const MOST_PACKETS: u64 = 1 << 47;
/// A record with more bytes is refused.
const MOST_BYTES: u64 = 1 << 57;
/// Sums of a run stay below this, so that none overflows.
const MOST_IN_ALL: u64 = 1 << 62;
/// A record may use at most one part in this many of what is left of a sum. So false records are
/// refused long before honest ones, which are smaller: it takes about 30,000 false records, each of
/// the largest accepted size, until a record of one packet of 1,500 bytes is refused.
const PARTS_OF_THE_REST: u64 = 1_024;

/// Packets and bytes of all records so far.
#[derive(Clone, Copy, Debug, Default)]
struct Total {
    packets: u64,
    bytes: u64,
}

impl Total {
    /// Adds a record. Returns false, and adds nothing, if the record has more than a link can
    /// carry, or more than the sums have room for.
    fn add(&mut self, packets: u64, bytes: u64) -> bool {
        let room = |sum: u64| (MOST_IN_ALL - sum) / PARTS_OF_THE_REST;
        let is_plausible = packets <= MOST_PACKETS.min(room(self.packets))
            && bytes <= MOST_BYTES.min(room(self.bytes));
        if is_plausible {
            self.packets += packets;
            self.bytes += bytes;
        }
        is_plausible
    }
}

/// The inputs that at least some exporters supply.
pub(crate) fn inputs() -> InputSet {
    let of_base = [
        Input::IpLength,
        Input::Timestamp,
        Input::TcpFlags,
        Input::Ttl,
    ];
    OF_RECORDS.into_iter().chain(of_base).collect()
}

/// The first feature of a layout that no flow record can supply; `None` if there is none.
#[must_use]
pub fn refused(layout: &Layout) -> Option<String> {
    let steps = layout.steps();
    let step = steps.state.iter().find(|step| value_of(step).is_none())?;
    let of = step.of.map_or("packet", Input::name);
    let what = match step.what {
        StateContent::Count => "a count",
        StateContent::Sum | StateContent::WideSum => "a sum",
        StateContent::Bins(_) => "a histogram",
        StateContent::Min => "the minimum",
        StateContent::Max => "the maximum",
        StateContent::BitOr => "the bitwise OR",
        StateContent::First => "the first value",
        StateContent::Last => "the last value",
        StateContent::WideSquares => "the variance",
        StateContent::List(_) => "a list",
    };
    Some(format!("{what} of `{of}`"))
}

/// Content of a state word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    Packets,
    /// The number of packets, if the record has the input.
    PacketsWith(Input),
    Bytes,
    /// The input, which merges as a minimum.
    Min(Input),
    Max(Input),
    /// The input.
    Plain(Input),
    /// The input plus one.
    PlusOne(Input),
}

fn value_of(step: &StateStep) -> Option<Held> {
    match (&step.what, step.of) {
        (StateContent::Count, None | Some(Input::IpLength | Input::Timestamp | Input::Ttl)) => {
            Some(Held::Packets)
        }
        (StateContent::Sum, Some(Input::IpLength)) => Some(Held::Bytes),
        (what, Some(input)) if OF_RECORDS.contains(&input) => match what {
            StateContent::Count => Some(Held::PacketsWith(input)),
            StateContent::Min => Some(Held::Min(input)),
            StateContent::Max => Some(Held::Max(input)),
            StateContent::BitOr => Some(Held::Plain(input)),
            StateContent::First | StateContent::Last => Some(Held::PlusOne(input)),
            _ => None,
        },
        _ => None,
    }
}

/// Turns flow records into microflow records.
pub(crate) struct Rows {
    layout: Layout,
    shape: RecordShape,
    is_wide: bool,
    held: Vec<(usize, Held)>,
    ones: std::ops::Range<usize>,
    icmp_ports: bool,
    scales: bool,
    window_ns: Option<NonZeroU64>,
    row: Vec<u64>,
    inputs: InputValues,
    total: Total,
    last_ns: u64,
    /// Where the records wait for their time.
    pub(crate) order: Order,
}

impl Rows {
    pub(crate) fn new(layout: &Layout, config: &CollectorConfig, order: Order) -> Self {
        let steps = layout.steps();
        let is_wide = layout.key_widths() == KeyWidths::Wide;
        let held = steps.state.iter();
        Self {
            shape: RecordShape::of(layout),
            is_wide,
            held: held
                .filter_map(|step| Some((step.word, value_of(step)?)))
                .collect(),
            ones: steps.ones,
            layout: layout.clone(),
            icmp_ports: config.icmp_ports,
            scales: config.scales_sampled,
            window_ns: config.window_ns,
            row: Vec::new(),
            inputs: InputValues::default(),
            total: Total::default(),
            last_ns: 0,
            order,
        }
    }

    /// The end of the latest record.
    pub(crate) const fn last_ns(&self) -> u64 {
        self.last_ns
    }

    /// Puts microflow records into time order, except those with implausible counts. Returns the
    /// sums of the others.
    pub(crate) fn microflows(
        &mut self,
        batch: &mut MicroflowBatch,
        counts: &mut Counts,
    ) -> BatchSums {
        let total = &mut self.total;
        counts.records_implausible += batch.retain(|packets, bytes| total.add(packets, bytes));
        let sums = batch.sums();
        self.last_ns = self.last_ns.max(sums.last_ns);
        counts.microflows += batch.len() as u64;
        counts.records_late += self.order.put(batch);
        sums
    }

    /// Puts a record into time order.
    fn push(&mut self, directed: &Directed<'_>, tuple: FiveTuple, base: &Base) {
        let batch = self.order.batch_of(base);
        if self.shape.is_plain() {
            let words = tuple.raw_words();
            match tuple.words().len() {
                WORDS_V4 => batch.plain_v4.push_record(MicroflowRecord {
                    key: [words[0], words[1]],
                    base: *base,
                    state: [],
                }),
                _ => batch.plain_v6.push_record(MicroflowRecord {
                    key: *words,
                    base: *base,
                    state: [],
                }),
            }
            return;
        }
        self.inputs.clone_from(&directed.flow.inputs);
        self.inputs.set(Input::Tos, u64::from(base.tos));
        directed.flow.set_icmp(&mut self.inputs);
        let one_of = u64::from(directed.one_of);
        self.inputs.set(Input::SamplingInterval, one_of);
        self.row.clear();
        self.row.extend(base.words());
        let state = self.row.len();
        self.row.resize(state + self.shape.state_words, 0);
        for word in self.ones.clone() {
            self.row[state + word] = u64::MAX;
        }
        for (word, held) in &self.held {
            if let Some(value) = value(*held, base, &self.inputs) {
                self.row[state + word] = value;
            }
        }
        if self.is_wide {
            let packet = packet(tuple, base);
            let (key, _) = self.layout.key::<WORDS_WIDE>(&packet, &self.inputs);
            let words = self.shape.wide_key_words.unwrap_or(WORDS_WIDE);
            self.row.extend(&key[..words.min(WORDS_WIDE)]);
        } else {
            self.row.extend(tuple.words());
        }
        let is_taken = batch.push_row(self.row.iter().copied(), self.shape);
        debug_assert!(is_taken, "the row has the words of its layout");
    }
}

impl TakeFlow for Rows {
    #[inline]
    fn flow(&mut self, directed: &Directed<'_>, counts: &mut Counts) {
        let Some(tuple) = directed.flow.tuple(self.icmp_ports) else {
            counts.records_not_flows += 1;
            return;
        };
        let tuple = if directed.is_reverse {
            tuple.reversed()
        } else {
            tuple
        };
        let mut base = base(directed);
        if directed.one_of > 1 {
            counts.records_sampled += 1;
            if self.scales {
                counts.records_scaled += 1;
                base.packets = base.packets.saturating_mul(u64::from(directed.one_of));
                base.bytes = base.bytes.saturating_mul(u64::from(directed.one_of));
            }
        }
        if !self.total.add(base.packets, base.bytes) {
            counts.records_implausible += 1;
            return;
        }
        self.last_ns = self.last_ns.max(base.last_ns);
        counts.flows += 1;
        if let Some(window_ns) = self.window_ns {
            let is_across = base.first_ns / window_ns != base.last_ns / window_ns;
            counts.records_across_windows += u64::from(is_across);
        }
        if self.order.is_late(base.first_ns) {
            counts.records_late += 1;
        }
        self.push(directed, tuple, &base);
    }
}

/// The fields that every record has. Lengths and TTL are 0 if the exporter does not report them.
#[inline(always)]
fn base(directed: &Directed<'_>) -> Base {
    let side = directed.side;
    let flags = side.tcp_flags;
    // A record with a SYN begins with it, since no exporter sees a SYN in mid-flow.
    let starts = if flags & TCP_SYN != 0 {
        Marks::STARTS_WITH_SYN | Marks::SYN
    } else {
        0
    };
    let fin = if flags & TCP_FIN != 0 { Marks::FIN } else { 0 };
    let rst = if flags & TCP_RST != 0 { Marks::RST } else { 0 };
    Base {
        packets: side.packets,
        bytes: side.bytes,
        first_ns: directed.first_ns,
        last_ns: directed.last_ns,
        min_length_bytes: Complement::of(side.length_bytes[0]),
        max_length_bytes: side.length_bytes[1],
        min_ttl: Complement::of(side.ttl[0]),
        max_ttl: side.ttl[1],
        end_reason: 0,
        has_other: 0,
        tcp_flags: flags,
        tos: side.tos,
        marks: Marks(starts | fin | rst),
    }
}

/// A packet with the fields of a record, from which keys are made.
fn packet(tuple: FiveTuple, base: &Base) -> Packet {
    Packet {
        tuple,
        timestamp_ns: base.first_ns,
        ip_length_bytes: base.max_length_bytes,
        frame_length_bytes: base.max_length_bytes,
        tcp_flags: base.tcp_flags,
        ttl: base.max_ttl,
        tos: base.tos,
        is_echo_reply: false,
    }
}

/// The value of a state word; `None` if the record does not have it.
fn value(held: Held, base: &Base, inputs: &InputValues) -> Option<u64> {
    Some(match held {
        Held::Packets => base.packets,
        Held::Bytes => base.bytes,
        Held::PacketsWith(input) => inputs.get(input).map(|_| base.packets)?,
        Held::Min(input) | Held::Plain(input) => inputs.get(input)?,
        // As the largest value is stored: see `StateContent::Max`.
        Held::Max(input) => (!inputs.get(input)?).wrapping_sub(1),
        Held::PlusOne(input) => inputs.get(input)?.saturating_add(1),
    })
}
