// SPDX-License-Identifier: Apache-2.0
//! A definition's compiled plan against the same work written by hand: packets become records and
//! merge into the records of randomly drawn flows, a batch at a time, as in the pipeline.
//!
//! | design | what runs for each packet |
//! |---|---|
//! | `plan`, `by_hand` | a record is made of it, and merged into its flow's |
//! | `plan_open`, `by_hand_open` | a record is made of it |
//! | `plan_merge`, `by_hand_merge` | a record that is there is merged into its flow's |
//!
//! Both ways are compiled for the vectors of this machine.

use std::hint::black_box;

use turboflow_merge::{
    Base, Layout, Machine, MicroflowRecord, PendingStates, Vectors, WithVectors, prefetch,
};
use turboflow_record::{Definition, Feature, FiveTuple, Input, InputValues, Op, Packet, WORDS_V4};
use turboflow_workload::traffic::{FlowNumbers, keys};

use crate::report::{Measured, in_turn, median};
use crate::{Options, Row, Spread, Timer};

/// Words that the definition's further features take.
const WORDS: usize = 24;
/// Packets folded at a time.
const BATCH: usize = 512;
/// Flows of the two sizes: in the first-level cache, and far from it.
const FLOWS: [u64; 2] = [256, 1_000_000];
/// Packets a record is fetched ahead of its use, as engine and aggregator do.
const AHEAD: usize = 12;

pub(crate) fn run(options: &Options, row: &mut dyn FnMut(Row)) {
    let layout =
        Layout::compile(&definition(), false).expect("the benchmark's definition compiles");
    assert_eq!(layout.state_words(), WORDS);
    for flows in FLOWS {
        for work in Work::ALL {
            let designs: Vec<Box<dyn Measured + '_>> = vec![
                Box::new(Run::new(work, flows, ByPlan(&layout))),
                Box::new(Run::new(work, flows, ByHandWay)),
            ];
            in_turn(designs, options, row);
        }
    }
}

/// What is timed.
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

/// A way to make records and merge them.
trait Way {
    const NAME: &'static str;
    type Record: Clone + Zeroed;
    /// Records that have merged but for what follows many at a time.
    type Pending: Default;
    /// Writes the record of a packet.
    fn open<V: Vectors>(
        &self,
        vectors: V,
        packet: &Packet,
        values: &InputValues,
        record: &mut Self::Record,
    );
    /// # Safety
    /// Both records stay where they are until [`Way::finish`], and nobody else uses them.
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

impl Way for ByPlan<'_> {
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
        // SAFETY: the caller's.
        unsafe {
            vectors.merge_in_order(&mut (*flow).base, &later.base);
            pending.push(flow, later);
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

struct ByHandWay;

impl Way for ByHandWay {
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
        // SAFETY: the caller's.
        let flow = unsafe { &mut *flow };
        vectors.merge_in_order(&mut flow.base, &later.base);
        flow.merge(later);
    }

    #[inline(always)]
    fn finish<V: Vectors>(&self, _vectors: V, _pending: ()) {}
}

type Planned = MicroflowRecord<WORDS_V4, WORDS>;

/// The default definition and eight more features of many kinds.
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

/// The same record as a programmer would write it for this one definition.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct ByHand {
    key: [u64; WORDS_V4],
    base: Base,
    frame_sum: u64,
    frame_squares: u128,
    bins: [u64; 5],
    payload: u64,
    /// Plus one; 0 without.
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

/// Packets with and without a TCP window.
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

/// Merges a batch into the flows at `places`, each fetched ahead of its use.
struct MergeBatch<'a, W: Way> {
    way: &'a W,
    table: &'a mut [W::Record],
    places: &'a [usize; BATCH + AHEAD],
    batch: &'a [W::Record],
}

impl<W: Way> WithVectors for MergeBatch<'_, W> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vectors>(self, vectors: V) {
        let mut pending = W::Pending::default();
        let flows = self.table.as_mut_ptr();
        for (at, later) in self.batch.iter().enumerate() {
            prefetch(flows.wrapping_add(self.places[at + AHEAD]));
            assert!(self.places[at] < self.table.len());
            // SAFETY: within the table, of which nobody else has any part before the end of this function.
            unsafe {
                let flow = flows.add(self.places[at]);
                self.way.merge(vectors, &mut pending, flow, later);
            }
        }
        self.way.finish(vectors, pending);
    }
}

/// Makes records of a batch of packets.
struct OpenBatch<'a, W: Way> {
    way: &'a W,
    packets: &'a [(Packet, InputValues)],
    batch: &'a mut [W::Record],
}

impl<W: Way> WithVectors for OpenBatch<'_, W> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vectors>(self, vectors: V) {
        for ((packet, values), record) in self.packets.iter().zip(self.batch) {
            self.way.open(vectors, packet, values, record);
        }
    }
}

/// One way, its flows, and what its work took.
struct Run<W: Way> {
    way: W,
    work: Work,
    packets: Vec<(Packet, InputValues)>,
    batch: Vec<W::Record>,
    table: Vec<W::Record>,
    numbers: FlowNumbers,
    rounds: Vec<Row>,
}

impl<W: Way> Run<W> {
    fn new(work: Work, flows: u64, way: W) -> Self {
        let mut run = Self {
            way,
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
            way: &self.way,
            packets: black_box(&self.packets),
            batch: &mut self.batch,
        });
    }

    fn merge(&mut self, places: &[usize; BATCH + AHEAD]) {
        Machine::detect().run(MergeBatch {
            way: &self.way,
            table: &mut self.table,
            places,
            batch: black_box(&self.batch),
        });
    }
}

impl<W: Way> Measured for Run<W> {
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

/// A record that no packet has reached.
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
