// SPDX-License-Identifier: Apache-2.0
//! The trait of deciders, which decide about flows by their first packets.

use crate::{FlowKey, Verdict};

/// A packet of a flow without a verdict.
#[derive(Clone, Copy, Debug)]
pub struct Tapped<'a> {
    /// The flow of the packet.
    pub key: FlowKey,
    /// Time of arrival, in nanoseconds since 1970.
    pub time_ns: u64,
    /// Whether the packet goes from the greater end of the key to the smaller.
    pub is_reversed: bool,
    /// Flags of a TCP packet; 0 for other protocols.
    pub tcp_flags: u16,
    /// Length of the frame on the wire, in bytes.
    pub frame_bytes: u32,
    /// The first bytes of the frame, at most [`Decider::snap_bytes`].
    pub frame: &'a [u8],
}

/// A decision about a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// More packets, or more time, are needed.
    Undecided,
    /// The flow gets this verdict.
    Decided(Verdict),
    /// Further packets would not help: the flow gets this verdict without a decision.
    GaveUp(Verdict),
    /// The flow gets this verdict in place of an earlier one.
    Changed(Verdict),
}

/// The decider no longer answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the decider is gone")]
pub struct DeciderGone;

/// Decides about flows, on one thread.
pub trait Decider: Send {
    /// Maximum number of bytes of a frame that the decider reads; 0 if the key is enough.
    fn snap_bytes(&self) -> u32;

    /// Takes a packet. Packets of a flow come in the order of arrival.
    ///
    /// # Errors
    /// If the decider is gone. Flows then go on without verdicts.
    fn decide(&mut self, tapped: &Tapped<'_>) -> Result<Decision, DeciderGone>;

    /// Reports the decisions since the last call: about flows that were undecided after their
    /// packets, and about flows whose verdict has changed or is withdrawn.
    ///
    /// # Errors
    /// As [`decide`](Self::decide).
    fn decided_since(
        &mut self,
        _now_ns: u64,
        _tell: &mut dyn FnMut(FlowKey, Decision),
    ) -> Result<(), DeciderGone> {
        Ok(())
    }

    /// Called when all earlier decisions are in the table, except those that the table refused.
    fn carried_out(&mut self) {}

    /// Called when the connection of a flow that has a row has ended. A new connection may follow
    /// with the same ports.
    fn connection_ended(&mut self, _key: FlowKey, _time_ns: u64) {}

    /// Called when the row of a flow was removed because the flow was silent, or its connection was
    /// over for some time. Later packets with this key belong to another flow.
    fn row_ended(&mut self, _key: FlowKey) {}

    /// Called at the end, after the last packet.
    fn finish(&mut self, _now_ns: u64) {}
}

impl Decider for Box<dyn Decider> {
    fn snap_bytes(&self) -> u32 {
        (**self).snap_bytes()
    }

    fn decide(&mut self, tapped: &Tapped<'_>) -> Result<Decision, DeciderGone> {
        (**self).decide(tapped)
    }

    fn decided_since(
        &mut self,
        now_ns: u64,
        tell: &mut dyn FnMut(FlowKey, Decision),
    ) -> Result<(), DeciderGone> {
        (**self).decided_since(now_ns, tell)
    }

    fn carried_out(&mut self) {
        (**self).carried_out();
    }

    fn connection_ended(&mut self, key: FlowKey, time_ns: u64) {
        (**self).connection_ended(key, time_ns);
    }

    fn row_ended(&mut self, key: FlowKey) {
        (**self).row_ended(key);
    }

    fn finish(&mut self, now_ns: u64) {
        (**self).finish(now_ns);
    }
}

/// A decider that lets every flow pass from its first packet on.
#[derive(Clone, Copy, Debug, Default)]
pub struct FirstPacket;

impl Decider for FirstPacket {
    fn snap_bytes(&self) -> u32 {
        0
    }

    fn decide(&mut self, _tapped: &Tapped<'_>) -> Result<Decision, DeciderGone> {
        Ok(Decision::Decided(Verdict::PASS))
    }
}
