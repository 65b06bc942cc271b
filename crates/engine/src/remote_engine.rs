// SPDX-License-Identifier: Apache-2.0
//! Engines that work elsewhere and hand over batches of microflow records.

use std::time::Duration;

use crate::{Abilities, EngineCounters, EngineError, MicroflowBatch, Port, ShortFlow};

/// What [`RemoteEngine::collect`] says beside the records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// The watermark: with these records, all packets before this time have been handed over, in
    /// nanoseconds since 1970. It is the end of a cell of the clock.
    pub complete_ns: Option<u64>,
    /// More may be handed over at once, whether there were records now or not: records of later
    /// packets are kept back until the next call.
    pub has_more: bool,
}

impl Collected {
    /// All packets before this time have been handed over, and more may follow at once.
    #[must_use]
    pub const fn all_before(complete_ns: u64) -> Self {
        Self {
            complete_ns: Some(complete_ns),
            has_more: true,
        }
    }
}

/// A frame that an engine could not read, handed up whole.
#[derive(Clone, Copy, Debug)]
pub struct UnparsedFrame<'a> {
    /// The bytes that were kept, from the first one on.
    pub bytes: &'a [u8],
    /// When it arrived, in nanoseconds since 1970.
    pub timestamp_ns: u64,
    /// Its length on the wire.
    pub wire_length_bytes: u32,
}

/// What an engine has to tell beside records and counters.
#[derive(Clone, Copy, Debug)]
pub enum EngineEvent<'a> {
    /// A frame that is no packet, from an engine that was asked to hand them up.
    Unparsed(UnparsedFrame<'a>),
}

/// An engine elsewhere: a kernel, a switch, an FPGA, a card, another host.
///
/// The driver calls [`collect`](Self::collect) until there is nothing more, waits at most
/// [`longest_pause`](Self::longest_pause), and begins again. Batches cross this trait, items do
/// not, so its dynamic dispatch costs nothing that a record would notice.
pub trait RemoteEngine: Send {
    /// What it can do.
    fn abilities(&self) -> &Abilities;

    /// The start of the cell of the clock in which it began, in nanoseconds since 1970.
    fn started_ns(&self) -> u64;

    /// Appends microflow records of the current cell to `batch`, those of a flow in time order where
    /// [`Abilities::ordered`] says so. Never waits.
    ///
    /// # Errors
    /// Where nothing more can be collected.
    fn collect(&mut self, batch: &mut MicroflowBatch) -> Result<Collected, EngineError>;

    /// How long the engine may be left alone before it could run out of room for records.
    fn longest_pause(&self) -> Duration;

    /// What it has done so far.
    ///
    /// # Errors
    /// Where it cannot be asked.
    fn counters(&mut self) -> Result<EngineCounters, EngineError>;

    /// Its ports, always in one order.
    ///
    /// # Errors
    /// Where it cannot be asked.
    fn ports(&mut self) -> Result<Vec<Port>, EngineError>;

    /// Tells what has happened since the last call.
    ///
    /// # Errors
    /// Where it cannot be asked.
    fn events(&mut self, _tell: &mut dyn FnMut(EngineEvent<'_>)) -> Result<(), EngineError> {
        Ok(())
    }

    /// Events that were lost because they came too fast.
    ///
    /// # Errors
    /// Where it cannot be asked.
    fn events_lost(&mut self) -> Result<u64, EngineError> {
        Ok(0)
    }

    /// Flows that lost records, as far as it can name them. Asked once, at the end.
    ///
    /// # Errors
    /// Where it cannot be asked.
    fn short_flows(&mut self) -> Result<Vec<ShortFlow>, EngineError> {
        Ok(Vec::new())
    }

    /// Whether the engine has ended by itself, for example because a file was read to its end: no
    /// further record will arrive.
    fn has_ended(&self) -> bool {
        false
    }

    /// Meters no further packet and evicts everything. [`collect`](Self::collect) hands it over, until
    /// it has no more.
    ///
    /// # Errors
    /// As [`collect`](Self::collect).
    fn finish(&mut self) -> Result<(), EngineError>;
}
