// SPDX-License-Identifier: Apache-2.0
//! Implements the interface of remote engines.

use std::time::Duration;

use turboflow_engine::{
    Abilities, Collected, EngineCounters, EngineError, EngineEvent, MicroflowBatch, Port,
    PortCounters, PortState, RemoteEngine, ShortFlow,
};

use crate::{ABILITIES, Attachment, KernelEngine};

/// Longest pause between two reads of the ring: each read is a wake-up, and larger batches merge
/// more cheaply.
const LONGEST_PAUSE: Duration = Duration::from_millis(20);
/// Shortest pause: the kernel's timers are not much finer.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
/// Upper bound on the ring's input: 13 M records a second, more than any processor merges.
const MOST_BYTES_PER_SECOND: u32 = 1 << 30;

impl RemoteEngine for KernelEngine {
    fn abilities(&self) -> &Abilities {
        &ABILITIES
    }

    fn started_ns(&self) -> u64 {
        Self::started_ns(self)
    }

    fn collect(&mut self, batch: &mut MicroflowBatch) -> Result<Collected, EngineError> {
        Self::collect(self, batch).map_err(EngineError::new)
    }

    fn longest_pause(&self) -> Duration {
        pause_for(self.ring_bytes())
    }

    fn counters(&mut self) -> Result<EngineCounters, EngineError> {
        let counters = Self::counters(self).map_err(EngineError::new)?;
        Ok(counters.in_common())
    }

    fn ports(&mut self) -> Result<Vec<Port>, EngineError> {
        let counters = Self::counters(self).map_err(EngineError::new)?;
        // No link is attached after the engine was ended.
        let mut attachments = self.attachments();
        let ports = self.interface_names().enumerate().map(|(place, name)| {
            let seen = counters.packets_received[place];
            let (state, interface_index) = match attachments.next() {
                Some(Attachment::Displaced) => (PortState::Displaced, None),
                Some(Attachment::Gone) => (PortState::Gone, None),
                Some(Attachment::Holds { index }) => (PortState::Up, Some(index)),
                None => (PortState::Up, None),
            };
            Port {
                name: name.to_owned(),
                state,
                interface_index,
                counters: PortCounters {
                    seen,
                    delivered: seen,
                    delivered_bytes: counters.bytes_received[place],
                    merged: counters.packets_merged[place],
                    ..PortCounters::default()
                },
            }
        });
        Ok(ports.collect())
    }

    fn events(&mut self, tell: &mut dyn FnMut(EngineEvent<'_>)) -> Result<(), EngineError> {
        self.take_unparsed(|frame| tell(EngineEvent::Unparsed(frame)));
        Ok(())
    }

    fn events_lost(&mut self) -> Result<u64, EngineError> {
        self.unparsed_lost().map_err(EngineError::new)
    }

    fn short_flows(&mut self) -> Result<Vec<ShortFlow>, EngineError> {
        Self::short_flows(self).map_err(EngineError::new)
    }

    fn finish(&mut self) -> Result<(), EngineError> {
        Self::finish(self).map_err(EngineError::new)
    }
}

/// Pause between two reads of a ring of this size: at most a quarter of it fills, so that the
/// reader may be late.
fn pause_for(ring_bytes: u32) -> Duration {
    let fills = Duration::from_secs(1) * (ring_bytes / 4) / MOST_BYTES_PER_SECOND;
    fills.clamp(SHORTEST_PAUSE, LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_ring_is_read_more_often() {
        let pauses = [1 << 12, 1 << 23, 1 << 26, 1 << 31].map(pause_for);
        assert_eq!(
            pauses.map(|pause| pause.as_micros()),
            [1_000, 1_953, 15_625, 20_000]
        );
    }
}
