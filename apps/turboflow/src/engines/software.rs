// SPDX-License-Identifier: Apache-2.0
//! The software engine, which runs in this process and needs no opening.

use turboflow_engine::{Abilities, KeyAbility};
use turboflow_merge::MOST_STATE_WORDS;
use turboflow_packet::{PARSED_INPUTS, TELEMETRY_INPUTS};
use turboflow_run::EngineConfig;

use super::EngineKind;

pub(super) struct Software;

impl EngineKind for Software {
    fn is_built(&self) -> bool {
        true
    }

    fn about(&self) -> &'static str {
        "in this program, from packets that the kernel copies to a ring"
    }

    fn reads_files(&self) -> bool {
        true
    }

    fn sees_payload(&self) -> bool {
        true
    }

    fn abilities(&self) -> Abilities {
        Abilities {
            inputs: PARSED_INPUTS.union(TELEMETRY_INPUTS),
            keys: KeyAbility::Any,
            state_words: MOST_STATE_WORDS,
            cuts_on_gap: true,
            evicts_on_end: true,
            ordered: true,
            biflow: true,
            decapsulates: true,
            reassembles_flows: true,
            icmp_ports: true,
            filters: true,
            ..Abilities::none(EngineConfig::SOFTWARE)
        }
    }
}
