// SPDX-License-Identifier: Apache-2.0
//! Inspection of packets, to find the applications of flows. When a record leaves, what is known of
//! its flow is written into it.

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
    /// The limits of the inspection.
    pub limits: InspectConfig,
    /// The table for the texts that inspection finds.
    pub texts: Arc<Texts>,
    /// The table `texts`, together with the names for the library's numbers.
    pub names: Arc<InspectedTexts>,
    /// The inspection by a remote engine, which sees the packets instead of this process.
    pub elsewhere: Arc<InspectedElsewhere>,
}

/// What a remote engine finds out about flows. The engine stores it here, and records get it when
/// they leave.
#[derive(Default)]
pub struct InspectedElsewhere {
    verdicts: OnceLock<Arc<Verdicts>>,
    counters: Mutex<InspectCounters>,
}

impl InspectedElsewhere {
    /// Sets where the engine stores its results. Called once, before the run.
    pub fn begin(&self, verdicts: Arc<Verdicts>) {
        // A second call is ignored: no records could get its results.
        let _ = self.verdicts.set(verdicts);
    }

    /// Sets the engine's counters so far.
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
    /// What a remote engine knows about flows, if there is one that inspects.
    pub(crate) fn naming_elsewhere(&self) -> Option<Naming> {
        let verdicts = self.elsewhere.verdicts.get()?;
        Some(Naming {
            verdicts: Arc::clone(verdicts),
            knows_vlans: true,
        })
    }

    /// The counters of a remote engine's inspection, if there is one.
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

    /// Access to the results, for the threads that write records.
    pub(crate) fn naming(&self) -> Naming {
        Naming {
            verdicts: self.inspection.verdicts(),
            knows_vlans: false,
        }
    }

    /// Offers a packet, which was parsed from this frame, for inspection.
    #[inline]
    pub(crate) fn offer(&mut self, packet: &Packet, frame: &Frame<'_>, parser: &Parser) {
        self.inspection.offer(packet, || parser.ip_datagram(frame));
    }

    /// Sends and receives whatever is pending. Never waits.
    pub(crate) fn poll(&mut self, now_ns: u64) {
        self.inspection.poll(now_ns);
    }

    /// Called before records may leave. Waits until inspection has caught up, if packets can wait.
    pub(crate) fn settle(&mut self, now_ns: u64) {
        match self.is_lossless {
            true => self.inspection.wait_until_caught_up(now_ns),
            false => self.inspection.settle(now_ns),
        }
    }

    /// Called after the last packet.
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
    /// Counters of the table of texts, which all readers share.
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

/// What is known about flows, for a thread that writes their records.
#[derive(Clone)]
pub(crate) struct Naming {
    verdicts: Arc<Verdicts>,
    /// Whether flows were inspected separately by VLAN, if records have the VLAN in their key.
    knows_vlans: bool,
}

impl Naming {
    /// Writes into records what is known of their flows. Returns for how many records anything is
    /// known.
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
