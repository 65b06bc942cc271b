// SPDX-License-Identifier: Apache-2.0
//! Engines that run outside this process and hand over batches of microflow records.

use std::time::Duration;

use crate::{Abilities, EngineCounters, EngineError, MicroflowBatch, OwnCount, Port, ShortFlow};

/// What [`RemoteEngine::collect`] returns besides records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// The watermark: all packets before this time have now been handed over. In nanoseconds since
    /// 1970, and always the end of a clock cell.
    pub complete_ns: Option<u64>,
    /// Whether the watermark sets the clock back: all open flows end, even if it is less than the
    /// tolerance of live clocks behind the last one.
    pub sets_back: bool,
    /// Whether to call again without waiting. Records of later packets are held back until the next
    /// call, even if this one returned no records.
    pub has_more: bool,
}

impl Collected {
    /// A watermark, after which the caller should call again at once.
    #[must_use]
    pub const fn all_before(complete_ns: u64) -> Self {
        Self {
            complete_ns: Some(complete_ns),
            sets_back: false,
            has_more: true,
        }
    }
}

/// A frame that an engine could not parse.
#[derive(Clone, Copy, Debug)]
pub struct UnparsedFrame<'a> {
    /// The first bytes of the frame, as many as were captured.
    pub bytes: &'a [u8],
    /// Time of arrival, in nanoseconds since 1970.
    pub timestamp_ns: u64,
    /// Length on the wire, in bytes.
    pub wire_length_bytes: u32,
}

/// What an engine reports besides records and counters.
#[derive(Clone, Copy, Debug)]
pub enum EngineEvent<'a> {
    /// A frame that could not be parsed, from an engine that was asked to report such frames.
    Unparsed(UnparsedFrame<'a>),
}

/// An engine that runs outside this process: in a kernel, a switch, an FPGA, a card, another host.
///
/// The driver calls [`collect`](Self::collect) until there is no more, waits at most
/// [`longest_pause`](Self::longest_pause), and starts again. Dynamic dispatch is per batch, not per
/// record, so that its cost does not matter.
pub trait RemoteEngine: Send {
    /// What the engine supports.
    fn abilities(&self) -> &Abilities;

    /// The start of the clock cell in which the engine started, in nanoseconds since 1970.
    fn started_ns(&self) -> u64;

    /// Appends microflow records of the current cell to `batch`; those of a flow in time order, if
    /// [`Abilities::ordered`] is set. Never blocks.
    ///
    /// # Errors
    /// If no more records can be collected.
    fn collect(&mut self, batch: &mut MicroflowBatch) -> Result<Collected, EngineError>;

    /// The longest time between two collections before the engine may run out of room for records.
    fn longest_pause(&self) -> Duration;

    /// The counters so far.
    ///
    /// # Errors
    /// If the engine does not answer.
    fn counters(&mut self) -> Result<EngineCounters, EngineError>;

    /// Counters that only this engine has. Every call returns the same counters in the same order.
    ///
    /// # Errors
    /// If the engine does not answer.
    fn own_counts(&mut self) -> Result<Vec<OwnCount>, EngineError> {
        Ok(Vec::new())
    }

    /// EtherTypes of frames that the engine could not read, and the number of these frames, as far
    /// as it knows them.
    fn unread_ether_types(&self) -> Vec<(u16, u64)> {
        Vec::new()
    }

    /// The ports, always in the same order. New ports are appended.
    ///
    /// # Errors
    /// If the engine does not answer.
    fn ports(&mut self) -> Result<Vec<Port>, EngineError>;

    /// Reports the events since the last call.
    ///
    /// # Errors
    /// If the engine does not answer.
    fn events(&mut self, _tell: &mut dyn FnMut(EngineEvent<'_>)) -> Result<(), EngineError> {
        Ok(())
    }

    /// The number of events that were lost because they arrived too fast.
    ///
    /// # Errors
    /// If the engine does not answer.
    fn events_lost(&mut self) -> Result<u64, EngineError> {
        Ok(0)
    }

    /// Flows that lost records, as far as the engine can name them. Called once, at the end.
    ///
    /// # Errors
    /// If the engine does not answer.
    fn short_flows(&mut self) -> Result<Vec<ShortFlow>, EngineError> {
        Ok(Vec::new())
    }

    /// Whether the input is finite, like a file. A run that is stopped early has not seen all of
    /// such an input.
    fn ends_by_itself(&self) -> bool {
        false
    }

    /// Whether the engine has reached the end of its input, for example of a file, so that no more
    /// records will arrive.
    fn has_ended(&self) -> bool {
        false
    }

    /// Stops metering and evicts everything. [`collect`](Self::collect) then hands over the records
    /// until there are no more.
    ///
    /// # Errors
    /// See [`collect`](Self::collect).
    fn finish(&mut self) -> Result<(), EngineError>;
}
