// SPDX-License-Identifier: Apache-2.0
//! Microflow records of other TurboFlow processes, in the wire form ([`turboflow_engine::wire`]).
//!
//! They need no translation: a message that does not have the layout of this run is refused. Each
//! engine id of a sender is a domain, whose sequence numbers count records as in IPFIX.

use thiserror::Error;
use turboflow_engine::MicroflowBatch;
use turboflow_engine::wire::{self, WireError, engine_id_of, sequence_of};
use turboflow_merge::Layout;

use crate::decoder::{Decoder, Message, print};
use crate::exporter_numbers::Place;
use crate::header::Version;
use crate::heard::Hearing;
use crate::probes::{ProbeId, Probes, Telling, Told};
use crate::rows::Rows;

/// How far records may end after their arrival, because clocks differ.
const FUTURE_TOLERANCE_NS: u64 = 60_000_000_000;
const NS_PER_S: u64 = 1_000_000_000;

/// Why a message is refused. The connection of its sender is then closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Refused {
    /// The sender's clock is ahead, and its records would be held until their time comes.
    #[error(
        "the records end {ahead_s} s ahead of this machine's clock: synchronize the clocks of both \
         machines, for example by NTP"
    )]
    Ahead {
        /// The difference in seconds.
        ahead_s: u64,
    },
    /// Flow records of another exporter, which lack values of the definition.
    #[error(
        "this run accepts only microflow records of TurboFlow \
         (`engine.collector.only-microflows`), and the message has none"
    )]
    Flows,
    /// The message is of another definition, or is not a message.
    #[error(transparent)]
    Wire(#[from] WireError),
}

/// Reads messages of microflow records.
pub(crate) struct Microflows {
    /// A decoder without the state of any sender: sequence numbers are tracked for each domain.
    fresh: wire::Decoder,
    batch: MicroflowBatch,
    /// The counters that senders reported.
    pub(crate) probes: Probes,
    /// Since when messages are received, in nanoseconds since 1970; `None` for files.
    since_ns: Option<u64>,
}

impl Microflows {
    pub(crate) fn new(layout: &Layout, since_ns: Option<u64>) -> Self {
        Self {
            fresh: wire::Decoder::new(layout),
            batch: MicroflowBatch::default(),
            probes: Probes::default(),
            since_ns,
        }
    }

    /// Takes the records of a message. Returns the latest time in it: that of its last packet, or
    /// its watermark.
    ///
    /// # Errors
    /// The reason why the message is refused. Its records count as missing when the next message
    /// arrives.
    pub(crate) fn read(
        &mut self,
        message: &Message<'_>,
        decoder: &mut Decoder,
        rows: &mut Rows,
    ) -> Result<Option<u64>, Refused> {
        decoder.counts.messages += 1;
        let taken = self.take(message, decoder, rows);
        decoder.counts.microflows_refused += u64::from(taken.is_err());
        taken
    }

    fn take(
        &mut self,
        message: &Message<'_>,
        decoder: &mut Decoder,
        rows: &mut Rows,
    ) -> Result<Option<u64>, Refused> {
        self.batch.clear();
        let decoded = self.fresh.clone().decode(message.bytes, &mut self.batch)?;
        let engine_id = engine_id_of(message.bytes)?;
        let id = (Version::Microflows, engine_id);
        let probe = ProbeId::new(message.from.address, engine_id);
        let sums = self.batch.sums();
        let told_ns = sums.last_ns.max(decoded.watermark_ns.unwrap_or(0));
        if let Some(now_ns) = message.received_ns
            && told_ns > now_ns.saturating_add(FUTURE_TOLERANCE_NS)
        {
            return Err(Refused::Ahead {
                ahead_s: (told_ns - now_ns) / NS_PER_S,
            });
        }
        let print = message.is_datagram.then(|| print(message.bytes));
        let steps = self.batch.len() as u32;
        let sequence = sequence_of(message.bytes)?;
        let is_first = self.probes.is_new(probe);
        let is_before_first = self.probes.is_before_first(probe, sequence, steps);
        let placed =
            decoder.place_message(message.from, id, sequence, steps, print, is_before_first);
        let Some(place) = placed else {
            return Ok(None);
        };
        if place == Place::Restart {
            self.probes.begin_anew(probe);
        }
        let hearing = Hearing {
            sender: message.from,
            now_ns: message.received_ns,
            sequence,
            records: steps,
            is_first,
            place,
        };
        let found = self.probes.hear(probe, &hearing);
        let lost = &mut decoder.counts.records_lost;
        *lost = lost.saturating_sub(found);
        if let Some(counters) = decoded.counters {
            let missing = self.probes.decide(probe, decoded.started_ns, self.since_ns);
            decoder.counts.records_lost += missing;
            let telling = Telling {
                counters,
                is_first: decoded.told_before == 0,
                is_end: decoded.is_end,
                is_datagram: message.is_datagram,
            };
            match self.probes.tell(probe, &telling) {
                Told::Taken => {}
                Told::Implausible => decoder.counts.messages_malformed += 1,
                Told::Unknown => decoder.counts.probes_unknown += 1,
            }
        }
        let taken = rows.microflows(&mut self.batch, &mut decoder.counts);
        self.probes.arrive(probe, taken.packets, taken.bytes);
        let clock_ns = told_ns.min(message.received_ns.unwrap_or(u64::MAX));
        Ok((clock_ns > 0).then_some(clock_ns))
    }
}
