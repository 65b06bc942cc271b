// SPDX-License-Identifier: Apache-2.0
//! Inspection of packets: which applications flows are. A record gets what is known of its flow
//! when it leaves.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use turboflow_inspect::{
    InspectConfig, InspectCounters, Inspection, Text, TextSink, Verdict, Verdicts,
};
use turboflow_merge::{InspectedValues, Layout, MicroflowRecord};
use turboflow_packet::{Frame, Parser};
use turboflow_record::{Input, InspectedTexts, Packet, TextCounters, Texts};

use crate::ConfigError;

/// The inspection of a run.
#[derive(Clone, Debug)]
pub struct InspectionConfig {
    /// Its limits.
    pub limits: InspectConfig,
    /// The table that its texts go to.
    pub texts: Arc<Texts>,
    /// That table, and the names of the library's numbers.
    pub names: Arc<InspectedTexts>,
    /// The inspection of an engine elsewhere, which sees the packets instead of this process.
    pub elsewhere: Arc<InspectedElsewhere>,
}

/// What an engine elsewhere found out about flows: it puts that here, and records get it when they
/// leave.
#[derive(Default)]
pub struct InspectedElsewhere {
    verdicts: OnceLock<Arc<Verdicts>>,
    counters: Mutex<InspectCounters>,
}

impl InspectedElsewhere {
    /// The engine will put there what it finds. Called once, before the run.
    pub fn begin(&self, verdicts: Arc<Verdicts>) {
        // A second one would have no records of its own.
        let _ = self.verdicts.set(verdicts);
    }

    /// The engine's counters so far.
    pub fn count(&self, counters: InspectCounters) {
        *self.counters.lock().unwrap_or_else(PoisonError::into_inner) = counters;
    }
}

impl std::fmt::Debug for InspectedElsewhere {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let is_begun = self.verdicts.get().is_some();
        f.debug_struct("InspectedElsewhere")
            .field("is_begun", &is_begun)
            .finish_non_exhaustive()
    }
}

impl InspectionConfig {
    /// What is known of flows by an engine elsewhere, if there is one that inspects.
    pub(crate) fn naming_elsewhere(&self) -> Option<Naming> {
        let verdicts = self.elsewhere.verdicts.get()?;
        Some(Naming {
            verdicts: Arc::clone(verdicts),
            knows_vlans: true,
        })
    }

    /// What an engine elsewhere has counted, if there is one that inspects.
    pub(crate) fn counters_elsewhere(&self) -> Option<InspectingCounters> {
        self.elsewhere.verdicts.get()?;
        let counters = &self.elsewhere.counters;
        Some(InspectingCounters {
            inspected: *counters.lock().unwrap_or_else(PoisonError::into_inner),
            texts: self.texts.counters(),
        })
    }
}

struct RunTexts(Arc<Texts>);

impl TextSink for RunTexts {
    fn intern(&self, text: &[u8]) -> u64 {
        self.0.intern_bytes(text)
    }
}

/// Inspects the packets of one reader.
pub(crate) struct Inspecting {
    inspection: Inspection<RunTexts>,
    texts: Arc<Texts>,
    is_lossless: bool,
}

impl Inspecting {
    pub(crate) fn start(config: &InspectionConfig) -> Result<Self, ConfigError> {
        let texts = RunTexts(Arc::clone(&config.texts));
        Ok(Self {
            is_lossless: config.limits.is_lossless,
            texts: Arc::clone(&config.texts),
            inspection: Inspection::start(config.limits.clone(), texts)?,
        })
    }

    /// For the threads that write records.
    pub(crate) fn naming(&self) -> Naming {
        Naming {
            verdicts: self.inspection.verdicts(),
            knows_vlans: false,
        }
    }

    /// Takes a packet, which was read from this frame.
    #[inline]
    pub(crate) fn offer(&mut self, packet: &Packet, frame: &Frame<'_>, parser: &Parser) {
        self.inspection.offer(packet, || parser.ip_datagram(frame));
    }

    /// Sends and receives what is due. Never waits.
    pub(crate) fn poll(&mut self, now_ns: u64) {
        self.inspection.poll(now_ns);
    }

    /// Records may leave next. Waits for what is known of them, if packets can wait.
    pub(crate) fn settle(&mut self, now_ns: u64) {
        match self.is_lossless {
            true => self.inspection.wait_until_caught_up(now_ns),
            false => self.inspection.settle(now_ns),
        }
    }

    /// No packet follows.
    pub(crate) fn finish(&mut self, now_ns: u64) {
        self.inspection.finish(now_ns);
    }

    pub(crate) fn counters(&self) -> InspectingCounters {
        InspectingCounters {
            inspected: self.inspection.counters(),
            texts: self.texts.counters(),
        }
    }
}

/// Counters of inspections.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct InspectingCounters {
    pub(crate) inspected: InspectCounters,
    /// Of the one table of the run.
    pub(crate) texts: TextCounters,
}

impl InspectingCounters {
    /// Adds the counters of another reader.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.inspected += &other.inspected;
        self.texts.cut = self.texts.cut.max(other.texts.cut);
        self.texts.missed = self.texts.missed.max(other.texts.missed);
    }
}

/// What is known of flows, for one thread that writes their records.
#[derive(Clone)]
pub(crate) struct Naming {
    verdicts: Arc<Verdicts>,
    /// Whether a flow was inspected in its VLAN, if records have that in their key.
    knows_vlans: bool,
}

impl Naming {
    /// Writes into records what is known of their flows. Returns for how many that is anything.
    pub(crate) fn annotate<const K: usize, const N: usize>(
        &self,
        layout: &Layout,
        records: &mut [MicroflowRecord<K, N>],
    ) -> u64 {
        let mut known = 0;
        let mut verdicts = self.verdicts.lock();
        for record in records {
            let tuple = match self.knows_vlans {
                true => layout.five_tuple_in_vlan(&record.key),
                false => layout.five_tuple(&record.key),
            };
            let verdict = tuple.and_then(|tuple| verdicts.get(&tuple, record.base.last_ns));
            if let Some(verdict) = verdict {
                layout
                    .annotation()
                    .write(&mut record.state, &values_of(verdict));
                known += 1;
            }
        }
        known
    }
}

fn values_of(verdict: &Verdict) -> InspectedValues {
    Input::INSPECTED.map(|input| match input {
        Input::Application => Some(verdict.application.into()),
        Input::ApplicationCategory => Some(verdict.category.into()),
        Input::ApplicationConfidence => Some(verdict.confidence as u64),
        Input::Risk => Some(verdict.risk),
        Input::ServerName => verdict.text(Text::ServerName),
        Input::Ja3 => verdict.text(Text::Ja3),
        Input::Ja4 => verdict.text(Text::Ja4),
        Input::DnsQueryName => verdict.text(Text::DnsQueryName),
        Input::HttpHost => verdict.text(Text::HttpHost),
        _ => None,
    })
}
