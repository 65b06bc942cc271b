// SPDX-License-Identifier: Apache-2.0
//! What is known about a flow at the time of a decision.

use turboflow_inspect::{Confidence, Progress};
use turboflow_record::FiveTuple;

/// What is known about a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts<'a> {
    /// The 5-tuple of the first packet that the bridge saw. Its source is taken as the initiator.
    pub tuple: FiveTuple,
    /// How far inspection has come. It is [`Progress::Complete`] also if inspection gave up, and
    /// for flows that are not inspected.
    pub progress: Progress,
    /// The application, as far as it is known. While inspection is undecided, this is a guess that
    /// must not decide anything.
    pub application: Option<Application>,
    /// The server name of TLS or QUIC, if it was seen.
    pub server_name: Option<&'a str>,
    /// The risks that were seen, as bits of the inspection library.
    pub risk: u64,
}

/// An application, and how it was recognised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Application {
    /// The library's numbers: `carrier << 16 | application`; 0 means unknown.
    pub number: u32,
    /// The library's number for the category.
    pub category: u8,
    /// How it was recognised.
    pub confidence: Confidence,
}

/// Number of bits of the application in its number; the protocol that carries it is in the bits
/// above.
const APPLICATION_BITS: u32 = 16;

impl Application {
    /// The carrier, or 0 if there is none, and the application itself.
    pub(super) const fn parts(number: u32) -> (u16, u16) {
        let carrier = (number >> APPLICATION_BITS) as u16;
        let own = number as u16;
        match (carrier, own) {
            (only, 0) => (0, only),
            (carrier, own) if carrier == own => (0, own),
            both => both,
        }
    }

    /// Whether both parts are known. Further packets then reveal nothing new.
    pub(super) const fn has_two_parts(self) -> bool {
        Self::parts(self.number).0 != 0
    }

    /// The number made of both parts.
    pub(super) const fn joined(carrier: u16, own: u16) -> u32 {
        (carrier as u32) << APPLICATION_BITS | own as u32
    }
}

impl Facts<'_> {
    pub(super) fn is_complete(&self) -> bool {
        self.progress == Progress::Complete
    }

    /// The application; the unknown one if none was recognised.
    pub(super) fn application(&self) -> Application {
        self.application.unwrap_or_default()
    }
}

/// Whether a condition holds, as far as is known. The result of several conditions is the minimum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Truth {
    /// It does not hold, and never will.
    No,
    /// It depends on something that is not known yet.
    Open,
    /// It holds, and will keep holding.
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
