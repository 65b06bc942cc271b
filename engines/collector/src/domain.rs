// SPDX-License-Identifier: Apache-2.0
//! State of one observation domain of one exporter: templates, sequence, start, sampling.

use std::collections::HashMap;
use std::sync::Arc;

use crate::exporter_numbers::{Numbers, RecordNumbers, Repeats};
use crate::flow::Flow;
use crate::sflow::Sources;
use crate::template::{FIRST_ID, Template};
use crate::times::{Boot, MessageClock};

/// Maximum number of octets of a domain's sets that wait for their template. A router sends some
/// hundred datagrams before it repeats its templates.
pub(crate) const MOST_WAITING_BYTES: usize = 1 << 16;
/// Maximum number of samplers of a domain.
const MOST_SAMPLERS: usize = 64;

/// A set of records whose template has not arrived yet.
#[derive(Debug)]
pub(crate) struct WaitingSet {
    pub(crate) id: u16,
    pub(crate) clock: MessageClock,
    pub(crate) octets: Box<[u8]>,
}

/// The state of a domain.
#[derive(Debug, Default)]
pub(crate) struct Domain {
    templates: HashMap<u16, Arc<Template>>,
    /// Number of fields in all templates.
    fields: usize,
    /// Sequence numbers of NetFlow.
    pub(crate) numbers: Numbers,
    /// Sequence numbers of IPFIX.
    pub(crate) record_numbers: RecordNumbers,
    pub(crate) repeats: Repeats,
    /// Sequence numbers of sFlow.
    pub(crate) sources: Sources,
    pub(crate) boot: Boot,
    waiting: Vec<WaitingSet>,
    waiting_bytes: usize,
    /// Whether the last message had a set without a template.
    pub(crate) had_unread: bool,
    /// When the exporter started, in milliseconds since 1970, if its options say so.
    boot_ms: Option<u64>,
    /// Sampling by sampler: one packet out of this many. `None` stands for the whole domain.
    samplers: Vec<(Option<u64>, u32)>,
    /// Number of the last message from this domain, in the collector's count of messages.
    pub(crate) heard: u64,
}

impl Domain {
    pub(crate) fn template(&self, id: u16) -> Option<Arc<Template>> {
        self.templates.get(&id).cloned()
    }

    /// Number of fields in all templates, and of octets that wait for templates.
    pub(crate) const fn size(&self) -> (usize, usize) {
        (self.fields, self.waiting_bytes)
    }

    pub(crate) fn waiting_sets(&self) -> u64 {
        self.waiting.len() as u64
    }

    /// Keeps a template. It replaces one with the same id.
    pub(crate) fn learn(&mut self, id: u16, template: Template) {
        self.fields += template.fields();
        let before = self.templates.insert(id, Arc::new(template));
        self.fields -= before.map_or(0, |before| before.fields());
    }

    /// Forgets a template; or, if `id` is that of template sets, all of their kind (RFC 7011,
    /// section 8.1).
    pub(crate) fn withdraw(&mut self, id: u16, is_options: bool) {
        if id >= FIRST_ID {
            self.fields -= self.templates.remove(&id).map_or(0, |its| its.fields());
            return;
        }
        self.templates
            .retain(|_, template| template.is_options != is_options);
        let rest = self.templates.values().map(|template| template.fields());
        self.fields = rest.sum();
    }

    /// Keeps a set until its template arrives. False if there is no room.
    pub(crate) fn wait(&mut self, set: WaitingSet) -> bool {
        if self.waiting_bytes + set.octets.len() > MOST_WAITING_BYTES {
            return false;
        }
        self.waiting_bytes += set.octets.len();
        self.waiting.push(set);
        true
    }

    /// Takes the sets that waited for a template.
    pub(crate) fn waited_for(&mut self, id: u16) -> Vec<WaitingSet> {
        if self.waiting.is_empty() {
            return Vec::new();
        }
        let all = std::mem::take(&mut self.waiting);
        let (found, rest): (Vec<_>, Vec<_>) = all.into_iter().partition(|set| set.id == id);
        self.waiting = rest;
        self.waiting_bytes = self.waiting.iter().map(|set| set.octets.len()).sum();
        found
    }

    /// Learns from a record of options: how packets are sampled, and when the exporter started.
    pub(crate) fn learn_options(&mut self, options: &Flow) {
        if let Some(boot_ms) = options.boot_ms {
            self.boot_ms = Some(boot_ms);
        }
        let Some(one_of) = options.sampling.one_of() else {
            return;
        };
        let sampler = options.sampling.sampler;
        let place = self.samplers.iter().position(|known| known.0 == sampler);
        match place {
            Some(place) => self.samplers[place].1 = one_of,
            None if self.samplers.len() < MOST_SAMPLERS => self.samplers.push((sampler, one_of)),
            None => {}
        }
    }

    /// The sampling of a record, as one packet out of the returned number: according to the record
    /// itself, its sampler, the only sampler of the domain, or `header`; 1 if none of these says.
    #[inline(always)]
    pub(crate) fn sampling(&self, flow: &Flow, header: u32) -> u32 {
        if let Some(one_of) = flow.sampling.one_of() {
            return one_of;
        }
        if self.samplers.is_empty() {
            return header.max(1);
        }
        let sampler = flow.sampling.sampler;
        let known = self.samplers.iter().find(|known| known.0 == sampler);
        match (known, &self.samplers[..]) {
            (Some((_, one_of)), _) => *one_of,
            (None, [(_, one_of)]) if sampler.is_none() => *one_of,
            _ => header.max(1),
        }
    }

    /// The time of day at uptime 0, if the exporter's options contain it.
    pub(crate) fn told_boot_ns(&self) -> Option<u64> {
        Some(self.boot_ms?.saturating_mul(1_000_000))
    }
}
