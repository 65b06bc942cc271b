// SPDX-License-Identifier: Apache-2.0
//! Traffic per application. A flow's application may be recognised after its first packets; then
//! the traffic of the flow so far is moved to that application.

use std::collections::HashMap;
use std::sync::Arc;

use crate::bins::{Bins, Sums};

/// Maximum number of applications with a row: 1.4 MB.
pub const APPLICATIONS_MAX: usize = 1 << 12;

/// The row of flows whose application is not known, or not yet.
const NOT_KNOWN: &str = "(not known yet)";
/// The row for applications beyond [`APPLICATIONS_MAX`]. No application has this name.
const OTHERS: &str = "(others)";

/// The number of an application on this screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ApplicationId(u16);

impl ApplicationId {
    const NOT_KNOWN: Self = Self(0);
    const OTHERS: Self = Self(1);

    /// Its index in [`crate::Picture::names`].
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }

    pub(crate) fn is_known(self) -> bool {
        self != Self::NOT_KNOWN
    }
}

/// All applications seen.
#[derive(Debug)]
pub(crate) struct Applications {
    ids: HashMap<Arc<str>, ApplicationId>,
    names: Vec<Arc<str>>,
    bins: Vec<Bins>,
}

impl Applications {
    pub(crate) fn new() -> Self {
        Self {
            ids: HashMap::new(),
            names: vec![Arc::from(NOT_KNOWN), Arc::from(OTHERS)],
            bins: vec![Bins::default(); 2],
        }
    }

    /// The number of a name; a new name gets a new number.
    pub(crate) fn id(&mut self, name: &str) -> ApplicationId {
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        if self.names.len() == APPLICATIONS_MAX {
            return ApplicationId::OTHERS;
        }
        let id = ApplicationId(self.names.len() as u16);
        let name: Arc<str> = Arc::from(name);
        self.ids.insert(Arc::clone(&name), id);
        self.names.push(name);
        self.bins.push(Bins::default());
        id
    }

    pub(crate) fn add(&mut self, id: ApplicationId, bin: u64, sums: Sums) {
        self.bins[id.index()].add(bin, sums);
    }

    /// Moves a flow's traffic from one application to another.
    pub(crate) fn move_flow(&mut self, flow: &Bins, from: ApplicationId, to: ApplicationId) {
        self.bins[from.index()].remove_all(flow);
        self.bins[to.index()].add_all(flow);
    }

    pub(crate) fn names(&self) -> &[Arc<str>] {
        &self.names
    }

    pub(crate) fn bins(&self) -> &[Bins] {
        &self.bins
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Sums = Sums {
        bytes: 100,
        packets: 1,
    };

    fn bytes(applications: &Applications, id: ApplicationId, end: u64) -> (u64, u64) {
        let bins = &applications.bins[id.index()];
        (bins.before(end, 4).bytes, bins.total().bytes)
    }

    #[test]
    fn a_flow_takes_its_traffic_to_the_application_that_it_turns_out_to_be() {
        let mut applications = Applications::new();
        let mut flow = Bins::default();
        for bin in [5, 6, 90, 91] {
            flow.add(bin, ONE);
            applications.add(ApplicationId::NOT_KNOWN, bin, ONE);
        }
        applications.add(ApplicationId::NOT_KNOWN, 91, ONE);
        let tls = applications.id("TLS");
        applications.move_flow(&flow, ApplicationId::NOT_KNOWN, tls);
        assert_eq!(
            bytes(&applications, ApplicationId::NOT_KNOWN, 92),
            (100, 100)
        );
        assert_eq!(bytes(&applications, tls, 92), (200, 400));
        assert_eq!(applications.id("TLS"), tls);
    }

    #[test]
    fn names_beyond_the_limit_share_a_row() {
        let mut applications = Applications::new();
        let ids = (0..APPLICATIONS_MAX).map(|number| applications.id(&number.to_string()));
        let ids: Vec<_> = ids.collect();
        let limit = APPLICATIONS_MAX - 2;
        assert!(!ids[..limit].contains(&ApplicationId::OTHERS));
        assert_eq!(ids[limit..], [ApplicationId::OTHERS; 2]);
        assert_eq!(applications.bins.len(), APPLICATIONS_MAX);
    }
}
