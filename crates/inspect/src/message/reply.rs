// SPDX-License-Identifier: Apache-2.0
//! The process's side of the messages: reads orders and writes answers.

use turboflow_record::ApplicationNames;

use super::{
    Answer, BEGIN, CLOSE, Content, DROPPED, FAILED, InspectionId, Order, PROGRESS, READY, SETTLE,
    SETTLED, TAP, VERDICT, WorkerLimits, framed,
};
use crate::{Facts, MAX_TEXT_BYTES, Progress, Text};

/// Maximum bytes of a message to the process: a datagram and the fields before it.
pub(crate) const MAX_ORDER_BYTES: usize = u16::MAX as usize + 64;
impl<'a> Order<'a> {
    /// Reads a message without its length.
    pub(crate) fn read(message: &'a [u8]) -> Option<Self> {
        let mut content = Content(message);
        match content.u8()? {
            BEGIN => Some(Self::Begin(WorkerLimits {
                max_flows: content.u64()?,
                memory_bytes: content.u64()?,
                resume_below: content.u64()?,
            })),
            TAP => {
                let id = content.id()?;
                let flags = content.u8()?;
                let time_ns = content.u64()?;
                Some(Self::Tap {
                    id,
                    is_reversed: flags & 1 != 0,
                    is_last: flags & 2 != 0,
                    time_ns,
                    datagram: content.0,
                })
            }
            CLOSE => Some(Self::Close { id: content.id()? }),
            SETTLE => Some(Self::Settle {
                number: content.u64()?,
            }),
            _ => None,
        }
    }
}

/// Appends a verdict without constructing an [`Answer`] first.
pub(crate) fn write_verdict(
    out: &mut Vec<u8>,
    id: InspectionId,
    progress: Progress,
    facts: &Facts,
) {
    framed(out, VERDICT, |out| {
        id.write(out);
        write_facts(out, progress, facts);
    });
}

/// Appends the part of a verdict that may change.
pub(crate) fn write_facts(out: &mut Vec<u8>, progress: Progress, facts: &Facts) {
    out.push(progress as u8);
    out.extend_from_slice(&facts.application.to_le_bytes());
    out.push(facts.category);
    out.push(facts.confidence as u8);
    out.extend_from_slice(&facts.risk.to_le_bytes());
    for text in Text::ALL {
        let bytes = facts.text(text);
        out.push(bytes.len() as u8);
        out.extend_from_slice(bytes);
    }
}

impl Answer {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Ready(names) => framed(out, READY, |out| write_names(out, names)),
            Self::Failed(why) => framed(out, FAILED, |out| out.extend_from_slice(why.as_bytes())),
            Self::Verdict {
                id,
                progress,
                facts,
            } => write_verdict(out, *id, *progress, facts),
            Self::Progress { inspected, late } => framed(out, PROGRESS, |out| {
                out.extend_from_slice(&inspected.to_le_bytes());
                out.extend_from_slice(&late.to_le_bytes());
            }),
            Self::Dropped { id } => framed(out, DROPPED, |out| id.write(out)),
            Self::Settled { number } => framed(out, SETTLED, |out| {
                out.extend_from_slice(&number.to_le_bytes());
            }),
        }
    }
}

fn write_name(out: &mut Vec<u8>, name: &str) {
    let length = name.len().min(MAX_TEXT_BYTES);
    out.push(length as u8);
    out.extend_from_slice(&name.as_bytes()[..length]);
}

fn write_names(out: &mut Vec<u8>, names: &ApplicationNames) {
    write_name(out, &names.library);
    out.extend_from_slice(&(names.applications.len() as u32).to_le_bytes());
    for (number, name, category) in &names.applications {
        out.extend_from_slice(&number.to_le_bytes());
        out.push(*category);
        write_name(out, name);
    }
    for list in [&names.categories, &names.confidences, &names.risks] {
        out.extend_from_slice(&(list.len() as u32).to_le_bytes());
        for (number, name) in list {
            out.push(*number);
            write_name(out, name);
        }
    }
}
