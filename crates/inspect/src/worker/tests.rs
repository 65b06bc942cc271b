// SPDX-License-Identifier: Apache-2.0
//! Tests the worker with an inspector that does what the packets say.

use turboflow_record::ApplicationNames;

use super::*;
use crate::Confidence;
use crate::message::{MAX_ANSWER_BYTES, split};

/// The first byte of a packet says how far the inspection gets: `u`ndecided, `k`nown or `c`omplete;
/// the second byte is the application.
#[derive(Default)]
struct Told {
    flow_heap_bytes: u64,
    lost_bytes: u64,
    open: u64,
}

impl Inspector for Told {
    type Flow = u32;

    fn open(&mut self) -> Option<u32> {
        self.open += 1;
        Some(0)
    }

    fn inspect(&mut self, flow: &mut u32, sight: &Sight<'_>, facts: &mut Facts) -> Progress {
        facts.clear();
        *flow += 1;
        let progress = match sight.datagram[0] {
            b'k' => Progress::Known,
            b'c' => Progress::Complete,
            _ => return Progress::Undecided,
        };
        facts.application = sight.datagram[1].into();
        facts.confidence = Confidence::Payload;
        progress
    }

    fn guess(&mut self, flow: &u32, facts: &mut Facts) {
        facts.clear();
        facts.application = 1000 + flow;
        facts.confidence = Confidence::Port;
    }

    fn give_up(&mut self, flow: u32, facts: &mut Facts) {
        self.open -= 1;
        self.guess(&flow, facts);
    }

    fn names(&self) -> ApplicationNames {
        ApplicationNames::default()
    }

    fn heap_bytes(&self) -> u64 {
        self.open * self.flow_heap_bytes + self.lost_bytes
    }
}

struct Bench {
    worker: Worker<Told>,
}

impl Bench {
    fn new(limits: WorkerLimits) -> Self {
        let worker = Worker::new(Told::default(), limits);
        Self { worker }
    }

    /// The answers to an order, without the totals.
    fn take(&mut self, order: &Order<'_>) -> Vec<Answer> {
        let mut out = Vec::new();
        self.worker.take(order, &mut out);
        let mut rest = &out[..];
        let mut answers = Vec::new();
        while let Some((message, behind)) = split(rest, MAX_ANSWER_BYTES).unwrap() {
            let answer = Answer::read(message).unwrap();
            if !matches!(answer, Answer::Progress { .. }) {
                answers.push(answer);
            }
            rest = behind;
        }
        answers
    }

    /// The verdicts after a packet of an inspection: number of the inspection, progress,
    /// application.
    fn tap(&mut self, number: u64, datagram: &[u8], is_last: bool) -> Vec<(u64, Progress, u32)> {
        verdicts(self.take(&Order::Tap {
            id: InspectionId { spot: 5, number },
            is_reversed: false,
            is_last,
            time_ns: 0,
            datagram,
        }))
    }

    fn settle(&mut self) -> Vec<(u64, Progress, u32)> {
        let mut answers = self.take(&Order::Settle { number: 3 });
        assert_eq!(answers.pop(), Some(Answer::Settled { number: 3 }));
        verdicts(answers)
    }
}

/// The verdicts in some answers; a dropped inspection has application 9999.
fn verdicts(answers: Vec<Answer>) -> Vec<(u64, Progress, u32)> {
    let verdicts = answers.into_iter().map(|answer| match answer {
        Answer::Verdict {
            id,
            progress,
            facts,
        } => (id.number, progress, facts.application),
        Answer::Dropped { id } => (id.number, Progress::Complete, 9999),
        other => panic!("{other:?}"),
    });
    verdicts.collect()
}

fn limits() -> WorkerLimits {
    WorkerLimits {
        max_flows: 4,
        memory_bytes: 1_000_000,
        resume_below: 1,
    }
}

#[test]
fn a_flow_is_told_when_it_is_known_when_that_changes_and_when_it_is_complete() {
    let mut bench = Bench::new(limits());
    assert_eq!(bench.tap(1, b"u", false), []);
    assert_eq!(bench.tap(1, b"k\x07", false), [(1, Progress::Known, 7)]);
    assert_eq!(bench.tap(1, b"k\x07", false), []);
    assert_eq!(bench.tap(1, b"k\x08", false), [(1, Progress::Known, 8)]);
    assert_eq!(bench.tap(1, b"c\x08", false), [(1, Progress::Complete, 8)]);
    // A packet that was on its way then is not inspected.
    assert_eq!(bench.tap(1, b"k9", false), []);
    assert_eq!((bench.worker.inspected, bench.worker.late), (5, 1));
}

#[test]
fn the_last_packet_ends_in_a_guess_or_in_what_is_known() {
    let mut bench = Bench::new(limits());
    assert_eq!(bench.tap(1, b"u", true), [(1, Progress::Complete, 1001)]);
    bench.tap(2, b"k\x05", false);
    assert_eq!(bench.tap(2, b"k\x05", true), [(2, Progress::Complete, 5)]);
}

#[test]
fn undecided_flows_are_guessed_when_that_is_asked_for() {
    let mut bench = Bench::new(limits());
    bench.tap(1, b"u", false);
    bench.tap(2, b"k\x05", false);
    assert_eq!(bench.settle(), [(1, Progress::Undecided, 1001)]);
    // There is nothing new to report.
    assert_eq!(bench.settle(), []);
    bench.tap(1, b"u", false);
    assert_eq!(bench.settle(), [(1, Progress::Undecided, 1002)]);
    let close = Order::Close {
        id: InspectionId { spot: 5, number: 1 },
    };
    assert_eq!(
        verdicts(bench.take(&close)),
        [(1, Progress::Complete, 1002)]
    );
    assert_eq!(bench.settle(), []);
}

#[test]
fn the_oldest_leave_where_there_are_too_many() {
    let mut bench = Bench::new(limits());
    for number in 1..=4 {
        assert_eq!(bench.tap(number, b"u", false), []);
    }
    let left = [(1, Progress::Complete, 9999), (1, Progress::Complete, 1001)];
    assert_eq!(bench.tap(5, b"u", false), left);
    assert_eq!(bench.tap(1, b"u", false), []);
    assert_eq!(bench.worker.late, 1);
}

#[test]
fn the_oldest_leave_before_memory_is_full() {
    let mut bench = Bench::new(WorkerLimits {
        max_flows: 10_000,
        ..limits()
    });
    bench.worker.inspector.flow_heap_bytes = 10_000;
    let mut left = 0;
    for number in 1..=2 * TAPS_BETWEEN_LOOKS {
        left += bench.tap(number, b"u", false).len() / 2;
    }
    // 60 inspections fill the memory, and the heap is checked at every 256th packet.
    let open = bench.worker.inspector.open;
    assert!(open <= 60, "{open}");
    assert_eq!(left as u64 + open, 2 * TAPS_BETWEEN_LOOKS);
    assert!(!bench.worker.is_spent());
    // Memory that the library does not release.
    bench.worker.inspector.lost_bytes = 700_000;
    for number in 1..=TAPS_BETWEEN_LOOKS {
        bench.tap(1000 + number, b"u", false);
    }
    assert!(bench.worker.is_spent());
}

#[test]
fn inspections_of_an_earlier_process_go_on_once() {
    let mut bench = Bench::new(WorkerLimits {
        resume_below: 10,
        ..limits()
    });
    assert_eq!(bench.tap(9, b"k\x05", false).len(), 1);
    assert_eq!(bench.tap(4, b"c\x06", false), [(4, Progress::Complete, 6)]);
    assert_eq!(bench.tap(4, b"c\x06", false), []);
    assert_eq!(
        bench.tap(10, b"c\x07", false),
        [(10, Progress::Complete, 7)]
    );
    assert_eq!(bench.worker.late, 1);
}
