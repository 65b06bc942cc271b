// SPDX-License-Identifier: Apache-2.0
//! The meter's side of inspection: chooses the packets for the process, and takes its verdicts.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use turboflow_record::{ApplicationNames, FiveTuple, Packet};

use crate::admission::{Admissions, Want};
use crate::inspector_process::{Child, Received};
use crate::message::{Answer, InspectionId, Order, WorkerLimits};
use crate::{
    Facts, FlowKey, InspectConfig, InspectCounters, InspectError, Progress, Text, Verdict, Verdicts,
};

/// The queue is sent when it has at least this many bytes.
const SEND_BYTES: usize = 1 << 16;
/// Bytes that a packet occupies in the queue in addition to its own bytes.
const TAP_BYTES: usize = 26;
/// Maximum bytes of a packet that are inspected: a whole IP packet.
const MAX_DATAGRAM_BYTES: usize = u16::MAX as usize;
/// The process is restarted if it does nothing for this long while packets are waiting.
const PATIENCE_SECONDS: u32 = 10;
/// The delay before the process is restarted, and the maximum to which it grows while the process
/// keeps ending before it has inspected a packet.
const FIRST_BACK_OFF_NS: u64 = 100_000_000;
const LAST_BACK_OFF_NS: u64 = 30_000_000_000;
/// When packets wait for the process (files), it is no longer restarted after this many failures in
/// a row.
const MAX_FAILURES: u32 = 5;

/// The run's table of texts.
pub trait TextSink {
    /// The handle of a text, which need not be UTF-8. It is never 0.
    fn intern(&self, text: &[u8]) -> u64;
}

impl<F: Fn(&[u8]) -> u64> TextSink for F {
    fn intern(&self, text: &[u8]) -> u64 {
        self(text)
    }
}

/// An inspection: one process, and the flows that it inspects. It belongs to the thread that sees
/// the packets.
pub struct Inspection<T> {
    config: InspectConfig,
    program: PathBuf,
    texts: T,
    names: Arc<ApplicationNames>,
    admissions: Admissions,
    verdicts: Arc<Verdicts>,
    link: Link,
    counters: InspectCounters,
    /// Verdicts that were received but are not in the table yet.
    fresh: Vec<(InspectionId, Progress, Facts)>,
    /// Verdicts that were put into the table, if the caller asked for them.
    told: Option<Vec<(FlowKey, Verdict)>>,
    /// The number of the last settle order, and of the last one that was answered.
    settling: u64,
    settled: u64,
    /// Whether packets were queued since the last settle order.
    is_unsettled: bool,
}

/// The process, if it is running, and what is on its way to it.
#[derive(Default)]
struct Link {
    child: Option<Child>,
    queue: Vec<u8>,
    /// Bytes of the queue that have been sent.
    sent: usize,
    /// Number of packets queued for this process so far, and how many of them it reported as done.
    taps: u64,
    done: u64,
    inspected: u64,
    late: u64,
    failures: u32,
    retry_ns: u64,
    /// When the process last made progress, to detect that it hangs.
    alive_ns: u64,
}

impl<T: TextSink> Inspection<T> {
    /// Starts the process and waits until it is ready, which takes about 0.1 s.
    ///
    /// # Errors
    /// If the program was built without an inspector, or the process does not start.
    pub fn start(config: InspectConfig, texts: T) -> Result<Self, InspectError> {
        if !cfg!(feature = "dpi") && config.program.is_none() {
            return Err(InspectError::NotBuilt);
        }
        let program = match &config.program {
            Some(program) => program.clone(),
            None => own_program().map_err(InspectError::Start)?,
        };
        let mut inspection = Self {
            admissions: Admissions::new(&config),
            verdicts: Arc::new(Verdicts::new(config.remembered_flows(), config.seed)),
            program,
            texts,
            names: Arc::default(),
            link: Link::default(),
            counters: InspectCounters::default(),
            fresh: Vec::new(),
            told: config.tells_verdicts.then(Vec::new),
            settling: 0,
            settled: 0,
            is_unsettled: false,
            config,
        };
        inspection.spawn().map_err(InspectError::Start)?;
        inspection.names = Arc::new(inspection.await_names()?);
        Ok(inspection)
    }

    /// The names for the numbers of applications, categories and risks.
    #[must_use]
    pub fn names(&self) -> Arc<ApplicationNames> {
        Arc::clone(&self.names)
    }

    /// What is known about flows, for the threads that write records.
    #[must_use]
    pub fn verdicts(&self) -> Arc<Verdicts> {
        Arc::clone(&self.verdicts)
    }

    /// What is known about the flow of a record whose last packet was at `last_ns`. Threads that
    /// write many records should lock [`Inspection::verdicts`] once per batch instead.
    #[must_use]
    pub fn verdict(&self, tuple: &FiveTuple, last_ns: u64) -> Option<Verdict> {
        self.verdicts.lock().get(tuple, last_ns).copied()
    }

    /// Whether the inspection of a flow has ended, so that no more of its packets are needed.
    /// `None` if the flow is not known.
    #[must_use]
    pub fn is_over(&self, key: &FlowKey) -> Option<bool> {
        self.admissions.is_over(key)
    }

    /// The flows whose inspection has ended since the last call, each with whether the payload
    /// revealed its application. Requires [`InspectConfig::tells_ends`]. A new inspection of the
    /// flow may have begun since: see [`Self::is_over`].
    pub fn take_ended(&mut self) -> Vec<(FlowKey, bool)> {
        self.admissions.take_ended()
    }

    /// What was learned about flows since the last call, in order. Requires
    /// [`InspectConfig::tells_verdicts`].
    pub fn take_told(&mut self) -> Vec<(FlowKey, Verdict)> {
        self.told.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// The id of the process, if it is running.
    #[must_use]
    pub fn process_id(&self) -> Option<u32> {
        self.link.child.as_ref().map(Child::id)
    }

    /// The counters so far.
    #[must_use]
    pub fn counters(&self) -> InspectCounters {
        let ends = self.admissions.ends;
        InspectCounters {
            inspections_opened: ends.opened,
            inspections_decided: ends.decided,
            inspections_gave_up: ends.gave_up,
            inspections_dropped: ends.dropped,
            packets_inspected: self.counters.packets_inspected + self.link.inspected,
            packets_late: self.counters.packets_late + self.link.late,
            ..self.counters
        }
    }

    /// Takes a packet. If it is to be inspected, `datagram` is called to find the IP packet; it
    /// returns `None` if there are no bytes to inspect, as in a later fragment.
    ///
    /// At an interface this never waits. In a file it waits for room in the queue.
    #[inline]
    pub fn offer<'a>(&mut self, packet: &Packet, datagram: impl FnOnce() -> Option<&'a [u8]>) {
        let mut found: Option<&'a [u8]> = None;
        let may_press = !self.config.is_lossless;
        let mut want = self.admissions.want(packet, may_press, || {
            found = datagram();
            found.is_some()
        });
        if want == Want::Pressed {
            // Which inspection is dropped must not depend on the timing of answers.
            self.wait_until_caught_up(packet.timestamp_ns);
            want = self.admissions.want(packet, true, || true);
        }
        if let (Want::Yes(wanted), Some(bytes)) = (want, found) {
            let datagram = &bytes[..bytes.len().min(MAX_DATAGRAM_BYTES)];
            let order = Order::Tap {
                id: wanted.id,
                is_reversed: wanted.is_reversed,
                is_last: wanted.is_last,
                time_ns: packet.timestamp_ns,
                datagram,
            };
            let is_sent = self.tap(&order, datagram.len(), packet.timestamp_ns);
            if wanted.is_last && !is_sent {
                // No answer will arrive.
                self.admissions.give_up(wanted.id);
            }
        }
    }

    /// Queues a packet. Returns whether there was room.
    #[inline(never)]
    fn tap(&mut self, order: &Order<'_>, length: usize, now_ns: u64) -> bool {
        self.counters.taps += 1;
        self.is_unsettled = true;
        if !self.make_room(length + TAP_BYTES, now_ns) {
            self.counters.taps_lost += 1;
            return false;
        }
        order.write(&mut self.link.queue);
        if self.link.taps == self.link.done {
            // The process had nothing to do until now.
            self.link.alive_ns = now_ns;
        }
        self.link.taps += 1;
        if self.link.waiting() >= SEND_BYTES {
            self.poll(now_ns);
        }
        true
    }

    /// Returns whether a packet of this many bytes fits into the queue.
    fn make_room(&mut self, bytes: usize, now_ns: u64) -> bool {
        let limit = self.config.queue_bytes.max(MAX_DATAGRAM_BYTES + TAP_BYTES);
        if !self.config.is_lossless {
            return self.link.child.is_some() && self.link.waiting() + bytes <= limit;
        }
        self.revive(now_ns);
        while self.link.child.is_some() && self.link.waiting() + bytes > limit {
            self.wait_and_poll(now_ns);
        }
        self.link.child.is_some()
    }

    /// Sends what is queued, reads what has arrived, and restarts the process if necessary, all
    /// without waiting. Call it after every batch, and regularly while there are no packets.
    pub fn poll(&mut self, now_ns: u64) {
        self.revive(now_ns);
        self.order_closes();
        self.send(now_ns);
        self.receive(now_ns);
        self.keep_fresh();
    }

    /// Requests what is known or guessed about every flow so far, without waiting for the answer.
    /// Call it before records are written, at an interface.
    pub fn settle(&mut self, now_ns: u64) {
        if self.is_unsettled && self.settling == self.settled && self.link.child.is_some() {
            self.is_unsettled = false;
            self.settling += 1;
            let number = self.settling;
            Order::Settle { number }.write(&mut self.link.queue);
        }
        self.poll(now_ns);
    }

    /// Calls [`Inspection::settle`] and waits for the answer. For files, so that a capture always
    /// gives the same records.
    pub fn wait_until_caught_up(&mut self, now_ns: u64) {
        // A settle order that is already on its way does not cover the latest packets.
        for _ in 0..2 {
            self.settle(now_ns);
            while self.link.child.is_some() && self.settled < self.settling {
                self.wait_and_poll(now_ns);
            }
            // A process that has ended sends no answers.
            self.settled = self.settling;
        }
        self.keep_fresh();
    }

    /// At the end of the input: ends all inspections with what is known, and waits for the answers.
    pub fn finish(&mut self, now_ns: u64) {
        self.wait_until_caught_up(now_ns);
        let open: Vec<InspectionId> = self.admissions.open_ids().collect();
        for id in open {
            Order::Close { id }.write(&mut self.link.queue);
            if self.link.waiting() >= SEND_BYTES {
                self.poll(now_ns);
            }
        }
        self.is_unsettled = true;
        self.wait_until_caught_up(now_ns);
        // Ends the inspections that were lost with a process.
        self.admissions.end_all(false);
    }

    fn wait_and_poll(&mut self, now_ns: u64) {
        let to_send = self.link.waiting() > 0;
        let child = self.link.child.as_ref();
        match child.map(|child| child.wait(to_send, PATIENCE_SECONDS)) {
            Some(Ok(true)) | None => self.poll(now_ns),
            Some(Ok(false) | Err(_)) => self.bury(now_ns),
        }
    }

    /// Restarts the process if it is not running and the delay is over.
    fn revive(&mut self, now_ns: u64) {
        if self.link.child.is_some() {
            return;
        }
        let is_time = match self.config.is_lossless {
            true => self.link.failures < MAX_FAILURES,
            false => now_ns >= self.link.retry_ns,
        };
        if is_time {
            self.counters.restarts += 1;
            if self.spawn().is_err() {
                self.bury(now_ns);
            }
            self.link.alive_ns = now_ns;
        }
    }

    fn spawn(&mut self) -> io::Result<()> {
        self.link.child = Some(Child::start(&self.program)?);
        Order::Begin(WorkerLimits {
            // The meter enforces the limit, but does not count orders that are still on their way.
            max_flows: self.config.max_flows as u64 + 1,
            memory_bytes: self.config.memory_bytes,
            resume_below: self.admissions.next_number(),
        })
        .write(&mut self.link.queue);
        Ok(())
    }

    /// The process has ended: whatever it held is lost, and it may be restarted after a delay.
    fn bury(&mut self, now_ns: u64) {
        let link = &mut self.link;
        let was_idle = link.done == 0;
        self.counters.taps_lost += link.taps - link.done;
        self.counters.packets_inspected += link.inspected;
        self.counters.packets_late += link.late;
        let failures = if was_idle { link.failures + 1 } else { 0 };
        let back_off_ns = FIRST_BACK_OFF_NS << failures.min(16);
        *link = Link {
            failures,
            retry_ns: now_ns.saturating_add(back_off_ns.min(LAST_BACK_OFF_NS)),
            ..Link::default()
        };
        self.settled = self.settling;
        self.admissions.to_close.clear();
        self.admissions.end_all(true);
    }

    fn order_closes(&mut self) {
        if self.link.child.is_some() {
            for id in self.admissions.to_close.drain(..) {
                Order::Close { id }.write(&mut self.link.queue);
            }
        }
        self.admissions.to_close.clear();
    }

    fn send(&mut self, now_ns: u64) {
        let link = &mut self.link;
        let Some(child) = &mut link.child else {
            return;
        };
        while link.sent < link.queue.len() {
            match child.send(&link.queue[link.sent..]) {
                Ok(0) => break,
                Ok(count) => link.sent += count,
                Err(_) => return self.bury(now_ns),
            }
        }
        if link.sent == link.queue.len() {
            link.queue.clear();
            link.sent = 0;
        } else if link.sent > link.queue.len() / 2 {
            link.queue.drain(..link.sent);
            link.sent = 0;
        }
    }

    fn receive(&mut self, now_ns: u64) {
        let Some(mut child) = self.link.child.take() else {
            return;
        };
        let mut has_failed = false;
        let mut is_alive = self.link.taps == self.link.done;
        let received = child.receive(|answer| {
            is_alive = true;
            has_failed |= !self.take(answer);
        });
        self.link.child = Some(child);
        if is_alive {
            self.link.alive_ns = now_ns;
        }
        let patience_ns = u64::from(PATIENCE_SECONDS) * 1_000_000_000;
        // The times in a file say nothing about the process.
        let hangs =
            !self.config.is_lossless && now_ns.saturating_sub(self.link.alive_ns) > patience_ns;
        if has_failed || hangs || received == Received::Ended {
            self.bury(now_ns);
        }
    }

    /// Takes an answer; false if the process cannot be trusted.
    fn take(&mut self, answer: Answer) -> bool {
        let link = &mut self.link;
        match answer {
            Answer::Ready(_) => true,
            Answer::Failed(_) => false,
            Answer::Progress { inspected, late } => {
                let done = inspected.saturating_add(late);
                let is_possible =
                    done <= link.taps && inspected >= link.inspected && late >= link.late;
                if is_possible {
                    (link.inspected, link.late, link.done) = (inspected, late, done);
                }
                is_possible
            }
            Answer::Verdict {
                id,
                progress,
                facts,
            } => {
                self.admissions.told(id, progress, facts.confidence);
                self.fresh.push((id, progress, facts));
                true
            }
            Answer::Dropped { id } => {
                self.admissions.dropped(id);
                true
            }
            Answer::Settled { number } => {
                let is_possible = number <= self.settling;
                self.settled = self.settled.max(number.min(self.settling));
                is_possible
            }
        }
    }

    /// Puts new verdicts into the table.
    fn keep_fresh(&mut self) {
        if self.fresh.is_empty() && self.admissions.to_forget.is_empty() {
            return;
        }
        let mut verdicts = self.verdicts.lock();
        for key in self.admissions.to_forget.drain(..) {
            verdicts.forget(&key);
        }
        for (id, progress, facts) in self.fresh.drain(..) {
            let Some((key, since_ns)) = self.admissions.flow_of(id) else {
                continue;
            };
            let mut verdict = Verdict {
                since_ns,
                application: facts.application,
                category: facts.category,
                confidence: facts.confidence,
                risk: facts.risk,
                progress,
                ..Verdict::default()
            };
            for text in Text::ALL {
                let bytes = facts.text(text);
                if !bytes.is_empty() {
                    verdict.set_text(text, self.texts.intern(bytes));
                }
            }
            verdicts.keep(key, since_ns, verdict);
            if let Some(told) = &mut self.told {
                told.push((*key, verdict));
            }
        }
    }

    /// Waits until the first process is ready.
    fn await_names(&mut self) -> Result<ApplicationNames, InspectError> {
        let mut names = None;
        let mut failed = None;
        loop {
            self.send(0);
            let Some(child) = &mut self.link.child else {
                return Err(InspectError::Ended);
            };
            let waited = child.wait(false, PATIENCE_SECONDS);
            let received = child.receive(|answer| match answer {
                Answer::Ready(its) => names = Some(its),
                Answer::Failed(why) => failed = Some(why),
                _ => {}
            });
            if let Some(why) = failed {
                return Err(InspectError::Failed(why));
            }
            if let Some(names) = names {
                return Ok(names);
            }
            if received == Received::Ended || !waited.is_ok_and(|is_ready| is_ready) {
                return Err(InspectError::Ended);
            }
        }
    }
}

impl Link {
    /// Bytes that have not been sent yet.
    fn waiting(&self) -> usize {
        self.queue.len() - self.sent
    }
}

/// The path of this program. On Linux it is the running program even if an upgrade has replaced its
/// file, because another version may use different messages.
fn own_program() -> io::Result<PathBuf> {
    match cfg!(target_os = "linux") {
        true => Ok("/proc/self/exe".into()),
        false => std::env::current_exe(),
    }
}
