// SPDX-License-Identifier: Apache-2.0
//! What an engine can do, and what a run asks of it.

use turboflow_record::{Input, InputSet};

/// Which flow keys an engine can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyAbility {
    /// Any key that a definition can name.
    Any,
    /// The 5-tuple alone.
    FiveTuple,
}

/// What an engine can do. A run that asks for more is refused before it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// The engine's name, as users type it.
    pub name: &'static str,
    /// The inputs it sees of a packet.
    pub inputs: InputSet,
    /// The keys it can have.
    pub keys: KeyAbility,
    /// Words of further features that its records can have.
    pub state_words: usize,
    /// Whether it evicts a record before a packet of the flow that comes in another cell of the clock,
    /// so that idle and active timeouts cut where a per-packet meter cuts.
    pub cuts_on_gap: bool,
    /// Whether it evicts a record before a packet that may begin a new connection, or come after an
    /// end.
    pub evicts_on_end: bool,
    /// Whether the records of a flow are handed over in time order. Where they are not, totals are
    /// exact all the same, and a flow may have several records at a time.
    pub ordered: bool,
    /// The longest a packet stays in it, in nanoseconds; `None`: as long as the run says.
    pub max_age_ns: Option<u64>,
    /// Whether it can join the two directions of a conversation.
    pub biflow: bool,
    /// Whether it enters tunnels.
    pub decapsulates: bool,
    /// Whether it attributes later fragments to the flow of the first.
    pub reassembles_flows: bool,
    /// Whether it can write ICMP type and code into the destination port.
    pub icmp_ports: bool,
    /// Whether it can leave out packets that a filter does not take.
    pub filters: bool,
    /// How many of it can feed one run.
    pub instances: usize,
}

impl Abilities {
    /// An engine that can do nothing yet, with this name: set what it can.
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

    /// What a run demands and this engine lacks.
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

/// What a run asks of an engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demands {
    /// Inputs that the definition names.
    pub inputs: InputSet,
    /// Whether the key is another than the 5-tuple.
    pub any_key: bool,
    /// Words of further features that records take.
    pub state_words: usize,
    /// Whether the two directions of a conversation are joined.
    pub biflow: bool,
    /// Whether tunnels are entered.
    pub decapsulates: bool,
    /// Whether later fragments join the flow of the first.
    pub reassembles_flows: bool,
    /// Whether ICMP type and code stand in the destination port.
    pub icmp_ports: bool,
    /// Whether a filter leaves packets out.
    pub filters: bool,
    /// How many engines of the kind feed the run.
    pub instances: usize,
}

/// Something that a run demands and an engine lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Lacking {
    /// Joining the two directions.
    #[error("joining the two directions of a flow")]
    Biflow,
    /// Entering tunnels.
    #[error("entering tunnels")]
    Decapsulation,
    /// Filters.
    #[error("a filter")]
    Filter,
    /// ICMP type and code as port.
    #[error("ICMP type and code as destination port")]
    IcmpPorts,
    /// An input that it does not see.
    #[error("the input `{}`", .0.name())]
    Input(Input),
    /// As many engines.
    #[error("{needed} engines in one run (at most {room})")]
    Instances {
        /// How many.
        needed: usize,
        /// At most.
        room: usize,
    },
    /// A key other than the 5-tuple.
    #[error("a key other than the 5-tuple")]
    Key,
    /// Attributing fragments.
    #[error("attributing later fragments to the flow of the first")]
    Reassembly,
    /// As much state.
    #[error("{needed} words of state (room for {room})")]
    StateWords {
        /// Words needed.
        needed: usize,
        /// Words there are.
        room: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_everything_that_is_lacking_and_nothing_else() {
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
