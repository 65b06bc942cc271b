// SPDX-License-Identifier: Apache-2.0
//! The engine's own counters by name. `docs/engines.md` lists them.

use turboflow_engine::OwnCount;
use turboflow_engine_xdp::{BridgePortCounters, OffloadCounters};

use crate::LearnerCounts;

/// Counters of the program in the kernel and of the learner.
pub(super) struct Counted {
    pub(super) kernel: OffloadCounters,
    /// Counters of both ports of a bridge; `None` without a bridge.
    pub(super) bridge: Option<[BridgePortCounters; 2]>,
    pub(super) learner: LearnerCounts,
    /// Whether the learner's thread ended before it was stopped.
    pub(super) is_learner_gone: bool,
}

type Of = fn(&Counted) -> u64;

/// Name, description and value of each counter.
const COUNTS: [(&str, &str, Of); 22] = [
    ("offload_hits", "Packets with a verdict", |c| c.kernel.hits),
    ("offload_misses", "Packets without a verdict", |c| {
        c.kernel.misses
    }),
    (
        "offload_packets_dropped",
        "Packets dropped by their verdict",
        |c| c.kernel.packets_dropped,
    ),
    (
        "offload_bytes_dropped",
        "IP bytes of packets dropped by their verdict",
        |c| c.kernel.bytes_dropped,
    ),
    (
        "offload_taps",
        "Packets without a verdict that were copied to user space",
        |c| c.kernel.taps,
    ),
    (
        "offload_taps_lost",
        "Packets that were not copied to user space, because the ring was full",
        |c| c.kernel.taps_lost,
    ),
    (
        "offload_ends_lost",
        "Ends of connections not reported to user space, because the ring was full",
        |c| c.kernel.ends_lost,
    ),
    ("offload_taps_read", "Copied packets that were read", |c| {
        c.learner.taps_read
    }),
    (
        "offload_taps_undecided",
        "Copied packets after which their flow was undecided",
        |c| c.learner.taps_undecided,
    ),
    (
        "offload_taps_unheard",
        "Copied packets that came when the decider was gone",
        |c| c.learner.taps_unheard,
    ),
    (
        "offload_flows_decided",
        "Flows that got a verdict by a decision",
        |c| c.learner.flows_decided,
    ),
    (
        "offload_flows_gave_up",
        "Flows that got a verdict because further packets would not have helped to decide",
        |c| c.learner.flows_gave_up,
    ),
    ("offload_orders", "Orders about rows of verdicts", |c| {
        c.learner.orders
    }),
    (
        "offload_orders_repeated",
        "Orders to add a row that already existed",
        |c| c.learner.orders_repeated,
    ),
    (
        "offload_refused_full",
        "Rows refused because the table was full",
        |c| c.learner.refused_full,
    ),
    (
        "offload_refused_too_fast",
        "Orders refused because they came faster than the table takes them",
        |c| c.learner.refused_too_fast,
    ),
    (
        "offload_refused_failed",
        "Orders refused for other reasons than a full table or too many orders",
        |c| c.learner.refused_failed,
    ),
    ("offload_rows_begun", "Rows added to the table", |c| {
        c.learner.rows_begun
    }),
    (
        "offload_rows_idle",
        "Rows that ended because their flow was silent or over",
        |c| c.learner.rows_idle,
    ),
    (
        "offload_rows_removed",
        "Rows that ended because another connection began with their key",
        |c| c.learner.rows_removed,
    ),
    ("offload_rows_open", "Rows in the table", |c| {
        c.learner.rows_open()
    }),
    (
        "offload_decider_gone",
        "1 while flows are not decided because the decider is gone",
        |c| c.learner.decider_gone | u64::from(c.is_learner_gone),
    ),
];

type OfPort = fn(&BridgePortCounters) -> u64;

/// Further counters of a bridge, summed over both ports.
const BRIDGE_COUNTS: [(&str, &str, OfPort); 10] = [
    ("bridge_received", "Frames received at both ports", |p| {
        p.received
    }),
    (
        "bridge_forwarded",
        "Frames that left by the other port",
        |p| p.forwarded,
    ),
    (
        "bridge_dropped_by_verdict",
        "Frames dropped by a verdict about their flow",
        |p| p.dropped_by_verdict,
    ),
    (
        "bridge_dropped_undecided",
        "Frames of TCP and UDP flows dropped because nothing was decided yet",
        |p| p.dropped_undecided,
    ),
    (
        "bridge_dropped_other",
        "Frames of other protocols, and frames in no flow, that were dropped",
        |p| p.dropped_other,
    ),
    (
        "bridge_would_drop",
        "Frames forwarded in a dry run that would have been dropped",
        |p| p.would_drop,
    ),
    (
        "bridge_too_long",
        "Frames longer than the MTU of the port that they were to leave by",
        |p| p.too_long,
    ),
    (
        "bridge_redirect_errors",
        "Frames that the kernel did not redirect for reasons other than their length",
        |p| p.redirect_errors,
    ),
    (
        "bridge_driver_dropped",
        "Frames that the driver of the other port did not take",
        |p| p.driver_dropped,
    ),
    (
        "bridge_came_back",
        "Broadcast and multicast frames that had come in at the other port a moment before",
        |p| p.came_back,
    ),
];

/// Gauges: counters that may decrease.
const GAUGES: [&str; 2] = ["offload_rows_open", "offload_decider_gone"];

impl Counted {
    pub(super) fn by_name(&self) -> Vec<OwnCount> {
        let counts = COUNTS.iter().map(|(name, about, of)| OwnCount {
            name,
            about,
            is_gauge: GAUGES.contains(name),
            count: of(self),
        });
        let of_bridge = self.bridge.iter().flat_map(|ports| {
            BRIDGE_COUNTS.iter().map(|(name, about, of)| OwnCount {
                name,
                about,
                is_gauge: false,
                count: ports.iter().map(of).sum(),
            })
        });
        counts.chain(of_bridge).collect()
    }
}
