// SPDX-License-Identifier: Apache-2.0
//! The messages between the meter and the inspector's process.
//!
//! ```text
//! length (4) | kind (1) | content, little-endian; the length is that of kind and content
//! ```
//!
//! The meter trusts no answer, because the process reads hostile packets.

#[cfg(any(feature = "dpi", test))]
pub(crate) mod reply;
#[cfg(test)]
mod tests;

use turboflow_record::ApplicationNames;

use crate::{Confidence, Facts, Progress, Text};

/// Maximum bytes of a message from the process: the one with all names.
pub(crate) const MAX_ANSWER_BYTES: usize = 1 << 20;
/// Size of the length field in bytes.
pub(crate) const LENGTH_BYTES: usize = 4;

/// Identifies an inspection in messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct InspectionId {
    /// The index in the meter's table. The process only returns it.
    pub(crate) spot: u32,
    /// Increases with each inspection.
    pub(crate) number: u64,
}

/// A message to the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Order<'a> {
    /// The first message.
    Begin(WorkerLimits),
    /// A packet to inspect.
    Tap {
        id: InspectionId,
        is_reversed: bool,
        /// Whether this is the last packet of the inspection.
        is_last: bool,
        time_ns: u64,
        datagram: &'a [u8],
    },
    /// The inspection ends with what is known.
    Close { id: InspectionId },
    /// Report what is known or guessed so far, then answer with this number.
    Settle { number: u64 },
}

const BEGIN: u8 = 1;
const TAP: u8 = 2;
const CLOSE: u8 = 3;
const SETTLE: u8 = 4;

/// The limits of the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WorkerLimits {
    /// Maximum flows at a time. The meter observes this limit, and the process enforces it.
    pub(crate) max_flows: u64,
    /// Maximum bytes of address space.
    pub(crate) memory_bytes: u64,
    /// Inspections with numbers below this may be new to this process, because they began in an
    /// earlier one.
    pub(crate) resume_below: u64,
}

/// A message from the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The process is ready.
    Ready(ApplicationNames),
    /// The process cannot work, for this reason.
    Failed(String),
    /// What is known about a flow. It is a guess while the flow is undecided.
    Verdict {
        id: InspectionId,
        progress: Progress,
        facts: Facts,
    },
    /// Totals since the start of the process: packets inspected, and packets of flows that were
    /// already complete.
    Progress { inspected: u64, late: u64 },
    /// The inspection ended because memory is short.
    Dropped { id: InspectionId },
    /// Everything before that settle order has been processed.
    Settled { number: u64 },
}

const READY: u8 = 1;
const FAILED: u8 = 2;
const VERDICT: u8 = 3;
const PROGRESS: u8 = 4;
const DROPPED: u8 = 5;
const SETTLED: u8 = 6;

/// Appends a message with its length.
fn framed(out: &mut Vec<u8>, kind: u8, fill: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0, 0, 0, 0, kind]);
    fill(out);
    let length = (out.len() - start - LENGTH_BYTES) as u32;
    out[start..start + LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
}

impl InspectionId {
    fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.spot.to_le_bytes());
        out.extend_from_slice(&self.number.to_le_bytes());
    }
}

impl Order<'_> {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Begin(limits) => framed(out, BEGIN, |out| {
                for number in [limits.max_flows, limits.memory_bytes, limits.resume_below] {
                    out.extend_from_slice(&number.to_le_bytes());
                }
            }),
            Self::Tap {
                id,
                is_reversed,
                is_last,
                time_ns,
                datagram,
            } => framed(out, TAP, |out| {
                id.write(out);
                out.push(u8::from(*is_reversed) | u8::from(*is_last) << 1);
                out.extend_from_slice(&time_ns.to_le_bytes());
                out.extend_from_slice(datagram);
            }),
            Self::Close { id } => framed(out, CLOSE, |out| id.write(out)),
            Self::Settle { number } => framed(out, SETTLE, |out| {
                out.extend_from_slice(&number.to_le_bytes());
            }),
        }
    }
}

impl Answer {
    /// Reads a message without its length; `None` if it is invalid.
    pub(crate) fn read(message: &[u8]) -> Option<Self> {
        let mut content = Content(message);
        match content.u8()? {
            READY => Some(Self::Ready(content.names()?)),
            FAILED => Some(Self::Failed(
                String::from_utf8_lossy(content.0).into_owned(),
            )),
            VERDICT => {
                let id = content.id()?;
                let (progress, facts) = content.facts()?;
                Some(Self::Verdict {
                    id,
                    progress,
                    facts,
                })
            }
            PROGRESS => Some(Self::Progress {
                inspected: content.u64()?,
                late: content.u64()?,
            }),
            DROPPED => Some(Self::Dropped { id: content.id()? }),
            SETTLED => Some(Self::Settled {
                number: content.u64()?,
            }),
            _ => None,
        }
    }
}

/// The rest of a message.
struct Content<'a>(&'a [u8]);

impl<'a> Content<'a> {
    fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*bytes)
    }

    fn u8(&mut self) -> Option<u8> {
        Some(self.bytes::<1>()?[0])
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.bytes()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.bytes()?))
    }

    fn id(&mut self) -> Option<InspectionId> {
        Some(InspectionId {
            spot: self.u32()?,
            number: self.u64()?,
        })
    }

    fn short(&mut self) -> Option<&'a [u8]> {
        let length = self.u8()?;
        let (bytes, rest) = self.0.split_at_checked(length.into())?;
        self.0 = rest;
        Some(bytes)
    }

    fn name(&mut self) -> Option<String> {
        Some(String::from_utf8_lossy(self.short()?).into_owned())
    }

    fn facts(&mut self) -> Option<(Progress, Facts)> {
        let progress = match self.u8()? {
            0 => Progress::Undecided,
            1 => Progress::Known,
            2 => Progress::Complete,
            _ => return None,
        };
        let mut facts = Facts {
            application: self.u32()?,
            category: self.u8()?,
            confidence: Confidence::of_number(self.u8()?)?,
            risk: self.u64()?,
            ..Facts::default()
        };
        for text in Text::ALL {
            facts.set_text(text, self.short()?);
        }
        Some((progress, facts))
    }

    fn names(&mut self) -> Option<ApplicationNames> {
        let library = self.name()?;
        // A list that claims more elements than the message has ends with `None`.
        let mut applications = Vec::new();
        for _ in 0..self.u32()? {
            let (number, category) = (self.u32()?, self.u8()?);
            applications.push((number, self.name()?, category));
        }
        Some(ApplicationNames {
            library,
            applications,
            categories: self.numbered()?,
            confidences: self.numbered()?,
            risks: self.numbered()?,
        })
    }

    fn numbered(&mut self) -> Option<Vec<(u8, String)>> {
        let mut list = Vec::new();
        for _ in 0..self.u32()? {
            let number = self.u8()?;
            list.push((number, self.name()?));
        }
        Some(list)
    }
}

/// A message, and the bytes after it.
pub(crate) type Split<'a> = Option<(&'a [u8], &'a [u8])>;

/// Splits off the first message in `bytes`; `Ok(None)` if it is not complete yet.
///
/// # Errors
/// If the length field is 0 or greater than `limit`.
pub(crate) fn split(bytes: &[u8], limit: usize) -> Result<Split<'_>, ()> {
    let Some((length, rest)) = bytes.split_first_chunk::<LENGTH_BYTES>() else {
        return Ok(None);
    };
    let length = u32::from_le_bytes(*length) as usize;
    if length == 0 || length > limit {
        return Err(());
    }
    Ok(rest.split_at_checked(length))
}
