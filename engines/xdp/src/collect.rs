// SPDX-License-Identifier: Apache-2.0
//! Takes records out of the kernel: those of the ring as they come, and at the end of every cell those that are left
//! in the tables.
//!
//! Every table has two halves. At the end of a cell user space turns the program to the other half and waits until no program
//! runs that could have seen it otherwise; then the first half is its own, and rows are taken out without a lock. Records of the
//! new half that reach the ring meanwhile wait. So:
//!
//! - nothing else writes to a half that is being emptied, by construction;
//! - all packets before the turn are in hand after it: programs read the half before the clock;
//! - records of a flow stay in order: the ring's of the old half, its rows, the ring's of the new one.

use std::sync::atomic::Ordering;

use turboflow_engine::{Collected, MicroflowBatch, PlainRows};

use crate::clock::{EngineClock, Step};
use crate::engine::{ROW_WORDS_V4, ROW_WORDS_V6};
use crate::grace::Grace;
use crate::in_use::InUse;
use crate::layout::record_word;
use crate::link::Link;
use crate::memory::SharedMemory;
use crate::{KernelConfig, KernelCounters, KernelEngine, KernelError, planned};

/// Words of `struct control` in `bpf/layout.h`.
const CLOCK_OFFSET_AT: usize = 0;
const HALF_AT: usize = 1;
/// Records that may wait in user space for the end of a turn, in rings' worth; where there are more, the ring is left
/// alone, and counts what it has no room for.
const RINGS_HELD: usize = 4;
/// Records of the ring that are handed over together.
const RECORDS_AT_ONCE: usize = 1_024;
/// Bytes of a record in the ring, about: a ticket and the ring's own 8 included.
pub(crate) const RECORD_BYTES: usize = 72;

/// How far collecting has come.
pub(crate) struct Collecting {
    clock: EngineClock,
    grace: Grace,
    cell_ns: u64,
    started_ns: u64,
    /// Records of packets before this are handed over as they come; it is the end of a cell.
    cell_end_ns: u64,
    /// Records of all packets before this are in hand.
    complete_ns: u64,
    /// While the old half is waited for: the turn to the new one.
    turn: Option<Turn>,
    /// The wall clock was set back: everything in hand is of another time.
    starts_over: Option<StartsOver>,
    /// Records of later cells than the current one.
    held: MicroflowBatch,
    due: MicroflowBatch,
    records_held_at_most: usize,
    is_finished: bool,
    in_use: InUse,
    evicted_age: u64,
    evicted_flush: u64,
}

/// A turn that has not ended.
#[derive(Clone, Copy, Debug)]
struct Turn {
    at_ns: u64,
    /// Where the ring ended when no program ran any more that saw the old half: its records are before.
    ring_end: Option<usize>,
}

/// How far a new start has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StartsOver {
    /// Records of the old time may be in the half that packets go to.
    Asked,
    /// The program has been turned to the other half since.
    Turned,
    /// They are all in hand.
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

    /// What user space has taken out.
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

    /// Hands over what was held of the cell that is complete; the start of the next one.
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

    /// Those of the current cell to `batch`, others are held.
    fn sort_due(&mut self, batch: &mut MicroflowBatch) {
        // What was held is older.
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
    /// Appends records of the current cell that have come, those of a flow in the order of time: mostly no more than stay in a
    /// processor's cache until they are merged. Never waits.
    ///
    /// # Errors
    /// Where the ring carried something that is no record, or the kernel does not let it wait for programs that run.
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
            complete_ns: None,
            has_more,
        })
    }

    /// The start of the cell in which it began, in nanoseconds since 1970.
    #[must_use]
    pub const fn started_ns(&self) -> u64 {
        self.collecting.started_ns
    }

    /// Takes the program off its interfaces and everything out of it. [`KernelEngine::collect`] hands it over, until it has no
    /// more.
    ///
    /// # Errors
    /// As [`KernelEngine::collect`].
    pub fn finish(&mut self) -> Result<(), KernelError> {
        self.links.drain(..).for_each(Link::take_off);
        let mut batch = MicroflowBatch::default();
        self.end_any_turn(&mut batch)?;
        // A program that was on its way when it was taken off may have seen either half.
        self.collecting.grace.start();
        self.collecting.grace.wait()?;
        self.turn();
        let aged = self.collecting.evicted_age;
        self.end_any_turn(&mut batch)?;
        self.take_due(&mut batch);
        let collecting = &mut self.collecting;
        collecting.evicted_flush = collecting.evicted_age - aged;
        collecting.evicted_age = aged;
        // In front of what is held, for they are of earlier cells.
        batch.append(&mut collecting.held);
        collecting.held = batch;
        collecting.is_finished = true;
        Ok(())
    }

    /// Tells the program what to add to its clock.
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

    /// Reads at most so many records of the ring, for whoever writes may be faster than this; how many there were.
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
        // The rows of the half that is turned to were emptied before.
        half.store(1 - half.load(Ordering::Relaxed), Ordering::Release);
        collecting.grace.start();
    }

    /// Ends the turn that is under way, if there is one, however long it takes.
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

    /// Ends the turn if nobody writes to the old half any more, and all its records in the ring have been read: one of the new
    /// half that is not complete yet may lie before them.
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
        // A ring's worth at most.
        self.read_ring(self.collecting.records_held_at_most)?;
        if self.ring.is_read_to(ring_end) && !self.inbox.waits_for_tickets() {
            self.end_turn(turn.at_ns, batch)?;
        }
        Ok(())
    }

    /// Takes what is left in the old half, behind what was in the ring.
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

/// Moves the records of a half to `to`, of those tables that are in use; how many there were. `WORDS` lie from one row to the next.
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
