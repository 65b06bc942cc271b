// SPDX-License-Identifier: Apache-2.0
//! What is known about a flow when a decision is asked for.

use turboflow_inspect::{Confidence, Progress};
use turboflow_record::FiveTuple;

/// What is known about a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts<'a> {
    /// The 5-tuple of the first packet that the bridge saw: its source is the side that began.
    pub tuple: FiveTuple,
    /// How far the inspection has come. [`Progress::Complete`] also where it gave up, and for flows
    /// that are not inspected at all.
    pub progress: Progress,
    /// The application, as far as it is known. While the inspection is undecided it is a guess,
    /// which decides nothing.
    pub application: Option<Application>,
    /// The server name of TLS or QUIC, if it was seen.
    pub server_name: Option<&'a str>,
    /// The risks that were seen, by the library's bits.
    pub risk: u64,
}

/// An application, and how it was recognised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Application {
    /// The library's numbers: `carrier << 16 | application`; 0 is unknown.
    pub number: u32,
    /// The library's number of the category.
    pub category: u8,
    /// How it was recognised.
    pub confidence: Confidence,
}

/// Bits of the application within a number; the protocol that carries it is above.
const APPLICATION_BITS: u32 = 16;

impl Application {
    /// The protocol that carries the application, 0 if there is none, and the application itself.
    pub(super) const fn parts(number: u32) -> (u16, u16) {
        let carrier = (number >> APPLICATION_BITS) as u16;
        let own = number as u16;
        match (carrier, own) {
            (only, 0) => (0, only),
            (carrier, own) if carrier == own => (0, own),
            both => both,
        }
    }

    /// Whether both parts are known. Then no packet tells more.
    pub(super) const fn has_two_parts(self) -> bool {
        Self::parts(self.number).0 != 0
    }

    /// The number of two parts.
    pub(super) const fn joined(carrier: u16, own: u16) -> u32 {
        (carrier as u32) << APPLICATION_BITS | own as u32
    }
}

impl Facts<'_> {
    pub(super) fn is_complete(&self) -> bool {
        self.progress == Progress::Complete
    }

    /// The application; unknown if there is none.
    pub(super) fn application(&self) -> Application {
        self.application.unwrap_or_default()
    }
}

/// Whether something holds, as far as it is known. Of several things that have to hold, the least
/// counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Truth {
    /// It does not, and never will.
    No,
    /// What it depends on is not known yet.
    Open,
    /// It does, and will.
    Yes,
}

impl Truth {
    pub(super) const fn of(holds: bool) -> Self {
        match holds {
            true => Self::Yes,
            false => Self::No,
        }
    }

    pub(super) const fn opposite(self) -> Self {
        match self {
            Self::No => Self::Yes,
            Self::Open => Self::Open,
            Self::Yes => Self::No,
        }
    }
}
