// SPDX-License-Identifier: Apache-2.0
//! A check of `docs/decisions/0001-cells.md`: an engine and an aggregator that follow it literally
//! produce the oracle's records, even if the engine's table is tiny or evicts at random.
//!
//! Both are small models over lists. Records and merges are those of `turboflow-record`.

use turboflow_merge::{KeyWidths, Layout, Marks, MicroflowRecord};
use turboflow_record::{
    Definition, EndReason, Family, FlowBatch, InputValues, Packet, TCP_ACK, TCP_SYN,
};
use turboflow_workload::definitions::random_definition;
use turboflow_workload::reference::{MeterOptions, Records, meter};
use turboflow_workload::sequences::{SequenceShape, random_packets};

const NEVER: u128 = u128::MAX / 4;

/// Engine and aggregator for records of one format.
struct Lane<'a, const K: usize, const N: usize> {
    layout: &'a Layout,
    options: &'a MeterOptions,
    slots: usize,
    resident: Vec<MicroflowRecord<K, N>>,
    open: Vec<MicroflowRecord<K, N>>,
    exported: Vec<MicroflowRecord<K, N>>,
    /// W and E of the aggregator.
    watermark_ns: u128,
    cell_end_ns: u128,
    evictions: u64,
}

fn or_never(timeout_ns: Option<u64>) -> u128 {
    timeout_ns.map_or(NEVER, u128::from)
}

impl<'a, const K: usize, const N: usize> Lane<'a, K, N> {
    fn new(layout: &'a Layout, options: &'a MeterOptions, slots: usize) -> Self {
        Self {
            layout,
            options,
            slots,
            resident: Vec::new(),
            open: Vec::new(),
            exported: Vec::new(),
            watermark_ns: 0,
            cell_end_ns: 0,
            evictions: 0,
        }
    }

    fn observe(&mut self, packet: &Packet, values: &InputValues) {
        let record: MicroflowRecord<K, N> = self.layout.open(packet, values);
        let syn = packet.tcp_flags & (TCP_SYN | TCP_ACK) == TCP_SYN;
        if let Some(index) = self
            .resident
            .iter()
            .position(|other| other.key == record.key)
        {
            let resident = &mut self.resident[index];
            let time_ns = packet.timestamp_ns;
            let in_cell = self.watermark_ns <= u128::from(resident.base.first_ns);
            let in_order = resident.base.first_ns <= time_ns;
            let ended = self.options.linger_ns == Some(0) && resident.base.marks.any(Marks::ENDS);
            if in_cell && in_order && !syn && !ended {
                resident.base.merge(&record.base);
                self.layout.plan().merge(&mut resident.state, &record.state);
                return;
            }
            self.evict(index);
        }
        self.resident.push(record);
        if self.resident.len() > self.slots {
            self.evictions += 1;
            self.evict((self.evictions * 7 % self.slots as u64) as usize);
        }
    }

    fn evict(&mut self, index: usize) {
        let record = self.resident.remove(index);
        self.merge(record);
    }

    fn evict_all(&mut self) {
        while !self.resident.is_empty() {
            self.evict(0);
        }
    }

    fn advance(&mut self, watermark_ns: u128, cell_end_ns: u128) {
        (self.watermark_ns, self.cell_end_ns) = (watermark_ns, cell_end_ns);
        // Every third sweep is eager, the others are lazy.
        if self.evictions.is_multiple_of(3) {
            let due: Vec<_> = self.open.iter().map(|flow| self.due(flow)).collect();
            for index in (0..due.len()).rev() {
                if let Some(reason) = due[index] {
                    self.export(index, reason);
                }
            }
        }
    }

    fn ended(&self, flow: &MicroflowRecord<K, N>) -> bool {
        self.options.linger_ns.is_some() && flow.base.marks.ended(self.layout.ending_fins())
    }

    /// The silence that closes a flow, and the end reason for it.
    fn limit(&self, flow: &MicroflowRecord<K, N>) -> (u128, EndReason) {
        if self.ended(flow) {
            // No record holds a silence longer than the idle timeout, even after its end.
            let limit_ns =
                or_never(self.options.linger_ns).min(or_never(self.options.idle_timeout_ns));
            (limit_ns, EndReason::EndOfFlow)
        } else {
            (
                or_never(self.options.idle_timeout_ns),
                EndReason::IdleTimeout,
            )
        }
    }

    /// Rule 1.
    fn due(&self, flow: &MicroflowRecord<K, N>) -> Option<EndReason> {
        let (limit_ns, reason) = self.limit(flow);
        let silent_ns = u128::from(flow.base.last_ns) + limit_ns;
        let first_ns = u128::from(flow.base.first_ns);
        let window_ns = match self.options.align_ns.map(u128::from) {
            Some(align_ns) => (first_ns / align_ns + 1) * align_ns - 1,
            None => or_never(None),
        };
        let active_ns = or_never(self.options.active_timeout_ns);
        let too_long_ns = (first_ns + active_ns).min(window_ns);
        let is_due = silent_ns < self.watermark_ns || too_long_ns < self.watermark_ns;
        let silence_first = silent_ns <= too_long_ns;
        is_due.then_some(if silence_first {
            reason
        } else {
            EndReason::ActiveTimeout
        })
    }

    /// Rules 1 and 2.
    fn merge(&mut self, record: MicroflowRecord<K, N>) {
        if let Some(index) = self.open.iter().position(|other| other.key == record.key) {
            match self.why_not(&self.open[index], &record) {
                Some(reason) => self.export(index, reason),
                None => {
                    let flow = &mut self.open[index];
                    flow.base.merge(&record.base);
                    self.layout.plan().merge(&mut flow.state, &record.state);
                    let flow = *flow;
                    if self.options.linger_ns == Some(0) && self.ended(&flow) {
                        self.export(index, EndReason::EndOfFlow);
                    }
                    return;
                }
            }
        }
        self.open.push(record);
        if self.options.linger_ns == Some(0) && self.ended(&record) {
            self.export(self.open.len() - 1, EndReason::EndOfFlow);
        }
    }

    fn why_not(
        &self,
        flow: &MicroflowRecord<K, N>,
        record: &MicroflowRecord<K, N>,
    ) -> Option<EndReason> {
        if let Some(reason) = self.due(flow) {
            return Some(reason);
        }
        let opens = record.base.marks.any(Marks::STARTS_WITH_SYN)
            && record.base.first_ns >= flow.base.last_ns;
        if self.ended(flow) && opens {
            return Some(EndReason::EndOfFlow);
        }
        let (limit_ns, reason) = self.limit(flow);
        if u128::from(record.base.first_ns) > u128::from(flow.base.last_ns) + limit_ns {
            return Some(reason);
        }
        let first_ns = flow.base.first_ns.min(record.base.first_ns);
        let lasts_ns = self.cell_end_ns - u128::from(first_ns);
        let too_long = lasts_ns > or_never(self.options.active_timeout_ns);
        let other_window = self
            .options
            .align_ns
            .map(u128::from)
            .is_some_and(|align_ns| {
                u128::from(first_ns) / align_ns != self.watermark_ns / align_ns
            });
        (too_long || other_window).then_some(EndReason::ActiveTimeout)
    }

    fn export(&mut self, index: usize, reason: EndReason) {
        let mut flow = self.open.remove(index);
        flow.base.end_reason = reason as u8;
        self.exported.push(flow);
    }

    /// Rules 3 and 4.
    fn export_all(&mut self) {
        self.evict_all();
        while let Some(flow) = self.open.first() {
            let reason = self.due(flow).unwrap_or(EndReason::ForcedEnd);
            self.export(0, reason);
        }
    }
}

/// The shared clock, and the lanes.
struct Model<'a, const N: usize> {
    v4: Lane<'a, 2, N>,
    v6: Lane<'a, 5, N>,
    wide: Lane<'a, 16, N>,
    now_ns: Option<u64>,
    clock_steps: u64,
}

impl<const N: usize> Model<'_, N> {
    fn observe(&mut self, packet: &Packet, values: &InputValues) {
        let time_ns = packet.timestamp_ns;
        let options = self.v4.options;
        if let (Some(now_ns), Some(idle_ns)) = (self.now_ns, options.idle_timeout_ns)
            && now_ns.saturating_sub(time_ns) > idle_ns
        {
            self.export_all();
            self.clock_steps += 1;
            self.now_ns = None;
        }
        let cell_ns = options.cell_ns();
        let cell = |now_ns: u64| now_ns / cell_ns;
        if self
            .now_ns
            .is_none_or(|now_ns| cell(time_ns) > cell(now_ns))
        {
            let start_ns = u128::from(cell(time_ns) * cell_ns);
            self.advance(start_ns, start_ns + u128::from(cell_ns));
        }
        self.now_ns = Some(self.now_ns.map_or(time_ns, |now_ns| now_ns.max(time_ns)));
        match (self.v4.layout.key_widths(), packet.tuple.family()) {
            (KeyWidths::Wide, _) => self.wide.observe(packet, values),
            (KeyWidths::ByFamily, Family::V4) => self.v4.observe(packet, values),
            (KeyWidths::ByFamily, Family::V6) => self.v6.observe(packet, values),
        }
    }

    fn advance(&mut self, start_ns: u128, end_ns: u128) {
        self.v4.evict_all();
        self.v6.evict_all();
        self.wide.evict_all();
        self.v4.advance(start_ns, end_ns);
        self.v6.advance(start_ns, end_ns);
        self.wide.advance(start_ns, end_ns);
    }

    fn export_all(&mut self) {
        self.v4.export_all();
        self.v6.export_all();
        self.wide.export_all();
    }
}

fn run<const N: usize>(
    layout: &Layout,
    options: &MeterOptions,
    slots: usize,
    packets: &[(Packet, InputValues)],
) -> (Records, u64) {
    let mut model = Model::<N> {
        v4: Lane::new(layout, options, slots),
        v6: Lane::new(layout, options, slots),
        wide: Lane::new(layout, options, slots),
        now_ns: None,
        clock_steps: 0,
    };
    for (packet, values) in packets {
        model.observe(packet, values);
    }
    model.export_all();
    let mut batch = FlowBatch::new(layout.schema());
    match layout.key_widths() {
        KeyWidths::Wide => layout.append(&model.wide.exported, &mut batch),
        KeyWidths::ByFamily => {
            layout.append(&model.v4.exported, &mut batch);
            layout.append(&model.v6.exported, &mut batch);
        }
    }
    (
        Records::from_batch(layout.schema(), &batch),
        model.clock_steps,
    )
}

fn check(definition: &Definition, shape: &SequenceShape, seed: u64) {
    let options = &shape.options;
    let layout =
        Layout::compile(definition, options.biflow).expect("random definitions have a layout");
    let packets = random_packets(seed, shape);
    let expected = meter(definition, options, packets.iter().cloned());
    for slots in [1, 3, 100] {
        let (records, clock_steps) = match layout.state_words() {
            0 => run::<0>(&layout, options, slots, &packets),
            8 => run::<8>(&layout, options, slots, &packets),
            24 => run::<24>(&layout, options, slots, &packets),
            56 => run::<56>(&layout, options, slots, &packets),
            120 => run::<120>(&layout, options, slots, &packets),
            _ => run::<504>(&layout, options, slots, &packets),
        };
        let context = format!("seed {seed}, {slots} slots, {shape:?}, {definition:?}");
        if let Some(difference) = expected.records.difference(&records) {
            panic!("{difference}{context}");
        }
        assert_eq!(expected.clock_steps, clock_steps, "{context}");
    }
}

#[test]
fn engine_and_aggregator_by_the_decision_give_the_oracles_records() {
    for seed in 0..1_500 {
        let packets = if seed % 10 == 0 {
            400
        } else {
            1 + seed as usize % 90
        };
        let shape = SequenceShape::random(seed, packets);
        check(&random_definition(seed, shape.options.biflow), &shape, seed);
    }
}
