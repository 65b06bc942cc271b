// SPDX-License-Identifier: Apache-2.0
//! The conditions of a rule, and of its exceptions.

use turboflow_inspect::{Confidence, Progress};
use turboflow_record::FiveTuple;

use super::facts::{Facts, Truth};
use super::sets::{Applications, Bytes, Networks, Ranges, ServerNames};

/// Protocols that have ports: TCP, UDP, DCCP, SCTP, UDP-Lite. Other protocols may have other values
/// in the port fields.
pub(super) const WITH_PORTS: [u8; 5] = [6, 17, 33, 132, 136];

/// Conditions that must all hold. An empty set means no condition.
#[derive(Clone, Debug, Default)]
pub(super) struct Conditions {
    pub(super) application: Applications,
    pub(super) category: Bytes,
    pub(super) server_name: ServerNames,
    pub(super) port: Ranges,
    pub(super) src: Networks,
    pub(super) dst: Networks,
    pub(super) protocol: Bytes,
    pub(super) risk: u64,
    /// The conditions in words, each with its values: `the application is TLS or QUIC`.
    pub(super) words: Vec<String>,
}

impl Conditions {
    /// Whether all conditions hold. Application and category count only if they were recognised
    /// with at least the confidence `floor`.
    pub(super) fn hold(&self, facts: &Facts<'_>, floor: Confidence) -> Truth {
        if !self.fit(&facts.tuple) {
            return Truth::No;
        }
        self.application(facts, floor)
            .min(self.category(facts, floor))
            .min(self.server_name(facts))
            .min(self.risk(facts))
    }

    /// Checks the conditions that the first packet answers.
    fn fit(&self, tuple: &FiveTuple) -> bool {
        let protocol = tuple.protocol();
        let has_port = || {
            let ports = [tuple.source_port(), tuple.destination_port()];
            WITH_PORTS.contains(&protocol) && ports.iter().any(|port| self.port.has((*port).into()))
        };
        (self.protocol.is_empty() || self.protocol.has(protocol))
            && (self.port.is_empty() || has_port())
            && (self.src.is_empty() || self.src.has(tuple.source()))
            && (self.dst.is_empty() || self.dst.has(tuple.destination()))
    }

    fn application(&self, facts: &Facts<'_>, floor: Confidence) -> Truth {
        if self.application.is_empty() {
            return Truth::Yes;
        }
        let found = facts.application();
        let is_one = self.application.has(found.number);
        // Number 0, "not recognised", needs no confidence.
        let is_trusted = found.confidence >= floor || found.number == 0;
        match facts.progress {
            Progress::Complete => Truth::of(is_one && is_trusted),
            Progress::Known if found.number != 0 => match is_one {
                true if is_trusted => Truth::Yes,
                true => Truth::Open,
                false if self.application.may_have_more_of(found.number) => Truth::Open,
                false => Truth::No,
            },
            Progress::Known | Progress::Undecided => Truth::Open,
        }
    }

    /// The category belongs to the last part of an application, so it may change while only one
    /// part is known.
    fn category(&self, facts: &Facts<'_>, floor: Confidence) -> Truth {
        if self.category.is_empty() {
            return Truth::Yes;
        }
        let found = facts.application();
        let is_one = self.category.has(found.category);
        let is_trusted = found.confidence >= floor;
        match facts.progress {
            Progress::Complete => Truth::of(is_one && is_trusted),
            Progress::Known if found.has_two_parts() => match is_one {
                true if is_trusted => Truth::Yes,
                true => Truth::Open,
                false => Truth::No,
            },
            Progress::Known | Progress::Undecided => Truth::Open,
        }
    }

    fn server_name(&self, facts: &Facts<'_>) -> Truth {
        match facts.server_name {
            _ if self.server_name.is_empty() => Truth::Yes,
            Some(name) => Truth::of(self.server_name.has(name)),
            None if facts.is_complete() => Truth::No,
            None => Truth::Open,
        }
    }

    fn risk(&self, facts: &Facts<'_>) -> Truth {
        match facts.risk & self.risk {
            _ if self.risk == 0 => Truth::Yes,
            0 if facts.is_complete() => Truth::No,
            0 => Truth::Open,
            _ => Truth::Yes,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Whether an application or category is asked for, to which confidence applies.
    pub(super) fn ask_for_names(&self) -> bool {
        !self.application.is_empty() || !self.category.is_empty()
    }

    /// Whether they hold whenever the others do, judging by single conditions.
    pub(super) fn cover(&self, others: &Self) -> bool {
        let risks = others.risk != 0 && others.risk & !self.risk == 0;
        (self.application.is_empty()
            || !others.application.is_empty() && self.application.covers(&others.application))
            && (self.category.is_empty()
                || !others.category.is_empty() && self.category.covers(others.category))
            && (self.server_name.is_empty()
                || !others.server_name.is_empty() && self.server_name.covers(&others.server_name))
            && (self.port.is_empty() || !others.port.is_empty() && self.port.covers(&others.port))
            && (self.src.is_empty() || !others.src.is_empty() && self.src.covers(&others.src))
            && (self.dst.is_empty() || !others.dst.is_empty() && self.dst.covers(&others.dst))
            && (self.protocol.is_empty()
                || !others.protocol.is_empty() && self.protocol.covers(others.protocol))
            && (self.risk == 0 || risks)
    }

    /// Why no flow can match, if that is obvious.
    pub(super) fn contradiction(&self) -> Option<&'static str> {
        let with_ports: Bytes = WITH_PORTS.into_iter().collect();
        if !self.port.is_empty() && !self.protocol.is_empty() && !self.protocol.meets(with_ports) {
            return Some("its protocols have no ports");
        }
        let are_both = !self.src.is_empty() && !self.dst.is_empty();
        let has_no_family = are_both && !self.src.share_family(&self.dst);
        has_no_family.then_some("one of `src` and `dst` is IPv4, the other one IPv6")
    }
}
