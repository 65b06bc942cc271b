// SPDX-License-Identifier: Apache-2.0
//! What an engine supports, and what a run requires of it.

use turboflow_record::{Input, InputSet};

/// The flow keys that an engine supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyAbility {
    /// Any key of a definition.
    Any,
    /// The 5-tuple only.
    FiveTuple,
}

/// What an engine supports. A run that requires more is refused before it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// The engine's name, as users type it.
    pub name: &'static str,
    /// The inputs that it can read from a packet.
    pub inputs: InputSet,
    /// The keys that it supports.
    pub keys: KeyAbility,
    /// How many words of further features its records can hold.
    pub state_words: usize,
    /// Whether it evicts a resident record before it meters a packet of the same flow from a later
    /// cell of the clock, so that idle and active timeouts split flows where a per-packet meter
    /// would.
    pub cuts_on_gap: bool,
    /// Whether it evicts a resident record before a packet that may start a new connection, or that
    /// follows the end of one.
    pub evicts_on_end: bool,
    /// Whether it hands over the records of a flow in time order. If not, totals are still exact,
    /// but a flow may have several flow records for one period.
    pub ordered: bool,
    /// The longest time that a packet stays in the engine, in nanoseconds. `None`: the run decides.
    pub max_age_ns: Option<u64>,
    /// Whether it can join the two directions of a flow.
    pub biflow: bool,
    /// Whether it decapsulates tunnels.
    pub decapsulates: bool,
    /// Whether it attributes later fragments to the flow of the first fragment.
    pub reassembles_flows: bool,
    /// Whether it can store ICMP type and code in the destination port.
    pub icmp_ports: bool,
    /// Whether it can apply a packet filter.
    pub filters: bool,
    /// How many engines of this kind can feed one run.
    pub instances: usize,
}

impl Abilities {
    /// An engine with this name that supports nothing. The caller sets what the engine does
    /// support.
    #[must_use]
    pub const fn none(name: &'static str) -> Self {
        Self {
            name,
            inputs: InputSet::EMPTY,
            keys: KeyAbility::FiveTuple,
            state_words: 0,
            cuts_on_gap: false,
            evicts_on_end: false,
            ordered: false,
            max_age_ns: None,
            biflow: false,
            decapsulates: false,
            reassembles_flows: false,
            icmp_ports: false,
            filters: false,
            instances: 1,
        }
    }

    /// The demands that this engine does not meet.
    #[must_use]
    pub fn lacks(&self, demands: &Demands) -> Vec<Lacking> {
        let mut lacking = Vec::new();
        let unseen = demands.inputs.iter();
        lacking.extend(
            unseen
                .filter(|&input| !self.inputs.contains(input))
                .map(Lacking::Input),
        );
        let keys = demands.any_key && self.keys == KeyAbility::FiveTuple;
        let checks = [
            (keys, Lacking::Key),
            (
                demands.state_words > self.state_words,
                Lacking::StateWords {
                    needed: demands.state_words,
                    room: self.state_words,
                },
            ),
            (demands.biflow && !self.biflow, Lacking::Biflow),
            (
                demands.decapsulates && !self.decapsulates,
                Lacking::Decapsulation,
            ),
            (
                demands.reassembles_flows && !self.reassembles_flows,
                Lacking::Reassembly,
            ),
            (demands.icmp_ports && !self.icmp_ports, Lacking::IcmpPorts),
            (demands.filters && !self.filters, Lacking::Filter),
            (
                demands.instances > self.instances,
                Lacking::Instances {
                    needed: demands.instances,
                    room: self.instances,
                },
            ),
        ];
        lacking.extend(
            checks
                .into_iter()
                .filter_map(|(is_lacking, what)| is_lacking.then_some(what)),
        );
        lacking
    }
}

/// What a run requires of an engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demands {
    /// The inputs of the definition.
    pub inputs: InputSet,
    /// Whether the key is not the 5-tuple.
    pub any_key: bool,
    /// How many words of further features a record has.
    pub state_words: usize,
    /// Whether the two directions of a flow are joined.
    pub biflow: bool,
    /// Whether tunnels are decapsulated.
    pub decapsulates: bool,
    /// Whether later fragments are attributed to the flow of the first fragment.
    pub reassembles_flows: bool,
    /// Whether ICMP type and code are stored in the destination port.
    pub icmp_ports: bool,
    /// Whether packets are filtered.
    pub filters: bool,
    /// How many engines of this kind feed the run.
    pub instances: usize,
}

/// A demand that an engine does not meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Lacking {
    /// Joining the two directions.
    #[error("joining the two directions of a flow")]
    Biflow,
    /// Decapsulating tunnels.
    #[error("entering tunnels")]
    Decapsulation,
    /// Applying a filter.
    #[error("a filter")]
    Filter,
    /// ICMP type and code as destination port.
    #[error("ICMP type and code as destination port")]
    IcmpPorts,
    /// An input that the engine cannot read.
    #[error("the input `{}`", .0.name())]
    Input(Input),
    /// Several engines in one run.
    #[error("{needed} engines in one run (at most {room})")]
    Instances {
        /// Engines required.
        needed: usize,
        /// Engines supported.
        room: usize,
    },
    /// A key other than the 5-tuple.
    #[error("a key other than the 5-tuple")]
    Key,
    /// Attributing later fragments.
    #[error("attributing later fragments to the flow of the first")]
    Reassembly,
    /// Words of state.
    #[error("{needed} words of state (room for {room})")]
    StateWords {
        /// Words required.
        needed: usize,
        /// Words supported.
        room: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_exactly_the_unmet_demands() {
        let engine = Abilities {
            inputs: InputSet::default().with(Input::IpLength),
            state_words: 8,
            instances: 2,
            ..Abilities::none("toy")
        };
        let demands = Demands {
            inputs: InputSet::default()
                .with(Input::IpLength)
                .with(Input::QueueDepth),
            any_key: true,
            state_words: 9,
            instances: 2,
            ..Demands::default()
        };
        let lacking: Vec<_> = engine
            .lacks(&demands)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            lacking,
            [
                "the input `queue_depth`",
                "a key other than the 5-tuple",
                "9 words of state (room for 8)"
            ]
        );
        assert_eq!(engine.lacks(&Demands::default()), []);
    }
}
