// SPDX-License-Identifier: Apache-2.0
//! Packet engines whose microflow table is a line.

use turboflow_engine::{Abilities, EvictAll, Evicted, KeyAbility, PacketEngine, PacketEngines};
use turboflow_merge::{KeyHasher, MicroflowRecord, Plan};
use turboflow_record::{Input, InputSet, WORDS_V4};

use crate::line::{Arrival, Left, Line, Step, Why, words_of_key};
use crate::model::Model;
use crate::size::{Build, LineConfig, Size};
#[cfg(feature = "rtl")]
use crate::verilated::VerilatedLine;

/// The engine's abilities: the default definition and parts of it.
pub const ABILITIES: Abilities = Abilities {
    inputs: InputSet::EMPTY
        .with(Input::IpLength)
        .with(Input::TcpFlags)
        .with(Input::Timestamp)
        .with(Input::Tos)
        .with(Input::Ttl),
    keys: KeyAbility::FiveTuple,
    cuts_on_gap: true,
    evicts_on_end: true,
    ordered: true,
    ..Abilities::none("rtl")
};

/// Number of clocks without a packet given to the line at a time while it is emptied.
const PAUSE: usize = 64;

/// A microflow table that is a line.
pub struct LineEngine<L> {
    line: L,
    /// Maximum number of clocks until a record that may leave has left the line.
    drain: usize,
    /// Start of the cell, and whether the line has been told.
    cell_start_ns: u64,
    has_begun: bool,
    /// Number of packets in the line.
    inside: u64,
    evicted: Evicted,
    steps: Vec<Step>,
    left: Vec<Left>,
}

impl<L: Line> LineEngine<L> {
    fn new(line: L, config: &LineConfig) -> Self {
        Self {
            line,
            drain: 1_024 + 8 * config.build.slots(config.size) as usize,
            cell_start_ns: 0,
            has_begun: false,
            inside: 0,
            evicted: Evicted::default(),
            steps: Vec::new(),
            left: Vec::new(),
        }
    }

    /// Gives the collected steps to the line, and hands over the records that leave meanwhile.
    fn give<const K: usize, const N: usize>(
        &mut self,
        why_aged: EvictAll,
        evicted: &mut Vec<MicroflowRecord<K, N>>,
    ) {
        self.line.give(&self.steps, &mut self.left);
        self.steps.clear();
        evicted.reserve(self.left.len());
        for left in self.left.drain(..) {
            self.inside -= left.base.packets;
            match (left.why, why_aged) {
                (Why::Collision, _) => self.evicted.collision += 1,
                (Why::Cut, _) => self.evicted.cut += 1,
                (Why::Age, EvictAll::Cell) => self.evicted.age += 1,
                (Why::Age, EvictAll::Flush) => self.evicted.flush += 1,
            }
            evicted.push(MicroflowRecord {
                key: words_of_key(&left.key),
                base: left.base,
                state: [0; N],
            });
        }
    }
}

impl<L: Line, const K: usize, const N: usize> PacketEngine<K, N> for LineEngine<L> {
    /// The line is told about a cell with its first packet, so that cells without packets cost
    /// nothing.
    fn enter_cell(&mut self, start_ns: u64, _hits_needed_percent: u64) {
        self.cell_start_ns = start_ns;
        self.has_begun = false;
    }

    fn observe(
        &mut self,
        packets: &[MicroflowRecord<K, N>],
        evicted: &mut Vec<MicroflowRecord<K, N>>,
    ) {
        if !self.has_begun && !packets.is_empty() {
            self.steps.push(Step::Cell(self.cell_start_ns));
            self.has_begun = true;
        }
        let arrivals = packets
            .iter()
            .map(|packet| Step::Packet(Arrival::of_record(&packet.key, &packet.base)));
        self.steps.extend(arrivals);
        self.inside += packets.len() as u64;
        // All records that the batch displaced are handed over before the call ends.
        let pause = self.line.latency();
        self.steps.extend(std::iter::repeat_n(Step::Idle, pause));
        self.give(EvictAll::Cell, evicted);
    }

    fn is_bypassed(&self) -> bool {
        false
    }

    /// # Panics
    /// Always: the line is never bypassed.
    fn pass(&mut self, packets: usize) {
        unreachable!("{packets} packets bypass a line that is never bypassed");
    }

    /// Ends the cell and waits until all records have left the line.
    ///
    /// # Panics
    /// If the line keeps packets.
    fn evict_all(&mut self, why: EvictAll, evicted: &mut Vec<MicroflowRecord<K, N>>) {
        if self.inside == 0 {
            return;
        }
        self.steps.push(Step::Cell(self.cell_start_ns));
        let mut waited = 0;
        while self.inside > 0 {
            assert!(
                waited <= self.drain,
                "the line keeps {} packets",
                self.inside
            );
            self.steps.extend([Step::Idle; PAUSE]);
            self.give(why, evicted);
            waited += PAUSE;
        }
    }

    fn evicted(&self) -> Evicted {
        self.evicted
    }
}

/// The line for a key width, with the key of `hasher`.
fn config_of<const K: usize, const N: usize>(
    size: Size,
    evict_after: u8,
    hasher: KeyHasher,
) -> LineConfig {
    assert!(N == 0, "a line has no words for further features");
    let build = match K {
        WORDS_V4 => Build::V4,
        _ => Build::V6,
    };
    LineConfig {
        ends_cut: evict_after != 0,
        ..LineConfig::new(build, size, hasher)
    }
}

/// Creates engines with the simulated line.
#[cfg(feature = "rtl")]
#[derive(Clone, Copy, Debug)]
pub struct RtlEngines {
    /// The size of each line.
    pub size: Size,
}

#[cfg(feature = "rtl")]
impl PacketEngines for RtlEngines {
    type Engine<const K: usize, const N: usize> = LineEngine<VerilatedLine>;

    /// # Panics
    /// If records have further features, which the abilities exclude.
    fn open<const K: usize, const N: usize>(
        &self,
        _shards: usize,
        evict_after: u8,
        _plan: Plan,
        hasher: KeyHasher,
    ) -> Self::Engine<K, N> {
        let config = config_of::<K, N>(self.size, evict_after, hasher);
        LineEngine::new(VerilatedLine::new(config), &config)
    }

    /// Size of the simulated memories: a key and a record in whole words for each slot that is
    /// built, used or not.
    fn size_bytes<const K: usize, const N: usize>(&self, _shards: usize) -> usize {
        let build = Build::V4;
        build.slots(build.size()) as usize * (8 * K + 4 * crate::body::BODY_WORDS + 4)
    }
}

/// Creates engines with the model of the line.
#[derive(Clone, Copy, Debug)]
pub struct ModelEngines {
    /// The size of each line.
    pub size: Size,
}

impl PacketEngines for ModelEngines {
    type Engine<const K: usize, const N: usize> = LineEngine<Model>;

    /// # Panics
    /// If records have further features, which the abilities exclude.
    fn open<const K: usize, const N: usize>(
        &self,
        _shards: usize,
        evict_after: u8,
        _plan: Plan,
        hasher: KeyHasher,
    ) -> Self::Engine<K, N> {
        let config = config_of::<K, N>(self.size, evict_after, hasher);
        LineEngine::new(Model::new(config), &config)
    }

    fn size_bytes<const K: usize, const N: usize>(&self, _shards: usize) -> usize {
        let slot_bytes = size_of::<MicroflowRecord<K, N>>();
        Build::V4.slots(self.size) as usize * slot_bytes
    }
}
