// SPDX-License-Identifier: Apache-2.0
//! What decides about flows by their first packets.

use crate::{FlowKey, Verdict};

/// A packet of a flow without a verdict.
#[derive(Clone, Copy, Debug)]
pub struct Tapped<'a> {
    /// Its flow.
    pub key: FlowKey,
    /// Time of arrival, in nanoseconds since 1970.
    pub time_ns: u64,
    /// Whether it goes from the greater end of the key to the smaller one.
    pub is_reversed: bool,
    /// Flags of a TCP packet, 0 for any other.
    pub tcp_flags: u16,
    /// Length of its frame on the wire, in bytes.
    pub frame_bytes: u32,
    /// The first bytes of its frame, at most [`Decider::snap_bytes`].
    pub frame: &'a [u8],
}

/// What is decided about a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// More packets are needed, or time.
    Undecided,
    /// This becomes of it.
    Decided(Verdict),
    /// No more is to be learned; this becomes of it nevertheless.
    GaveUp(Verdict),
    /// It was decided otherwise before.
    Changed(Verdict),
}

/// The decider does not answer any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the decider is gone")]
pub struct DeciderGone;

/// Decides about flows. It belongs to one thread.
pub trait Decider: Send {
    /// Bytes of a frame that it looks at; 0: the key is enough.
    fn snap_bytes(&self) -> u32;

    /// Takes a packet. Packets of a flow come in the order of arrival.
    ///
    /// # Errors
    /// If it is gone. Flows then go on without verdicts.
    fn decide(&mut self, tapped: &Tapped<'_>) -> Result<Decision, DeciderGone>;

    /// Tells what has been decided since: about flows whose packets were undecided, and about
    /// flows with a verdict that are decided otherwise, or undecided again.
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

    /// What it decided before is in the table now, as far as the table took it.
    fn carried_out(&mut self) {}

    /// The connection of a flow that has a row ended then. Another one may follow over the same
    /// ports.
    fn connection_ended(&mut self, _key: FlowKey, _time_ns: u64) {}

    /// The row of a flow left because it was silent, or its connection over for some time. What
    /// follows with its key is another flow.
    fn row_ended(&mut self, _key: FlowKey) {}

    /// No packet follows.
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

/// Every flow passes from its first packet on.
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
