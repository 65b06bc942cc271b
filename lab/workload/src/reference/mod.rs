// SPDX-License-Identifier: Apache-2.0
//! The oracle: a per-packet flow meter that keeps every packet of every open flow. It follows
//! `docs/decisions/0001-cells.md` packet by packet, and computes each feature from the list of
//! packets when the flow is exported.
//!
//! It shares the vocabulary of `turboflow-record`, but none of its layouts, plans or merge code. So
//! agreement with the product is independent evidence. It is slow and uses much memory on purpose.
//!
//! ```
//! use turboflow_record::{Definition, InputValues};
//! use turboflow_workload::reference::{MeterOptions, meter};
//! use turboflow_workload::sequences::{SequenceShape, random_packets};
//!
//! let packets = random_packets(7, &SequenceShape::default());
//! let metered = meter(&Definition::default(), &MeterOptions::default(), packets);
//! assert!(!metered.records.is_empty());
//! ```

mod features;
mod flow;
mod key;
mod records;

use std::collections::BTreeMap;

use turboflow_record::{Definition, EndReason, FlowBatch, InputValues, Packet, Schema};

use flow::{Clock, OpenFlow};
use key::FlowKey;
pub use records::{OwnedValue, Record, Records, assert_same_records};

/// The meter's options that are not part of a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeterOptions {
    /// Longest silence within a record, in ns. Default 30 s; `None` disables it.
    pub idle_timeout_ns: Option<u64>,
    /// Longest record, in ns. Default 120 s; `None` disables it.
    pub active_timeout_ns: Option<u64>,
    /// How long an ended flow waits for late packets, in ns. Default 2 s. With `None`, FIN and RST
    /// do not end a flow; with `Some(0)`, they close the record at once.
    pub linger_ns: Option<u64>,
    /// Length of windows counted from 1970, in ns: no record has packets from two windows. Default
    /// `None`.
    pub align_ns: Option<u64>,
    /// Bound on the age of a packet at the aggregator, in ns. Default 1 s.
    pub max_age_ns: u64,
    /// Joins the two directions (RFC 5103). Default off.
    pub biflow: bool,
}

impl Default for MeterOptions {
    fn default() -> Self {
        const SECOND_NS: u64 = 1_000_000_000;
        Self {
            idle_timeout_ns: Some(30 * SECOND_NS),
            active_timeout_ns: Some(120 * SECOND_NS),
            linger_ns: Some(2 * SECOND_NS),
            align_ns: None,
            max_age_ns: SECOND_NS,
            biflow: false,
        }
    }
}

impl MeterOptions {
    /// Options with every timeout disabled: one record per key, until the input ends.
    #[must_use]
    pub fn without_timeouts() -> Self {
        Self {
            idle_timeout_ns: None,
            active_timeout_ns: None,
            linger_ns: None,
            ..Self::default()
        }
    }

    /// Length of a cell, in ns: the smallest timeout that is enabled and not 0. With windows, it is
    /// the longest divisor of the window's length up to that timeout.
    ///
    /// # Panics
    /// If `max_age_ns` is 0 and no other timeout is set.
    #[must_use]
    pub fn cell_ns(&self) -> u64 {
        let longest = [
            Some(self.max_age_ns),
            self.idle_timeout_ns,
            self.active_timeout_ns,
            self.linger_ns,
        ]
        .into_iter()
        .flatten()
        .filter(|&ns| ns != 0)
        .min()
        .expect("max_age is not 0");
        match self.align_ns {
            None => longest,
            Some(align_ns) => (1..=longest.min(align_ns))
                .rev()
                .find(|cell_ns| align_ns % cell_ns == 0)
                .expect("1 divides every window"),
        }
    }
}

/// The oracle's answer for a sequence of packets.
#[derive(Clone, Debug, PartialEq)]
pub struct Metered {
    /// The flow records.
    pub records: Records,
    /// Number of times the clock was set back.
    pub clock_steps: u64,
    /// Records by end reason, in the order of [`EndReason::ALL`].
    pub records_by_reason: [u64; EndReason::ALL.len()],
}

/// Meters a whole sequence of packets, given in order of arrival.
#[must_use]
pub fn meter(
    definition: &Definition,
    options: &MeterOptions,
    packets: impl IntoIterator<Item = (Packet, InputValues)>,
) -> Metered {
    let mut meter = Meter::new(definition, options);
    for (packet, values) in packets {
        meter.observe(packet, values);
    }
    meter.finish()
}

/// Compares an engine's flow records, merged into one per key, with the oracle's records for its
/// packets without timeouts. Returns a readable difference, or `None` if they agree.
#[must_use]
pub fn difference_of_flows(
    definition: &Definition,
    biflow: bool,
    packets: &[(Packet, InputValues)],
    schema: &Schema,
    flows: &FlowBatch,
) -> Option<String> {
    let options = MeterOptions {
        biflow,
        ..MeterOptions::without_timeouts()
    };
    let expected = meter(definition, &options, packets.iter().cloned()).records;
    expected.difference(&Records::from_batch(schema, flows))
}

/// The oracle, fed one packet at a time.
#[derive(Debug)]
pub struct Meter {
    definition: Definition,
    options: MeterOptions,
    cell_ns: u64,
    /// The largest timestamp since the start or the last step of the clock.
    now_ns: Option<u64>,
    open: BTreeMap<FlowKey, OpenFlow>,
    exported: Vec<Record>,
    clock_steps: u64,
    records_by_reason: [u64; EndReason::ALL.len()],
}

impl Meter {
    /// A meter without packets.
    ///
    /// # Panics
    /// If the idle or active timeout is 0. Only the linger may be 0.
    #[must_use]
    pub fn new(definition: &Definition, options: &MeterOptions) -> Self {
        assert_ne!(
            options.idle_timeout_ns,
            Some(0),
            "the idle timeout is positive"
        );
        assert_ne!(
            options.active_timeout_ns,
            Some(0),
            "the active timeout is positive"
        );
        Self {
            definition: definition.clone(),
            options: options.clone(),
            cell_ns: options.cell_ns(),
            now_ns: None,
            open: BTreeMap::new(),
            exported: Vec::new(),
            clock_steps: 0,
            records_by_reason: [0; EndReason::ALL.len()],
        }
    }

    /// Meters one packet.
    pub fn observe(&mut self, packet: Packet, values: InputValues) {
        self.follow_clock(packet.timestamp_ns);
        let clock = self.clock();
        let (key, reversed) = key::of_packet(&self.definition, &packet, &values, &self.options);
        let seen = flow::SeenPacket {
            packet,
            values,
            reversed,
        };
        if let Some(flow) = self.open.get(&key)
            && let Some(reason) = flow.export_before(&seen, &clock, &self.options)
        {
            self.export(&key, reason);
        }
        let flow = self.open.entry(key.clone()).or_default();
        flow.push(seen);
        if self.options.linger_ns == Some(0) && flow.has_ended(&self.options) {
            self.export(&key, EndReason::EndOfFlow);
        }
    }

    /// Ends the input: every open flow is exported.
    #[must_use]
    pub fn finish(mut self) -> Metered {
        self.export_everything();
        Metered {
            records: Records::new(self.exported),
            clock_steps: self.clock_steps,
            records_by_reason: self.records_by_reason,
        }
    }

    /// Rule 4 of the decision, and the largest timestamp so far.
    fn follow_clock(&mut self, timestamp_ns: u64) {
        if let (Some(now_ns), Some(idle_ns)) = (self.now_ns, self.options.idle_timeout_ns)
            && now_ns.saturating_sub(timestamp_ns) > idle_ns
        {
            self.export_everything();
            self.clock_steps += 1;
            self.now_ns = None;
        }
        self.now_ns = Some(
            self.now_ns
                .map_or(timestamp_ns, |now_ns| now_ns.max(timestamp_ns)),
        );
    }

    fn clock(&self) -> Clock {
        let cell_ns = self.cell_ns;
        let start_ns = self.now_ns.unwrap_or(0) / cell_ns * cell_ns;
        Clock {
            start_ns: start_ns.into(),
            end_ns: u128::from(start_ns) + u128::from(cell_ns),
        }
    }

    /// Rule 3 of the decision: due flows get their own end reason, all others a forced end.
    fn export_everything(&mut self) {
        let clock = self.clock();
        let keys: Vec<FlowKey> = self.open.keys().cloned().collect();
        for key in keys {
            let due = self.open[&key].due(&clock, &self.options);
            self.export(&key, due.unwrap_or(EndReason::ForcedEnd));
        }
    }

    fn export(&mut self, key: &FlowKey, reason: EndReason) {
        let flow = self.open.remove(key).expect("the flow is open");
        self.records_by_reason[reason as usize - 1] += 1;
        self.exported.push(features::record(
            &self.definition,
            &self.options,
            key,
            &flow,
            reason,
        ));
    }
}

#[cfg(test)]
mod tests;
