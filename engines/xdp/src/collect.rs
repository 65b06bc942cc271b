// SPDX-License-Identifier: Apache-2.0
//! Collects records from the kernel: those of the ring as they come, and at the end of every cell
//! those left in the tables.
//!
//! Every table has two halves. At the end of a cell, user space turns the program to the other half
//! and waits until no running program can still use the first one. Then it takes the rows of the
//! first half without a lock. Meanwhile, records of the new half that come through the ring are
//! held. So:
//!
//! - nothing writes to a half while it is emptied, by construction;
//! - the records of all packets before the turn are collected once the old half is empty: programs
//!   read the half before the clock;
//! - records of a flow stay in order: first those of the old half in the ring, then the rows of the
//!   old half, then the records of the new half in the ring.

use std::sync::atomic::Ordering;

use turboflow_engine::{Collected, MicroflowBatch, PlainRows};

use crate::clock::{EngineClock, Step};
use crate::grace::Grace;
use crate::in_use::InUse;
use crate::layout::record_word;
use crate::link::Link;
use crate::memory::SharedMemory;
use crate::object::{ROW_WORDS_V4, ROW_WORDS_V6};
use crate::{KernelConfig, KernelCounters, KernelEngine, KernelError, planned};

/// Word offsets in `struct control` of `bpf/layout.h`.
const CLOCK_OFFSET_AT: usize = 0;
const HALF_AT: usize = 1;
/// Limit on records held in user space until a turn ends, in multiples of the ring. Beyond this
/// limit the ring is not read, and counts the records that it drops.
const RINGS_HELD: usize = 4;
/// Records of the ring that are handed over at once.
const RECORDS_AT_ONCE: usize = 1_024;
/// Approximate bytes of a record in the ring, including a ticket and the ring's 8-byte header.
pub(crate) const RECORD_BYTES: usize = 72;

/// The state of collecting.
pub(crate) struct Collecting {
    clock: EngineClock,
    grace: Grace,
    cell_ns: u64,
    started_ns: u64,
    /// End of the current cell: records of earlier packets are handed over as they come.
    cell_end_ns: u64,
    /// All records of packets before this time have been collected.
    complete_ns: u64,
    /// The turn to the new half, while the old half is still in use.
    turn: Option<Turn>,
    /// The wall clock was set back: all records collected so far belong to the old time.
    starts_over: Option<StartsOver>,
    /// Records of later cells.
    held: MicroflowBatch,
    due: MicroflowBatch,
    records_held_at_most: usize,
    is_finished: bool,
    in_use: InUse,
    evicted_age: u64,
    evicted_flush: u64,
}

/// A turn in progress.
#[derive(Clone, Copy, Debug)]
struct Turn {
    at_ns: u64,
    /// The end of the ring when no running program could still use the old half: all its records
    /// lie before.
    ring_end: Option<usize>,
}

/// The state of a restart after the wall clock was set back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StartsOver {
    /// Records of the old time may be in the current half.
    Asked,
    /// The program has been turned to the other half since then.
    Turned,
    /// All records of the old time have been collected.
    InHand,
}

impl Collecting {
    pub(crate) fn new(
        config: &KernelConfig,
        clock: EngineClock,
        grace: Grace,
        record_bytes: usize,
    ) -> Self {
        let now_ns = clock.now_ns();
        let cell_start_ns = now_ns / config.cell_ns * config.cell_ns;
        Self {
            clock,
            grace,
            cell_ns: config.cell_ns,
            started_ns: cell_start_ns,
            cell_end_ns: cell_start_ns.saturating_add(config.cell_ns),
            complete_ns: cell_start_ns,
            turn: None,
            starts_over: None,
            held: MicroflowBatch::default(),
            due: MicroflowBatch::default(),
            records_held_at_most: RINGS_HELD * config.ring_bytes as usize / record_bytes,
            is_finished: false,
            in_use: InUse::default(),
            evicted_age: 0,
            evicted_flush: 0,
        }
    }

    /// What user space has counted.
    pub(crate) fn counters(&self) -> KernelCounters {
        KernelCounters {
            evicted_age: self.evicted_age,
            evicted_flush: self.evicted_flush,
            ..KernelCounters::default()
        }
    }

    fn is_cell_complete(&self) -> bool {
        self.complete_ns >= self.cell_end_ns || self.starts_over == Some(StartsOver::InHand)
    }

    /// Hands over the held records of the complete cell; returns the start of the next cell.
    fn next_cell(&mut self, batch: &mut MicroflowBatch) -> u64 {
        let start = |ns: u64| ns / self.cell_ns * self.cell_ns;
        if self.starts_over == Some(StartsOver::InHand) {
            self.starts_over = None;
            batch.append(&mut self.held);
            let next_ns = start(self.complete_ns);
            self.cell_end_ns = next_ns.saturating_add(self.cell_ns);
            return next_ns;
        }
        self.held.split_off_before(self.cell_end_ns, batch);
        let latest_ns = start(self.complete_ns);
        // Not past a cell that has records.
        let first_ns = self.held.first_ns().map_or(latest_ns, start);
        let next_ns = first_ns.min(latest_ns).max(self.cell_end_ns);
        self.cell_end_ns = next_ns.saturating_add(self.cell_ns);
        next_ns
    }

    /// Moves the records of the current cell to `batch`, and holds the others.
    fn sort_due(&mut self, batch: &mut MicroflowBatch) {
        // The held records are older.
        self.held.split_off_before(self.cell_end_ns, batch);
        self.due.split_off_before(self.cell_end_ns, batch);
        self.held.append(&mut self.due);
    }

    fn wants_to_turn(&self) -> bool {
        self.starts_over == Some(StartsOver::Asked)
            || self.clock.now_ns() >= self.cell_end_ns.saturating_add(self.clock.slack_ns())
    }
}

impl KernelEngine {
    /// Appends the records of the current cell that have arrived, in time order per flow. Usually
    /// they fit in the processor's cache until they are merged. Never blocks.
    ///
    /// # Errors
    /// Where the ring contained an invalid record, or the kernel refuses to wait for running
    /// programs.
    pub fn collect(&mut self, batch: &mut MicroflowBatch) -> Result<Collected, KernelError> {
        if self.collecting.is_cell_complete() {
            return Ok(Collected::all_before(self.collecting.next_cell(batch)));
        }
        if self.collecting.is_finished {
            batch.append(&mut self.collecting.held);
            return Ok(Collected::default());
        }
        self.follow_wall_clock();
        let waiting = self.inbox.len() + self.collecting.held.len();
        let room = self.collecting.records_held_at_most.saturating_sub(waiting);
        let has_more = self.read_ring(room.min(RECORDS_AT_ONCE))? == RECORDS_AT_ONCE;
        self.take_due(batch);
        if self.collecting.turn.is_some() {
            self.try_to_end_turn(batch)?;
        } else if self.collecting.wants_to_turn() {
            self.turn();
        }
        if self.collecting.is_cell_complete() {
            return Ok(Collected::all_before(self.collecting.next_cell(batch)));
        }
        Ok(Collected {
            sets_back: false,
            complete_ns: None,
            has_more,
        })
    }

    /// Start of the first cell, in nanoseconds since 1970.
    #[must_use]
    pub const fn started_ns(&self) -> u64 {
        self.collecting.started_ns
    }

    /// Detaches the program and collects everything left in it. [`KernelEngine::collect`] then
    /// hands it over, until there is no more.
    ///
    /// # Errors
    /// As [`KernelEngine::collect`].
    pub fn finish(&mut self) -> Result<(), KernelError> {
        self.links.drain(..).for_each(Link::take_off);
        let mut batch = MicroflowBatch::default();
        self.end_any_turn(&mut batch)?;
        // A program running at the time of detaching may use either half.
        self.collecting.grace.start();
        self.collecting.grace.wait()?;
        self.turn();
        let aged = self.collecting.evicted_age;
        self.end_any_turn(&mut batch)?;
        self.take_due(&mut batch);
        let collecting = &mut self.collecting;
        collecting.evicted_flush = collecting.evicted_age - aged;
        collecting.evicted_age = aged;
        // These records are of earlier cells than the held ones, so they come first.
        batch.append(&mut collecting.held);
        collecting.held = batch;
        collecting.is_finished = true;
        Ok(())
    }

    /// Sets the offset that the program adds to its clock.
    pub(crate) fn set_clock(&self) {
        let offset_ns = self.collecting.clock.offset_of_program_ns();
        self.control.words()[CLOCK_OFFSET_AT].store(offset_ns, Ordering::Relaxed);
    }

    fn follow_wall_clock(&mut self) {
        if let Some(step) = self.collecting.clock.follow() {
            self.set_clock();
            if step == Step::Back {
                self.collecting.starts_over = Some(StartsOver::Asked);
            }
        }
    }

    /// Reads at most `records` records of the ring, because the program may write faster than this
    /// reads. Returns how many there were.
    fn read_ring(&mut self, records: usize) -> Result<usize, KernelError> {
        let inbox = &mut self.inbox;
        let read = self.ring.read(records, |item| inbox.receive(item));
        match inbox.foreign() {
            0 => Ok(read),
            count => Err(KernelError::ForeignItems { count }),
        }
    }

    fn take_due(&mut self, batch: &mut MicroflowBatch) {
        self.inbox.take_due(&mut self.collecting.due);
        self.collecting.sort_due(batch);
    }

    /// Turns the program to the other half of its tables.
    fn turn(&mut self) {
        let collecting = &mut self.collecting;
        if collecting.starts_over == Some(StartsOver::Asked) {
            collecting.starts_over = Some(StartsOver::Turned);
        }
        collecting.turn = Some(Turn {
            at_ns: collecting.clock.now_ns(),
            ring_end: None,
        });
        let half = &self.control.words()[HALF_AT];
        // The rows of the other half were emptied before.
        half.store(1 - half.load(Ordering::Relaxed), Ordering::Release);
        collecting.grace.start();
    }

    /// Completes a turn in progress, however long that takes.
    fn end_any_turn(&mut self, batch: &mut MicroflowBatch) -> Result<(), KernelError> {
        while let Some(turn) = &mut self.collecting.turn {
            if turn.ring_end.is_none() {
                self.collecting.grace.wait()?;
                turn.ring_end = Some(self.ring.end());
            }
            self.try_to_end_turn(batch)?;
        }
        Ok(())
    }

    /// Completes the turn if the old half is no longer written and all its records in the ring have
    /// been read. An incomplete record of the new half may lie before them.
    fn try_to_end_turn(&mut self, batch: &mut MicroflowBatch) -> Result<(), KernelError> {
        let Some(mut turn) = self.collecting.turn else {
            return Ok(());
        };
        let ring_end = match turn.ring_end {
            Some(end) => end,
            None if self.collecting.grace.is_over()? => self.ring.end(),
            None => return Ok(()),
        };
        turn.ring_end = Some(ring_end);
        self.collecting.turn = Some(turn);
        // At most one ring's worth of records.
        self.read_ring(self.collecting.records_held_at_most)?;
        if self.ring.is_read_to(ring_end) && !self.inbox.waits_for_tickets() {
            self.end_turn(turn.at_ns, batch)?;
        }
        Ok(())
    }

    /// Takes the rows left in the old half, after its records in the ring.
    fn end_turn(&mut self, turned_ns: u64, batch: &mut MicroflowBatch) -> Result<(), KernelError> {
        self.take_due(batch);
        let metered = self.metered_by_table()?;
        let in_use = self.collecting.in_use.since_emptied(metered, self.tables);
        let old_half = 1 - self.control.words()[HALF_AT].load(Ordering::Relaxed);
        let due = &mut self.collecting.due;
        let rows = match self.shape {
            Some(shape) => {
                let tables = [&self.table_v4, &self.table_v6];
                planned::take_rows(tables, old_half, shape, &in_use, due)
            }
            None => {
                take_rows::<ROW_WORDS_V4, _>(&self.table_v4, old_half, &in_use, &mut due.plain_v4)
                    + take_rows::<ROW_WORDS_V6, _>(
                        &self.table_v6,
                        old_half,
                        &in_use,
                        &mut due.plain_v6,
                    )
            }
        };
        let collecting = &mut self.collecting;
        collecting.evicted_age += rows;
        collecting.sort_due(batch);
        self.inbox.turn();
        collecting.turn = None;
        collecting.complete_ns = turned_ns.saturating_sub(collecting.clock.slack_ns());
        if collecting.starts_over == Some(StartsOver::Turned) {
            collecting.starts_over = Some(StartsOver::InHand);
        }
        Ok(())
    }
}

/// Moves the records of a half to `to`, from the tables in use; returns how many there were.
/// `WORDS` is the distance between rows.
fn take_rows<const WORDS: usize, const K: usize>(
    table: &SharedMemory,
    half: u64,
    in_use: &[bool],
    to: &mut PlainRows<K>,
) -> u64 {
    table.take_rows(half, in_use, WORDS, |row| {
        to.push(|at| record_word(at, row[at].load(Ordering::Relaxed)));
    })
}
