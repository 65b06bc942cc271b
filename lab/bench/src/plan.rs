// SPDX-License-Identifier: Apache-2.0
//! Compares a definition's compiled plan with equivalent code written by hand. Packets become
//! records, which are merged into the records of randomly drawn flows, a batch at a time, as in the
//! pipeline.
//!
//! | design | what runs for each packet |
//! |---|---|
//! | `plan`, `by_hand` | the packet becomes a record, which is merged into its flow's record |
//! | `plan_open`, `by_hand_open` | the packet becomes a record |
//! | `plan_merge`, `by_hand_merge` | a prepared record is merged into its flow's record |
//!
//! Both are compiled for this machine's vector instructions.

use std::hint::black_box;

use turboflow_merge::{
    Base, Layout, Machine, MicroflowRecord, PendingStates, Vectors, WithVectors, prefetch,
};
use turboflow_record::{Definition, Feature, FiveTuple, Input, InputValues, Op, Packet, WORDS_V4};
use turboflow_workload::traffic::{FlowNumbers, keys};

use crate::report::{Measured, in_turn, median};
use crate::{Options, Row, Spread, Timer};

/// State words of the definition's additional features.
const WORDS: usize = 24;
/// Packets folded at a time.
const BATCH: usize = 512;
/// Two numbers of flows: one whose records fit in L1, and one far beyond the caches.
const FLOWS: [u64; 2] = [256, 1_000_000];
/// Distance, in packets, at which a record is prefetched, as in engine and aggregator.
const AHEAD: usize = 12;

pub(crate) fn run(options: &Options, row: &mut dyn FnMut(Row)) {
    let layout =
        Layout::compile(&definition(), false).expect("the benchmark's definition compiles");
    assert_eq!(layout.state_words(), WORDS);
    for flows in FLOWS {
        for work in Work::ALL {
            let designs: Vec<Box<dyn Measured + '_>> = vec![
                Box::new(Run::new(work, flows, ByPlan(&layout))),
                Box::new(Run::new(work, flows, ByHandCode)),
            ];
            in_turn(designs, options, row);
        }
    }
}

/// The timed work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Both,
    Open,
    Merge,
}

impl Work {
    const ALL: [Self; 3] = [Self::Both, Self::Open, Self::Merge];

    const fn suffix(self) -> &'static str {
        match self {
            Self::Both => "",
            Self::Open => "_open",
            Self::Merge => "_merge",
        }
    }
}

/// A way to make records and to merge them: the compiled plan, or code written by hand.
trait Implementation {
    const NAME: &'static str;
    type Record: Clone + Zeroed;
    /// Merged records whose remaining features are computed in groups.
    type Pending: Default;
    /// Writes the record of one packet.
    fn open<V: Vectors>(
        &self,
        vectors: V,
        packet: &Packet,
        values: &InputValues,
        record: &mut Self::Record,
    );
    /// # Safety
    /// Until [`Implementation::finish`], both records must stay in place, and nothing else may
    /// access them.
    unsafe fn merge<V: Vectors>(
        &self,
        vectors: V,
        pending: &mut Self::Pending,
        flow: *mut Self::Record,
        later: &Self::Record,
    );
    fn finish<V: Vectors>(&self, vectors: V, pending: Self::Pending);
}

struct ByPlan<'a>(&'a Layout);

impl Implementation for ByPlan<'_> {
    const NAME: &'static str = "plan";
    type Record = Planned;
    type Pending = PendingStates<WORDS>;

    #[inline(always)]
    fn open<V: Vectors>(
        &self,
        vectors: V,
        packet: &Packet,
        values: &InputValues,
        record: &mut Planned,
    ) {
        let (key, reversed) = self.0.key(packet, values);
        *record = MicroflowRecord {
            key,
            base: Base::of_packet(packet, reversed),
            state: [0; WORDS],
        };
        self.0
            .open_state(vectors, &mut record.state, packet, values, reversed);
    }

    #[inline(always)]
    unsafe fn merge<V: Vectors>(
        &self,
        vectors: V,
        pending: &mut Self::Pending,
        flow: *mut Planned,
        later: &Planned,
    ) {
        // SAFETY: upheld by the caller of `merge`.
        unsafe {
            vectors.merge_in_order(&mut (*flow).base, &later.base);
            pending.push(&raw mut (*flow).state, &raw const later.state);
            if pending.room() == 0 {
                pending.merge(vectors, self.0.plan());
            }
        }
    }

    #[inline(always)]
    fn finish<V: Vectors>(&self, vectors: V, mut pending: Self::Pending) {
        pending.merge(vectors, self.0.plan());
    }
}

struct ByHandCode;

impl Implementation for ByHandCode {
    const NAME: &'static str = "by_hand";
    type Record = ByHand;
    type Pending = ();

    #[inline(always)]
    fn open<V: Vectors>(
        &self,
        _vectors: V,
        packet: &Packet,
        values: &InputValues,
        record: &mut ByHand,
    ) {
        *record = ByHand::open(packet, values);
    }

    #[inline(always)]
    unsafe fn merge<V: Vectors>(
        &self,
        vectors: V,
        _pending: &mut (),
        flow: *mut ByHand,
        later: &ByHand,
    ) {
        // SAFETY: upheld by the caller of `merge`.
        let flow = unsafe { &mut *flow };
        vectors.merge_in_order(&mut flow.base, &later.base);
        flow.merge(later);
    }

    #[inline(always)]
    fn finish<V: Vectors>(&self, _vectors: V, _pending: ()) {}
}

type Planned = MicroflowRecord<WORDS_V4, WORDS>;

/// The default definition with eight more features of many kinds.
fn definition() -> Definition {
    let mut definition = Definition::default();
    let edges = vec![64, 256, 512, 1_024];
    definition.features.extend([
        Feature::new("mean_length", Op::Mean, Some(Input::IpLength)),
        Feature::new("frame_variance", Op::Variance, Some(Input::FrameLength)),
        Feature::new("mean_gap", Op::GapMean, None),
        Feature::new("longest_gap", Op::GapMax, None),
        Feature::new("lengths", Op::Histogram { edges }, Some(Input::IpLength)),
        Feature::new("first_lengths", Op::List { k: 6 }, Some(Input::IpLength)),
        Feature::new("largest_window", Op::Max, Some(Input::TcpWindow)),
        Feature::new("payload", Op::Sum, Some(Input::PayloadLength)),
    ]);
    definition
}

/// The record of this one definition, as a programmer would write it.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct ByHand {
    key: [u64; WORDS_V4],
    base: Base,
    frame_sum: u64,
    frame_squares: u128,
    bins: [u64; 5],
    payload: u64,
    /// Largest window plus one; 0 if there was none.
    largest_window: u64,
    longest_gap: u64,
    gap_sum: u128,
    first_arrival: u64,
    last_arrival: u64,
    list_len: u64,
    list: [u64; 6],
}

impl ByHand {
    #[inline(always)]
    fn open(packet: &Packet, values: &InputValues) -> Self {
        let [w0, w1, ..] = *packet.tuple.raw_words();
        let (length, frame) = (
            u64::from(packet.ip_length_bytes),
            u64::from(packet.frame_length_bytes),
        );
        let mut bins = [0; 5];
        let reached = [64, 256, 512, 1_024].map(|edge| usize::from(length >= edge));
        bins[reached.iter().sum::<usize>()] = 1;
        Self {
            key: [w0, w1],
            base: Base::of_packet(packet, false),
            frame_sum: frame,
            frame_squares: u128::from(frame) * u128::from(frame),
            bins,
            payload: values.get(Input::PayloadLength).unwrap_or(0),
            largest_window: values.get(Input::TcpWindow).map_or(0, |window| window + 1),
            longest_gap: 0,
            gap_sum: 0,
            first_arrival: packet.timestamp_ns,
            last_arrival: packet.timestamp_ns,
            list_len: 1,
            list: [length, 0, 0, 0, 0, 0],
        }
    }

    #[inline(always)]
    fn merge(&mut self, later: &Self) {
        let gap = later.first_arrival.saturating_sub(self.last_arrival);
        self.longest_gap = self.longest_gap.max(gap).max(later.longest_gap);
        self.gap_sum += u128::from(gap) + later.gap_sum;
        self.frame_sum += later.frame_sum;
        self.frame_squares += later.frame_squares;
        for (bin, others) in self.bins.iter_mut().zip(later.bins) {
            *bin += others;
        }
        self.payload += later.payload;
        self.largest_window = self.largest_window.max(later.largest_window);
        self.last_arrival = later.last_arrival;
        let kept = self.list_len as usize;
        let taken = (later.list_len as usize).min(6 - kept);
        self.list[kept..kept + taken].copy_from_slice(&later.list[..taken]);
        self.list_len += taken as u64;
    }
}

/// Packets, some with and some without a TCP window.
fn packets() -> Vec<(Packet, InputValues)> {
    let packet = |number: u64| {
        let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let length = 40 + (mixed % 1_460) as u32;
        let packet = Packet {
            tuple: FiveTuple::v4([10, 0, 0, 1, 10, 0, 0, 2], [0, 80, 1, 2], 6),
            timestamp_ns: 1_700_000_000_000_000_000 + number * 1_000,
            ip_length_bytes: length,
            frame_length_bytes: length + 14,
            tcp_flags: 0x10,
            ttl: 64,
            tos: 0,
            is_echo_reply: false,
        };
        let mut values = InputValues::default();
        values.set(Input::PayloadLength, u64::from(length) - 40);
        if mixed & 1 << 20 != 0 {
            values.set(Input::TcpWindow, mixed % 65_536);
        }
        (packet, values)
    };
    (0..BATCH as u64).map(packet).collect()
}

/// Merges a batch into the flows at `places`, each of which is prefetched.
struct MergeBatch<'a, W: Implementation> {
    code: &'a W,
    table: &'a mut [W::Record],
    places: &'a [usize; BATCH + AHEAD],
    batch: &'a [W::Record],
}

impl<W: Implementation> WithVectors for MergeBatch<'_, W> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vectors>(self, vectors: V) {
        let mut pending = W::Pending::default();
        let flows = self.table.as_mut_ptr();
        for (at, later) in self.batch.iter().enumerate() {
            prefetch(flows.wrapping_add(self.places[at + AHEAD]));
            assert!(self.places[at] < self.table.len());
            // SAFETY: the index is within the table, and this function has the only reference to
            // it.
            unsafe {
                let flow = flows.add(self.places[at]);
                self.code.merge(vectors, &mut pending, flow, later);
            }
        }
        self.code.finish(vectors, pending);
    }
}

/// Makes the records of a batch of packets.
struct OpenBatch<'a, W: Implementation> {
    code: &'a W,
    packets: &'a [(Packet, InputValues)],
    batch: &'a mut [W::Record],
}

impl<W: Implementation> WithVectors for OpenBatch<'_, W> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vectors>(self, vectors: V) {
        for ((packet, values), record) in self.packets.iter().zip(self.batch) {
            self.code.open(vectors, packet, values, record);
        }
    }
}

/// One implementation, its flows, and the time its work took.
struct Run<W: Implementation> {
    code: W,
    work: Work,
    packets: Vec<(Packet, InputValues)>,
    batch: Vec<W::Record>,
    table: Vec<W::Record>,
    numbers: FlowNumbers,
    rounds: Vec<Row>,
}

impl<W: Implementation> Run<W> {
    fn new(work: Work, flows: u64, code: W) -> Self {
        let mut run = Self {
            code,
            work,
            packets: packets(),
            batch: vec![W::Record::ZERO; BATCH],
            table: vec![W::Record::ZERO; flows as usize],
            numbers: keys(flows, Spread::Uniform.skew(), 1).expect("flows are in range"),
            rounds: Vec::new(),
        };
        run.open();
        run
    }

    fn open(&mut self) {
        Machine::detect().run(OpenBatch {
            code: &self.code,
            packets: black_box(&self.packets),
            batch: &mut self.batch,
        });
    }

    fn merge(&mut self, places: &[usize; BATCH + AHEAD]) {
        Machine::detect().run(MergeBatch {
            code: &self.code,
            table: &mut self.table,
            places,
            batch: black_box(&self.batch),
        });
    }
}

impl<W: Implementation> Measured for Run<W> {
    fn round(&mut self, items: u64) {
        let mut places = [0; BATCH + AHEAD];
        let batches = items.div_ceil(BATCH as u64);
        let mut timer = Timer::default();
        for _ in 0..batches {
            places.fill_with(|| self.numbers.next_number() as usize);
            timer.time(|| {
                if self.work != Work::Merge {
                    self.open();
                }
                if self.work != Work::Open {
                    self.merge(&places);
                }
            });
        }
        let name = format!("{}{}", W::NAME, self.work.suffix());
        let (items, flows) = (batches * BATCH as u64, self.table.len() as u64);
        let traffic = Spread::Uniform.name();
        self.rounds
            .push(Row::new("plan", name, flows, traffic, items, timer.total()));
    }

    fn finish(self: Box<Self>) -> Row {
        black_box((&self.table, &self.batch));
        median(self.rounds)
    }
}

/// A record before its first packet.
trait Zeroed {
    const ZERO: Self;
}

impl Zeroed for Planned {
    const ZERO: Self = Self {
        key: [0; WORDS_V4],
        base: EMPTY,
        state: [0; WORDS],
    };
}

impl Zeroed for ByHand {
    const ZERO: Self = Self {
        key: [0; WORDS_V4],
        base: EMPTY,
        frame_sum: 0,
        frame_squares: 0,
        bins: [0; 5],
        payload: 0,
        largest_window: 0,
        longest_gap: 0,
        gap_sum: 0,
        first_arrival: 0,
        last_arrival: 0,
        list_len: 0,
        list: [0; 6],
    };
}

const EMPTY: Base = Base::from_words([0; 6]);
