// SPDX-License-Identifier: Apache-2.0
//! The inspections of one process: takes orders from the meter and writes answers.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hasher};

use crate::message::reply::{write_facts, write_verdict};
use crate::message::{Answer, InspectionId, Order, WorkerLimits};
use crate::tls::{ClientHello, HelloWatch, ja3, ja4};
use crate::{Facts, Inspector, Progress, Sight, Text};

/// Number of taps between two checks of the heap, each of which takes microseconds.
const TAPS_BETWEEN_LOOKS: u64 = 256;
/// The percentage of the address space that inspections may fill. Above that, the oldest
/// inspections are dropped; the rest is for the program, and for what packets may allocate before
/// the next check.
const HEAP_PERCENT: u64 = 60;
/// Maximum number of flows whose incomplete client hello is kept. Each takes up to 16 KiB.
const MAX_COLLECTING: usize = 1024;

/// The inspections of one process.
pub(crate) struct Worker<I: Inspector> {
    inspector: I,
    limits: WorkerLimits,
    /// By number, so that the oldest inspection is the first.
    flows: BTreeMap<u64, Inspected<I::Flow>>,
    /// The highest number so far. Inspections with lower numbers that are not in `flows` are
    /// complete.
    highest: u64,
    /// Completed inspections that an earlier process had begun.
    ended_old: HashSet<u64>,
    /// Undecided flows that have had packets since the last answer to [`Order::Settle`].
    unsettled: Vec<u64>,
    collecting: usize,
    facts: Facts,
    scratch: Vec<u8>,
    inspected: u64,
    late: u64,
    is_spent: bool,
}

struct Inspected<F> {
    id: InspectionId,
    flow: F,
    watch: HelloWatch,
    hello: Option<Box<HelloTexts>>,
    progress: Progress,
    /// Hash of the last verdict that was sent.
    told: Option<u64>,
    is_unsettled: bool,
}

/// The texts that come from a client hello.
struct HelloTexts {
    server_name: Vec<u8>,
    ja3: String,
    ja4: String,
}

impl HelloTexts {
    fn of(hello: &ClientHello) -> Box<Self> {
        Box::new(Self {
            server_name: hello.server_name.clone().unwrap_or_default(),
            ja3: ja3(hello),
            ja4: ja4(hello),
        })
    }

    /// Overwrites the library's texts, which may be missing or cut.
    fn write_to(&self, facts: &mut Facts) {
        if !self.server_name.is_empty() {
            facts.set_text(Text::ServerName, &self.server_name);
        }
        facts.set_text(Text::Ja3, self.ja3.as_bytes());
        facts.set_text(Text::Ja4, self.ja4.as_bytes());
    }
}

impl<F> Inspected<F> {
    fn complete_facts(&self, facts: &mut Facts) {
        if let Some(hello) = &self.hello {
            hello.write_to(facts);
        }
    }

    /// Appends a verdict unless it equals the last one.
    fn tell(
        &mut self,
        progress: Progress,
        facts: &Facts,
        scratch: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) {
        scratch.clear();
        write_facts(scratch, progress, facts);
        let mut hasher = DefaultHasher::new();
        hasher.write(scratch);
        let hash = Some(hasher.finish());
        if self.told != hash {
            self.told = hash;
            write_verdict(out, self.id, progress, facts);
        }
    }
}

impl<I: Inspector> Worker<I> {
    pub(crate) fn new(inspector: I, limits: WorkerLimits) -> Self {
        Self {
            inspector,
            limits,
            flows: BTreeMap::new(),
            highest: 0,
            ended_old: HashSet::new(),
            unsettled: Vec::new(),
            collecting: 0,
            facts: Facts::default(),
            scratch: Vec::new(),
            inspected: 0,
            late: 0,
            is_spent: false,
        }
    }

    /// Whether memory is short even without any inspection: the library leaks memory, and the
    /// process has to be restarted.
    pub(crate) const fn is_spent(&self) -> bool {
        self.is_spent
    }

    /// Carries out an order, and appends the answers.
    pub(crate) fn take(&mut self, order: &Order<'_>, out: &mut Vec<u8>) {
        match order {
            Order::Begin(limits) => self.limits = *limits,
            Order::Tap {
                id,
                is_reversed,
                is_last,
                time_ns,
                datagram,
            } => {
                let sight = Sight {
                    datagram,
                    time_ns: *time_ns,
                    is_reversed: *is_reversed,
                };
                self.tap(*id, &sight, *is_last, out);
            }
            Order::Close { id } => self.close(id.number, out),
            Order::Settle { number } => {
                self.settle(out);
                self.tell_progress(out);
                Answer::Settled { number: *number }.write(out);
            }
        }
    }

    /// Appends the totals.
    pub(crate) fn tell_progress(&self, out: &mut Vec<u8>) {
        let (inspected, late) = (self.inspected, self.late);
        Answer::Progress { inspected, late }.write(out);
    }

    fn tap(&mut self, id: InspectionId, sight: &Sight<'_>, is_last: bool, out: &mut Vec<u8>) {
        if !self.flows.contains_key(&id.number) && !self.open(id, out) {
            self.late += 1;
            return;
        }
        let Some(inspected) = self.flows.get_mut(&id.number) else {
            return;
        };
        self.inspected += 1;
        let was_collecting = inspected.watch.is_collecting();
        let may_collect = was_collecting || self.collecting < MAX_COLLECTING;
        if let Some(hello) = inspected
            .watch
            .see(sight.datagram, sight.is_reversed, may_collect)
        {
            inspected.hello = Some(HelloTexts::of(&hello));
        }
        let is_collecting = inspected.watch.is_collecting();
        self.collecting += usize::from(is_collecting);
        self.collecting -= usize::from(was_collecting);
        let progress = self
            .inspector
            .inspect(&mut inspected.flow, sight, &mut self.facts);
        inspected.progress = inspected.progress.max(progress);
        if progress == Progress::Complete || is_last {
            self.end(id.number, progress == Progress::Undecided, out);
        } else if progress == Progress::Known {
            inspected.complete_facts(&mut self.facts);
            inspected.tell(progress, &self.facts, &mut self.scratch, out);
        } else if !inspected.is_unsettled {
            inspected.is_unsettled = true;
            self.unsettled.push(id.number);
        }
        if self.inspected.is_multiple_of(TAPS_BETWEEN_LOOKS) {
            self.keep_within_memory(out);
        }
    }

    /// Begins an inspection, unless it has already been completed.
    fn open(&mut self, id: InspectionId, out: &mut Vec<u8>) -> bool {
        let is_new = id.number > self.highest && id.number >= self.limits.resume_below;
        let goes_on = id.number < self.limits.resume_below && !self.ended_old.contains(&id.number);
        if !is_new && !goes_on {
            return false;
        }
        while self.flows.len() as u64 >= self.limits.max_flows.max(1) {
            self.drop_oldest(out);
        }
        if is_new {
            self.highest = id.number;
        }
        let Some(flow) = self.inspector.open() else {
            return false;
        };
        self.flows.insert(
            id.number,
            Inspected {
                id,
                flow,
                watch: HelloWatch::default(),
                hello: None,
                progress: Progress::Undecided,
                told: None,
                is_unsettled: false,
            },
        );
        true
    }

    /// Ends an inspection with the current facts or, if `is_guessed`, with a last guess.
    fn end(&mut self, number: u64, is_guessed: bool, out: &mut Vec<u8>) {
        let Some(inspected) = self.remove(number) else {
            return;
        };
        let Inspected {
            id, flow, hello, ..
        } = inspected;
        if is_guessed {
            self.inspector.give_up(flow, &mut self.facts);
        }
        if let Some(hello) = hello {
            hello.write_to(&mut self.facts);
        }
        write_verdict(out, id, Progress::Complete, &self.facts);
    }

    fn remove(&mut self, number: u64) -> Option<Inspected<I::Flow>> {
        let inspected = self.flows.remove(&number)?;
        self.collecting -= usize::from(inspected.watch.is_collecting());
        if number < self.limits.resume_below {
            self.ended_old.insert(number);
        }
        Some(inspected)
    }

    /// Ends an inspection with what is known by now.
    fn close(&mut self, number: u64, out: &mut Vec<u8>) {
        self.end(number, true, out);
    }

    fn drop_oldest(&mut self, out: &mut Vec<u8>) {
        let Some((&number, inspected)) = self.flows.first_key_value() else {
            return;
        };
        let id = inspected.id;
        Answer::Dropped { id }.write(out);
        self.close(number, out);
    }

    /// Drops the oldest inspections until the heap is small enough.
    fn keep_within_memory(&mut self, out: &mut Vec<u8>) {
        let budget = self.limits.memory_bytes / 100 * HEAP_PERCENT;
        while !self.flows.is_empty() && self.inspector.heap_bytes() > budget {
            for _ in 0..self.flows.len().div_ceil(8) {
                self.drop_oldest(out);
            }
        }
        self.is_spent = self.flows.is_empty() && self.inspector.heap_bytes() > budget;
    }

    /// Appends the best guess about each undecided flow that had packets.
    fn settle(&mut self, out: &mut Vec<u8>) {
        let mut unsettled = std::mem::take(&mut self.unsettled);
        for number in unsettled.drain(..) {
            let Some(inspected) = self.flows.get_mut(&number) else {
                continue;
            };
            inspected.is_unsettled = false;
            if inspected.progress == Progress::Undecided {
                self.inspector.guess(&inspected.flow, &mut self.facts);
                inspected.complete_facts(&mut self.facts);
                inspected.tell(Progress::Undecided, &self.facts, &mut self.scratch, out);
            }
        }
        self.unsettled = unsettled;
    }
}
