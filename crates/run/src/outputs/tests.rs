// SPDX-License-Identifier: Apache-2.0

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use turboflow_formats::{ExportError, FlowWriter, Passed, WriteSummary};
use turboflow_record::{Column, ColumnKind, FlowBatch, Schema, Value};

use super::thread::QUEUE_RECORDS;
use super::writing::MAX_WRITE_ROWS;
use super::*;

/// Number of records that a writer has received.
type ReceivedCount = Arc<AtomicU64>;

/// Counts records. Before each batch it waits for a message on `gate`, until the sender is dropped.
struct Gated {
    gate: Option<Receiver<()>>,
    seen: ReceivedCount,
}

impl FlowWriter for Gated {
    fn write(&mut self, batch: &FlowBatch) -> Result<(), ExportError> {
        if let Some(gate) = &self.gate {
            let _ = gate.recv();
        }
        self.seen.fetch_add(batch.rows() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), ExportError> {
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<WriteSummary, ExportError> {
        Ok(WriteSummary {
            records: self.seen.load(Ordering::Relaxed),
            bytes: 0,
        })
    }
}

fn output(name: &str, gate: Option<Receiver<()>>) -> Output {
    Output {
        name: name.to_owned(),
        writer: Box::new(Gated {
            gate,
            seen: ReceivedCount::default(),
        }),
        may_stall: true,
    }
}

fn schema() -> Schema {
    vec![Column {
        name: "packets".to_owned(),
        kind: ColumnKind::Unsigned { bits: 64 },
        nullable: false,
    }]
}

/// Records of a full batch.
const FULL: usize = 8_192;

/// Delivers batches of one record each.
fn deliver(outputs: &Outputs, batches: usize) {
    deliver_batches(outputs, batches, 1);
}

fn deliver_batches(outputs: &Outputs, batches: usize, records: usize) {
    let schema = schema();
    let mut deliver = outputs.deliver(&schema);
    for _ in 0..batches {
        let mut batch = FlowBatch::new(&schema);
        (0..records).for_each(|_| batch.push_row(&[Value::Unsigned(7)]));
        deliver(&mut batch);
    }
}

#[test]
fn a_stuck_output_loses_its_own_records_and_no_others() {
    let (open, gate) = channel();
    let batches = (QUEUE_RECORDS / FULL) as u64 + 100;
    let records = batches * FULL as u64;
    let seen = ReceivedCount::default();
    let mut well = output("well", None);
    well.writer = Box::new(Gated {
        gate: None,
        seen: Arc::clone(&seen),
    });
    let outputs = Outputs::start(vec![output("stuck", Some(gate)), well], true).unwrap();
    for delivered in 1..=batches {
        deliver_batches(&outputs, 1, FULL);
        while seen.load(Ordering::Relaxed) < delivered * FULL as u64 {
            std::thread::yield_now();
        }
    }
    drop(open);
    let reports = outputs.finish();
    let [stuck, well] = &reports[..] else {
        panic!("{reports:?}");
    };
    assert!(stuck.records_overrun >= 99 * FULL as u64, "{stuck:?}");
    assert_eq!(stuck.records_dropped, stuck.records_overrun);
    assert_eq!(stuck.records_written() + stuck.records_overrun, records);
    assert_eq!((well.records_written(), well.records_dropped), (records, 0));
}

#[test]
fn slow_outputs_lose_nothing_at_the_end_or_for_files() {
    for is_live in [true, false] {
        let (open, gate) = channel::<()>();
        let outputs = Outputs::start(vec![output("slow", Some(gate))], is_live).unwrap();
        outputs.wait_for_all(None);
        let opens = std::thread::spawn(move || while open.send(()).is_ok() {});
        deliver(&outputs, 400);
        let reports = outputs.finish();
        assert_eq!(reports[0].records_written(), 400);
        assert_eq!(reports[0].records_dropped, 0);
        opens.join().unwrap();
    }
}

#[test]
fn shutdown_abandons_a_stalled_output() {
    // One output never takes a batch. The other waits for a message before each batch.
    let (_never, stuck) = channel::<()>();
    let (open, slow) = sync_channel::<()>(0);
    let seen = ReceivedCount::default();
    let mut well = output("well", None);
    well.writer = Box::new(Gated {
        gate: None,
        seen: Arc::clone(&seen),
    });
    let all = vec![
        output("stuck", Some(stuck)),
        output("slow", Some(slow)),
        well,
    ];
    let outputs = Outputs::start(all, true).unwrap();
    deliver(&outputs, 1);
    outputs.wait_for_all(Some(Duration::from_secs(3)));
    let opens = std::thread::spawn(move || while open.send(()).is_ok() {});
    // More than the queue holds.
    let batches = QUEUE_RECORDS / FULL + 20;
    deliver_batches(&outputs, batches, FULL);
    let records = (batches * FULL + 1) as u64;
    let reports = outputs.finish();
    let [stuck, slow, well] = &reports[..] else {
        panic!("{reports:?}");
    };
    let said = stuck.outcome.as_ref().unwrap_err().to_string();
    assert_eq!(
        said,
        "cannot write stuck: it took nothing for 3 s; no record was written"
    );
    assert_eq!(stuck.records_dropped, records);
    for other in [slow, well] {
        assert_eq!(other.records_written(), records, "{}", other.name);
        assert_eq!(other.records_dropped, 0);
    }
    opens.join().unwrap();
}

#[test]
fn outputs_change_between_two_records() {
    let (sender, changes) = channel();
    let mut outputs = Outputs::start(vec![output("a", None), output("b", None)], true).unwrap();
    deliver(&outputs, 5);
    let keep = vec!["b".to_owned()];
    let begin = vec![output("c", None)];
    let change = OutputChange::new(keep, begin).unwrap();
    sender.send(change).unwrap();
    outputs.change(&changes);
    deliver(&outputs, 2);
    let names: Vec<_> = outputs.snapshot().into_iter().map(|one| one.name).collect();
    assert_eq!(names, ["b", "c"]);
    let reports = outputs.finish();
    let written = reports
        .iter()
        .map(|one| (one.name.as_str(), one.records_written()));
    assert_eq!(written.collect::<Vec<_>>(), [("a", 5), ("b", 7), ("c", 2)]);
}

#[test]
fn progress_includes_outputs_that_have_ended() {
    let (sender, changes) = channel();
    let mut outputs = Outputs::start(vec![output("a", None), output("b", None)], true).unwrap();
    deliver(&outputs, 5);
    let progress = |outputs: &Outputs| outputs.progress(&outputs.snapshot());
    // These writers report no progress before they finish.
    assert_eq!(progress(&outputs), WriteProgress::default());
    let keep = vec!["b".to_owned()];
    let change = OutputChange::new(keep, Vec::new()).unwrap();
    sender.send(change).unwrap();
    outputs.change(&changes);
    while progress(&outputs).records_written < 5 {
        std::thread::yield_now();
    }
    deliver(&outputs, 2);
    assert_eq!(progress(&outputs).records_written, 5);
    let written = outputs
        .finish()
        .iter()
        .map(OutputReport::records_written)
        .sum::<u64>();
    assert_eq!(written, 5 + 7);
}

#[test]
fn queues_are_bounded_even_if_metering_waits() {
    let (open, gate) = channel();
    let outputs = Outputs::start(vec![output("slow", Some(gate))], true).unwrap();
    outputs.wait_for_all(None);
    let received = || outputs.snapshot()[0].records as usize;
    std::thread::scope(|scope| {
        scope.spawn(|| deliver_batches(&outputs, 2 * QUEUE_RECORDS / FULL, FULL));
        while received() < QUEUE_RECORDS {
            std::thread::yield_now();
        }
        // Checked repeatedly, because the bound must hold at any time.
        for _ in 0..1_000 {
            let received = received();
            assert!(received <= QUEUE_RECORDS + 2 * FULL, "{received}");
            std::thread::yield_now();
        }
        drop(open);
    });
    assert_eq!(
        outputs.finish()[0].records_written(),
        2 * QUEUE_RECORDS as u64
    );
}

/// Reports whether it was finished or dropped.
struct ReportsEnd(Option<Sender<&'static str>>);

impl FlowWriter for ReportsEnd {
    fn write(&mut self, _batch: &FlowBatch) -> Result<(), ExportError> {
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<WriteSummary, ExportError> {
        let tell = self.0.take().unwrap();
        tell.send("finished").unwrap();
        Ok(WriteSummary::default())
    }
}

impl Drop for ReportsEnd {
    fn drop(&mut self) {
        if let Some(tell) = self.0.take() {
            let _ = tell.send("dropped");
        }
    }
}

fn reporting_output() -> (Output, Receiver<&'static str>) {
    let (tell, hear) = channel();
    let name = "told".to_owned();
    let writer = Box::new(ReportsEnd(Some(tell)));
    let output = Output {
        name,
        writer,
        may_stall: false,
    };
    (output, hear)
}

#[test]
fn outputs_of_a_run_that_never_starts_leave_nothing_behind() {
    let (output, hear) = reporting_output();
    drop(Outputs::start(vec![output], false).unwrap());
    assert_eq!(hear.recv(), Ok("dropped"));
    // A change that is requested too late to be applied.
    let (output, hear) = reporting_output();
    drop(OutputChange::new(Vec::new(), vec![output]).unwrap());
    assert_eq!(hear.recv(), Ok("dropped"));
    // A run without flows writes a file without records.
    let (output, hear) = reporting_output();
    Outputs::start(vec![output], false).unwrap().finish();
    assert_eq!(hear.recv(), Ok("finished"));
}

/// Reports how many batches arrive in one call, and waits for a message before it takes them.
struct CountsBatches {
    batches: Sender<usize>,
    gate: Receiver<()>,
}

impl FlowWriter for CountsBatches {
    fn write(&mut self, _batch: &FlowBatch) -> Result<(), ExportError> {
        unreachable!("queued batches are written in one call")
    }

    fn write_several(&mut self, batches: &[Arc<FlowBatch>]) -> Result<(), ExportError> {
        if !batches.is_empty() {
            self.batches.send(batches.len()).unwrap();
            self.gate.recv().unwrap();
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<WriteSummary, ExportError> {
        Ok(WriteSummary::default())
    }
}

#[test]
fn queued_batches_are_written_together_up_to_a_bound() {
    let (batches, hear) = channel();
    let (open, gate) = channel();
    let output = Output {
        name: "together".to_owned(),
        writer: Box::new(CountsBatches { batches, gate }),
        may_stall: false,
    };
    let outputs = Outputs::start(vec![output], false).unwrap();
    deliver(&outputs, 1);
    assert_eq!(hear.recv(), Ok(1));
    // While that batch is written, three more batches queue up than one call may take.
    let bound = MAX_WRITE_ROWS / FULL;
    deliver_batches(&outputs, bound + 3, FULL);
    (0..3).for_each(|_| open.send(()).unwrap());
    assert_eq!([hear.recv(), hear.recv()], [Ok(bound), Ok(3)]);
    outputs.finish();
}

/// Notes how far the run has progressed, and how many records had been written by then.
struct Noting {
    records: u64,
    noted: Arc<Mutex<Vec<(u64, u64)>>>,
}

impl FlowWriter for Noting {
    fn write(&mut self, batch: &FlowBatch) -> Result<(), ExportError> {
        assert!(
            batch.rows() > 0,
            "a batch without records is for the watermark alone"
        );
        self.records += batch.rows() as u64;
        Ok(())
    }

    fn pass(&mut self, passed: Passed) -> Result<(), ExportError> {
        let mut noted = self.noted.lock().unwrap();
        noted.push((passed.watermark_ns, self.records));
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<WriteSummary, ExportError> {
        Ok(WriteSummary {
            records: self.records,
            bytes: 0,
        })
    }
}

#[test]
fn the_watermark_of_all_shards_passes_an_output_behind_their_records() {
    for is_live in [true, false] {
        let noted = Arc::default();
        let writer = Noting {
            records: 0,
            noted: Arc::clone(&noted),
        };
        let noting = Output {
            name: "noting".to_owned(),
            writer: Box::new(writer),
            may_stall: false,
        };
        let outputs = Outputs::start(vec![noting], is_live).unwrap();
        let schema = schema();
        let mut shards = [outputs.deliver(&schema), outputs.deliver(&schema)];
        for (shard, records, watermark_ns) in [(0, 3, 10), (1, 0, 20), (1, 2, 30), (0, 0, 40)] {
            let mut batch = FlowBatch::new(&schema);
            (0..records).for_each(|_| batch.push_row(&[Value::Unsigned(7)]));
            batch.set_watermark(watermark_ns);
            shards[shard](&mut batch);
        }
        // This also happens while no records arrive.
        let has = |meant| noted.lock().unwrap().contains(&meant);
        while !has((30, 5)) {
            std::thread::yield_now();
        }
        let is_ahead = |&(watermark_ns, records): &(u64, u64)| {
            watermark_ns > 10 && records < 5 || watermark_ns > 0 && records < 3
        };
        assert!(!noted.lock().unwrap().iter().any(is_ahead));
        assert_eq!(outputs.finish()[0].records_written(), 5);
    }
}
