// SPDX-License-Identifier: Apache-2.0
//! The exporters and their domains, with limits on everything that they can make this process keep.

use std::collections::HashMap;
use std::net::SocketAddr;

use crate::counts::Counts;
use crate::domain::Domain;
use crate::header::Version;

/// Maximum number of known exporters. A new one replaces the one that was silent longest.
pub const MOST_EXPORTERS: usize = 1_024;
/// Maximum number of known observation domains of an exporter.
pub const MOST_DOMAINS: usize = 256;
/// Maximum number of fields of all templates of an exporter.
pub const MOST_TEMPLATE_FIELDS: usize = 1 << 14;
/// Maximum number of octets of all sets that wait for their templates.
pub const MOST_WAITING_BYTES: usize = 16 << 20;
/// Maximum number of known data sources of sFlow, of all exporters.
pub(crate) const MOST_SOURCES: usize = 1 << 16;

/// The sender of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sender {
    /// Its address; `None` for a file.
    pub address: Option<SocketAddr>,
    /// The connection or file; 0 for datagrams.
    pub session: u64,
}

/// Identifies a domain of an exporter.
pub(crate) type DomainId = (Version, u32);

#[derive(Debug, Default)]
pub(crate) struct Exporter {
    domains: HashMap<DomainId, Domain>,
    /// Number of fields in all templates.
    pub(crate) fields: usize,
    heard: u64,
}

/// The state for a message, with the state that all exporters or all domains share.
pub(crate) struct Known<'a> {
    pub(crate) fields: &'a mut usize,
    pub(crate) waiting_bytes: &'a mut usize,
    pub(crate) sources: &'a mut usize,
    pub(crate) domain: &'a mut Domain,
}

/// All exporters.
#[derive(Debug, Default)]
pub(crate) struct Exporters {
    known: HashMap<Sender, Exporter>,
    /// Octets that wait for their templates.
    pub(crate) waiting_bytes: usize,
    /// Number of known data sources of sFlow.
    sources: usize,
    /// Number of messages so far. Silence is measured in messages.
    now: u64,
}

impl Exporters {
    /// The exporter and the domain of a message, known or new.
    pub(crate) fn find(&mut self, sender: Sender, id: DomainId, counts: &mut Counts) -> Known<'_> {
        self.now += 1;
        if self.known.len() >= MOST_EXPORTERS && !self.known.contains_key(&sender) {
            let silent = self.known.iter().min_by_key(|(_, exporter)| exporter.heard);
            if let Some((&silent, _)) = silent {
                self.forget(silent, counts);
                counts.exporters_forgotten += 1;
            }
        }
        let now = self.now;
        let exporter = self.known.entry(sender).or_default();
        exporter.heard = now;
        if exporter.domains.len() >= MOST_DOMAINS && !exporter.domains.contains_key(&id) {
            let silent = exporter
                .domains
                .iter()
                .min_by_key(|(_, domain)| domain.heard);
            if let Some((&silent, _)) = silent
                && let Some(domain) = exporter.domains.remove(&silent)
            {
                let (fields, waiting_bytes) = domain.size();
                exporter.fields -= fields;
                self.waiting_bytes -= waiting_bytes;
                self.sources -= domain.sources.len();
                counts.sets_waiting_lost += domain.waiting_sets();
                counts.domains_forgotten += 1;
            }
        }
        let domain = exporter.domains.entry(id).or_default();
        domain.heard = now;
        Known {
            fields: &mut exporter.fields,
            waiting_bytes: &mut self.waiting_bytes,
            sources: &mut self.sources,
            domain,
        }
    }

    /// Forgets an exporter and all its state, also when its connection has ended.
    pub(crate) fn forget(&mut self, sender: Sender, counts: &mut Counts) {
        let Some(exporter) = self.known.remove(&sender) else {
            return;
        };
        for domain in exporter.domains.values() {
            self.waiting_bytes -= domain.size().1;
            self.sources -= domain.sources.len();
            counts.sets_waiting_lost += domain.waiting_sets();
        }
    }

    /// Sets that wait for their templates.
    pub(crate) fn waiting_sets(&self) -> u64 {
        let domains = self.known.values().flat_map(|its| its.domains.values());
        domains.map(Domain::waiting_sets).sum()
    }

    /// Numbers of known exporters and domains.
    pub(crate) fn sizes(&self) -> (usize, usize) {
        let domains = self.known.values().map(|exporter| exporter.domains.len());
        (self.known.len(), domains.sum())
    }
}
