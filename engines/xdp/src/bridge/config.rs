// SPDX-License-Identifier: Apache-2.0
//! Configuration of a bridge before it is loaded: `struct bridge_config` in `bpf/judged.h`.

use std::os::fd::AsRawFd;

use libbpf_rs::OpenMapMut;
use turboflow_merge::StateContent;
use turboflow_record::Input;

use crate::KernelError;
use crate::interface::control_socket;
use crate::plan::KernelPlan;

/// Size of `struct bridge_config`.
const CONFIG_BYTES: usize = 32;
/// Stands for a word that records do not have: `NO_WORD` in `bpf/plan.h`.
const NO_WORD: u32 = u32::MAX;
/// Rule numbers have 16 bits.
const MAX_RULES: u32 = 1 << 16;

/// What happens to packets without a verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BridgeAction {
    /// They are forwarded to the other port.
    #[default]
    Pass,
    /// They are dropped.
    Drop,
}

/// A bridge between the two interfaces of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BridgeConfig {
    /// All frames are forwarded; drops are only counted.
    pub is_dry_run: bool,
    /// Number of rules that are counted individually: those with smaller numbers; 1 to 65,536.
    pub rules: u32,
    /// The initial action for TCP and UDP flows without a verdict.
    pub undecided: BridgeAction,
    /// The initial action for other flows without a verdict, and for frames that belong to no flow.
    pub other: BridgeAction,
}

/// The words of a record's state that the fast program writes, in the order of
/// `struct bridge_config`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JudgedWords([u32; 4]);

impl JudgedWords {
    /// No word is written by the fast program.
    const NONE: Self = Self([NO_WORD; 4]);

    /// The words that these steps fill; `None` if the fast program cannot carry out all of them.
    pub(crate) fn of(steps: &[turboflow_merge::StateStep]) -> Option<Self> {
        let mut words = Self::NONE;
        for step in steps {
            let place = match (step.of?, &step.what) {
                (Input::Verdict, StateContent::Last) => 0,
                (Input::Rule, StateContent::Last) => 1,
                (Input::PacketDropped, StateContent::Sum) => 2,
                (Input::BytesDropped, StateContent::Sum) => 3,
                _ => return None,
            };
            if words.0[place] != NO_WORD {
                return None;
            }
            words.0[place] = u32::try_from(step.word).ok()?;
        }
        Some(words)
    }
}

impl BridgeConfig {
    /// Checks the ranges of all values, without asking the kernel.
    pub(crate) fn validate(&self, interfaces: usize) -> Result<(), KernelError> {
        let wrong = |what, value: u64, allowed| {
            Err(KernelError::Configuration {
                what,
                value,
                allowed,
            })
        };
        if interfaces != 2 {
            return wrong("the number of ports", interfaces as u64, "2 for a bridge");
        }
        if self.rules == 0 || self.rules > MAX_RULES {
            let allowed = "1 to 65536";
            return wrong("the number of counted rules", self.rules.into(), allowed);
        }
        Ok(())
    }

    /// The bytes of `struct bridge_config`.
    fn bytes(&self, network: u64, words: JudgedWords) -> Vec<u8> {
        let mut bytes = network.to_ne_bytes().to_vec();
        let numbers = [self.rules, u32::from(self.is_dry_run)];
        for number in words.0.into_iter().chain(numbers) {
            bytes.extend(number.to_ne_bytes());
        }
        debug_assert_eq!(bytes.len(), CONFIG_BYTES);
        bytes
    }

    /// Configures a map before anything is loaded into the kernel. Returns whether the map belongs
    /// to the bridge.
    pub(crate) fn configure(
        &self,
        map: &mut OpenMapMut<'_>,
        plan: Option<&KernelPlan>,
    ) -> libbpf_rs::Result<bool> {
        match map.name().to_str() {
            Some("rule_counts") => map.set_max_entries(self.rules)?,
            Some(".rodata.bridge") => {
                let words = plan
                    .and_then(KernelPlan::judged)
                    .unwrap_or(JudgedWords::NONE);
                map.set_initial_value(&self.bytes(network_cookie(), words))?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// The cookie of this network namespace; 0, which no namespace has, if the kernel does not return
/// it.
fn network_cookie() -> u64 {
    let Ok(socket) = control_socket() else {
        return 0;
    };
    let mut cookie = 0_u64;
    let mut length = size_of::<u64>() as libc::socklen_t;
    // SAFETY: the socket is open, and the kernel writes at most the given length to the cookie.
    let error = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &mut length,
        )
    };
    if error == 0 { cookie } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turboflow_merge::StateStep;

    const CONFIG: BridgeConfig = BridgeConfig {
        is_dry_run: true,
        rules: 7,
        undecided: BridgeAction::Pass,
        other: BridgeAction::Pass,
    };

    #[test]
    fn is_written_as_the_program_reads_it() {
        let words = JudgedWords([4, 5, NO_WORD, 6]);
        let bytes = CONFIG.bytes(0x0102, words);
        assert_eq!(bytes.len(), CONFIG_BYTES);
        assert_eq!(bytes[..8], 0x0102_u64.to_ne_bytes());
        assert_eq!(bytes[16..20], [0xff; 4]);
        assert_eq!(bytes[24..], [7, 0, 0, 0, 1, 0, 0, 0]);
    }

    #[test]
    fn the_fast_program_writes_what_was_decided_and_nothing_else() {
        let step = |of, what, word| StateStep {
            of: Some(of),
            what,
            word,
        };
        let verdict = step(Input::Verdict, StateContent::Last, 3);
        let bytes = step(Input::BytesDropped, StateContent::Sum, 1);
        let words = JudgedWords::of(&[verdict.clone(), bytes]).unwrap();
        assert_eq!(words.0, [3, NO_WORD, NO_WORD, 1]);
        assert!(JudgedWords::of(&[verdict.clone(), verdict]).is_none());
        let other = step(Input::Ttl, StateContent::Last, 0);
        assert!(JudgedWords::of(&[other]).is_none());
        let first = step(Input::Verdict, StateContent::First, 0);
        assert!(JudgedWords::of(&[first]).is_none());
    }

    #[test]
    fn a_bridge_has_two_ports_and_counts_rules() {
        assert!(CONFIG.validate(2).is_ok());
        for ports in [0, 1, 3] {
            let said = CONFIG.validate(ports).unwrap_err().to_string();
            assert!(said.contains("ports"), "{said}");
        }
        for rules in [0, MAX_RULES + 1] {
            let said = BridgeConfig { rules, ..CONFIG }.validate(2).unwrap_err();
            assert!(said.to_string().contains("rules"), "{said}");
        }
    }
}
